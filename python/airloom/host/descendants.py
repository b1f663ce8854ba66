"""Processes below a process, and their threads, from Linux's ``/proc`` (``CONFIG_PROC_CHILDREN``)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def processes_below(root: int) -> list[int]:
    """Returns a process and all its descendants, parents before children; all are PIDs in this namespace.

    Processes and threads that end during the search are left out, not their living relatives.
    """
    found = [root]
    for process in found:
        children: dict[int, None] = {}  # another thread inherits those of a thread that ends
        for thread in threads(process):
            with contextlib.suppress(OSError):
                read = Path(f"/proc/{process}/task/{thread}/children").read_text()
                children |= dict.fromkeys(map(int, read.split()))
        found += children
    return found


def threads(process: int) -> list[int]:
    """Returns the threads of a process by their numbers in this PID namespace; none if it has ended."""
    try:
        return [int(thread) for thread in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []
