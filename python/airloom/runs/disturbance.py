"""Load on this machine while a run is verified: what must not change a run in virtual time.

One processor is taken by a loop, everything of the run is bound to it, and the machines of its
guests are stopped and continued over and over. Their moments are drawn from the machine's own random
numbers, so that they are others each time.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from airloom.host.descendants import processes_below

_PERIOD, _STOP = (0.005, 0.08), (0.002, 0.03)
"""Shortest and longest time in seconds between two stops, and of a stop."""


@contextlib.contextmanager
def disturbed() -> Iterator[None]:
    """Disturbs everything that this process does and starts meanwhile."""
    before = os.sched_getaffinity(0)
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL)
    ended = threading.Event()
    stopper = threading.Thread(target=_stop_guests, args=(ended,), name="disturbance", daemon=True)
    try:
        os.sched_setaffinity(loop.pid, {min(before)})
        os.sched_setaffinity(0, {min(before)})
        stopper.start()
        yield
    finally:
        ended.set()
        if stopper.is_alive():
            stopper.join()
        os.sched_setaffinity(0, before)
        loop.kill()
        loop.wait()


def _stop_guests(ended: threading.Event) -> None:
    moments = random.SystemRandom()
    while not ended.wait(moments.uniform(*_PERIOD)):
        guests = _guests(os.getpid())
        if not guests:
            continue
        guest = moments.choice(guests)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(guest, signal.SIGSTOP)
            try:
                ended.wait(moments.uniform(*_STOP))
            finally:
                os.kill(guest, signal.SIGCONT)


def _guests(process: int) -> list[int]:
    """The guests' kernels among the descendants of a process. Their programs are children of theirs."""
    guests: list[int] = []
    inside: set[int] = set()
    for one in processes_below(process)[1:]:
        if one not in inside and _is_guest(one):
            guests.append(one)
            inside.update(processes_below(one))
    return guests


def _is_guest(process: int) -> bool:
    try:
        return b"time-travel=ext:" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
