"""The parent of this process."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
"""Of ``<linux/prctl.h>``."""


def die_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
