"""Reads and uses a node's control group; the supervisor process creates and removes it.

``cpu.stat``, ``cpu.pressure``, ``cgroup.freeze`` and ``cgroup.events`` are those of version 2 (the
kernel's ``Documentation/admin-guide/cgroup-v2.rst``). If version 1 limits the processor share, the
throttled time is read from its ``cpu.stat``.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import RunError
from airloom.nodes.kind import Cpu

_FREEZING = 5.0
"""Seconds for the kernel to freeze a node's programs."""


@dataclass(frozen=True, slots=True)
class Group:
    """The cgroup directories of a node."""

    unified: Path
    cpu: Path | None

    def processor_time(self) -> Cpu:
        """Processor time since the cgroup was created. Raises :class:`OSError` if it was removed."""
        stat = _numbers((self.unified / "cpu.stat").read_text())
        throttled = stat.get("throttled_usec")
        if self.cpu is not None:
            throttled = _numbers((self.cpu / "cpu.stat").read_text()).get("throttled_time", 0) // 1000
        return Cpu(
            stat["user_usec"] * 1000,
            stat["system_usec"] * 1000,
            None if throttled is None else throttled * 1000,
            self._pressure(),
        )

    def switches(self) -> dict[int, int]:
        """Context switches to each of its threads so far, by thread. Raises :class:`OSError` if removed.

        The third number of /proc/TID/schedstat (Linux, ``Documentation/scheduler/sched-stats.rst``):
        how often the thread got a processor.
        """
        threads = (self.unified / "cgroup.threads").read_text().split()
        # A node's programs make and remove cgroups of their own, which a glob does not tolerate.
        for place, groups, _ in os.walk(self.unified):
            for group in groups:
                with contextlib.suppress(OSError):
                    threads += Path(place, group, "cgroup.threads").read_text().split()
        found = {}
        for thread in threads:
            with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended
                found[int(thread)] = int(Path(f"/proc/{thread}/schedstat").read_text().split()[2])
        return found

    def freeze(self, halt: bool) -> None:
        """Freezes or thaws all processes and waits until the kernel confirms it."""
        (self.unified / "cgroup.freeze").write_text("1" if halt else "0")
        until = time.monotonic() + _FREEZING
        with (self.unified / "cgroup.events").open() as events:
            poll = select.poll()
            poll.register(events, select.POLLPRI)
            while _numbers(events.read())["frozen"] != halt:
                left = until - time.monotonic()
                if left <= 0:
                    raise RunError(
                        "node.pause", f"the kernel does not halt {self.unified} in {_FREEZING:g} s"
                    )
                poll.poll(left * 1000)
                events.seek(0)

    def _pressure(self) -> int | None:
        """Nanoseconds in which at least one task waited for a processor; None if not available."""
        try:
            some = (self.unified / "cpu.pressure").read_text().splitlines()[0]
        except (OSError, IndexError):  # pressure accounting may be off
            return None
        return int(some.rpartition("total=")[2]) * 1000


def _numbers(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
