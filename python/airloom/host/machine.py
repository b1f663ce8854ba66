"""What a result was made on and with."""

from __future__ import annotations

import os
import platform

from airloom import __version__


def versions() -> dict[str, str]:
    """Software that has a part in the result."""
    return {
        "airloom": __version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def machine() -> dict[str, str | int | float]:
    """The machine, as a reader of the results needs it."""
    return {
        "processors": os.cpu_count() or 1,
        "memory_octets": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "name": platform.node(),
        "architecture": platform.machine(),
    }
