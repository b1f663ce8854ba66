"""A node's control group, as the controller reads and uses it; the keeper made it and removes it.

``cpu.stat``, ``cpu.pressure``, ``cgroup.freeze`` and ``cgroup.events`` are those of version 2
(the kernel's ``Documentation/admin-guide/cgroup-v2.rst``); where a share is held by version 1,
its ``cpu.stat`` says how long.
"""

from __future__ import annotations

import select
import time
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import RunError
from airloom.nodes.kind import Cpu

_FREEZING = 5.0
"""How long the kernel may take to halt a node's programs, in seconds."""


@dataclass(frozen=True, slots=True)
class Group:
    """The folders of a node's groups."""

    unified: Path
    cpu: Path | None

    def processor_time(self) -> Cpu:
        """Processor time since the group was made; :class:`OSError` if it is gone."""
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

    def freeze(self, halt: bool) -> None:
        """Halts all processes, or lets them go on; waits until it is so."""
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
        """Nanoseconds in which at least one task waited for a processor; None if not counted."""
        try:
            some = (self.unified / "cpu.pressure").read_text().splitlines()[0]
        except (OSError, IndexError):  # pressure accounting may be off
            return None
        return int(some.rpartition("total=")[2]) * 1000


def _numbers(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
