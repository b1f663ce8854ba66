"""Describes the software and the machine that produced a result."""

from __future__ import annotations

import os
import platform

from airloom import __version__


def versions() -> dict[str, str]:
    """Returns the versions of the software that affects the result."""
    return {
        "airloom": __version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def machine() -> dict[str, str | int | float]:
    """Returns a description of the machine for readers of the results."""
    return {
        "processors": os.cpu_count() or 1,
        "memory_octets": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "name": platform.node(),
        "architecture": platform.machine(),
    }
