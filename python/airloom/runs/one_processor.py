"""Binds a run in virtual time to one processor.

Engine, guests and their programs take turns: never do two of them run at once. A turn that is handed to
another processor costs 20 to 40 times one on the same processor, because the other has to wake up.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from airloom.host.processor_times import processor_ticks

_LOOK = 0.05
"""Seconds for which the processors are watched."""
_ALIKE = 0.25
"""Processors count as equally idle if their idle shares differ by less."""


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Binds this thread, and all that it starts meanwhile, to the idlest of its processors."""
    before = os.sched_getaffinity(0)
    chosen = choose(sorted(before))
    with contextlib.suppress(OSError):  # the processor has just been taken away
        os.sched_setaffinity(0, {chosen})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


def choose(processors: list[int]) -> int:
    """The idlest of these processors; of several, one that follows from the process's number."""
    if len(processors) == 1:
        return processors[0]
    first = _times()
    time.sleep(_LOOK)
    return idlest(processors, first, _times(), os.getpid())


def idlest(
    processors: list[int],
    first: Mapping[int, tuple[int, int]],
    last: Mapping[int, tuple[int, int]],
    number: int,
) -> int:
    """The same of idle and all ticks of each processor at two times, and any number.

    Runs that start at once see the same ticks; their numbers spread them.
    """
    shares = {}
    for one in processors:
        idle, total = (after - before for before, after in zip(first[one], last[one], strict=True))
        shares[one] = idle / total if total else 1.0
    most = max(shares.values())
    alike = [one for one in processors if shares[one] >= most - _ALIKE]
    return alike[number % len(alike)]


def _times() -> dict[int, tuple[int, int]]:
    """Idle and all ticks of each processor since the start of the machine."""
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name = line.partition(" ")[0]
        if name.startswith("cpu") and name != "cpu":
            stolen, busy, total = processor_ticks(line)
            found[int(name[3:])] = (total - busy - stolen, total)
    return found
