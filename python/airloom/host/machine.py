"""Describes the software and the machine that produced a result."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from airloom import __version__
from airloom.host import engine_identity

_CPUINFO = Path("/proc/cpuinfo")
_MODEL = ("model name", "Model", "uarch")
"""Lines of /proc/cpuinfo that name the processor: x86, ARM boards, RISC-V."""


def versions() -> dict[str, str]:
    """Returns the versions of the software that affects the result."""
    return {
        "airloom": __version__,
        "engine": engine_identity.identity(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def machine() -> dict[str, str | int | float]:
    """Returns a description of the machine for readers of the results."""
    model = processor_model()
    return {
        **({"processor": model} if model else {}),
        "processors": os.cpu_count() or 1,
        "memory_octets": memory_octets(),
        "name": platform.node(),
        "architecture": platform.machine(),
    }


def processor_model() -> str:
    """Returns the model of the first processor by the kernel; empty if it does not say."""
    found = _first_processor()
    return next((found[name] for name in _MODEL if found.get(name)), "")


def processor_features() -> frozenset[str]:
    """Returns the features of the first processor as the kernel names them; empty if it does not say."""
    return frozenset(_first_processor().get("flags", "").split())


def _first_processor() -> dict[str, str]:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))
    }


def memory_octets() -> int:
    """Returns the memory of this machine that its kernel manages."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
