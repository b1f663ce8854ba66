"""The folder of an agent: removed when the agent ends, however it ends.

An agent is two processes: one that serves, and its parent, which removes the folder afterwards. A lock
tells the folder of a live agent from one whose processes were all killed, as by Slurm's control groups: the
next agent of the same user removes that one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from airloom.host import files
from airloom.host.parent import die_with_parent

_PREFIX = "airloom-fleet-"
_CLEANS_S = 20.0
"""Seconds for which a folder is removed again and again: the runs of its agent end, too."""


def serve_in_folder(serve: Callable[[], None]) -> NoReturn:
    """Calls ``serve`` in a process of its own with a new working folder, and ends with its exit code."""
    for left in _left():
        _remove(left)
    folder = _locked()
    parent = os.getpid()
    process = os.fork()
    if process == 0:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        os.chdir(folder)
        serve()
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(process, signal.SIGKILL))
    # Who reads or writes them sees their end with that of the other process.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    _remove(folder)
    os._exit(code if code >= 0 else 128 - code)


def _locked() -> Path:
    """Makes a folder whose lock is held until both processes have ended."""
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # Only now can another agent find it.
    folder = made.with_name(made.name.removeprefix("."))
    made.rename(folder)
    return folder


def _left() -> list[Path]:
    """Returns folders of this user's agents that have ended."""
    found = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.geteuid():
                continue
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(folder)
            finally:
                os.close(opened)
    return found


def _remove(folder: Path) -> None:
    until = time.monotonic() + _CLEANS_S
    while folder.exists() and time.monotonic() < until:
        with contextlib.suppress(OSError):  # a run that ends still writes there
            files.remove(folder)
        time.sleep(0.05)
