"""Processors that poll while they are idle, instead of halting (``engine.idle: poll``).

The engine has a thread of policy ``SCHED_IDLE`` on each processor meanwhile
(``ports/src/runtime/idle_poll.rs``). Processor pressure of the kernel counts such a thread as a task
that waits whenever any other one runs, so that it says nothing while some process of this machine
polls. Each of them therefore binds a name in the abstract namespace of Unix sockets (``unix(7)``),
which every user can see and which vanishes with the process.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

_NAME = "airloom-idle-poll"
_SOCKETS = Path("/proc/net/unix")
_own: set[str] = set()
"""Names bound by this process."""
_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Lets the other runs on this machine see meanwhile that processors poll."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        name = f"@{_NAME}-{os.getpid()}-{uuid.uuid4().hex}"
        own.bind(name.replace("@", "\0", 1))
        _own.add(name)
        try:
            yield
        finally:
            _own.discard(name)


def pollers() -> tuple[bool, bool]:
    """Returns whether processors of this machine poll for a run in this network namespace, and whether they
    do so for one of another process.
    """
    try:
        words = _SOCKETS.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return False, False
    found = {word for word in words if word.startswith(f"@{_NAME}-")}
    return bool(found), bool(found - _own)


def would_help() -> bool:
    """Returns whether idle processors halt into a hypervisor, as no driver lets them poll."""
    try:
        return _DRIVER.read_text().strip() == "none"
    except OSError:
        return False
