"""Finds processes that a signal or a debugger has stopped."""

from __future__ import annotations

import contextlib
from pathlib import Path

from airloom.host.descendants import processes_below


def groups_below(pid: int) -> frozenset[int]:
    """Process groups below a process with a member in state T or t (``proc_pid_status(5)``), by their numbers
    in the innermost PID namespace.
    """
    found = set()
    for process in processes_below(pid):
        with contextlib.suppress(OSError, KeyError):  # it has just ended
            text = Path(f"/proc/{process}/status").read_text()
            lines = dict(line.split(":", 1) for line in text.splitlines())
            if lines["State"].split()[0] in ("T", "t"):
                found.add(int(lines["NSpgid"].split()[-1]))
    return frozenset(found)
