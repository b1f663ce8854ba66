"""A node and a clock under the test's control: every transition without waiting."""

from __future__ import annotations

from collections.abc import Callable

from airloom.errors import RunError
from airloom.measure.clock import ClockReading
from airloom.nodes.kind import Exit
from airloom.runs.timeline import Action, Timeline

SECOND = 1_000_000_000


class Clock:
    """Engine time in nanoseconds, advanced only by the test."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def go(self, timeline: Timeline, ns: int = 0) -> None:
        """Executes everything due until ``ns`` from now, step by step."""
        end = self.now + ns
        while True:
            while not timeline._posted.empty():
                _until(timeline, timeline.post)
            due = [moment for moment, _, _ in timeline._due]
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            _until(timeline, lambda action: timeline.at(self.now, action))
        self.now = end


def _until(timeline: Timeline, ask: Callable[[Action], None]) -> None:
    """Runs the timeline until it has executed all earlier requests, also if it ends meanwhile."""
    reached: list[bool] = []

    def reach() -> None:
        reached.append(True)
        timeline.end()

    ask(reach)
    while not reached:
        timeline.run()


class PlayedProcess:
    def __init__(self, argv: list[str], on_exit: Callable[[Exit], None]) -> None:
        self.argv = argv
        self.on_exit = on_exit
        self.signals: list[int] = []

    def signal(self, number: int) -> None:
        self.signals.append(number)


class PlayedNode:
    """Records started programs; the test sets how they end."""

    def __init__(self) -> None:
        self.started: list[PlayedProcess] = []
        self.ports: set[int] = set()
        self.refuses = False

    def start(self, argv, *, on_exit, **_) -> PlayedProcess:
        if self.refuses:
            raise RunError("program.missing", "no such program")
        self.started.append(PlayedProcess(list(argv), on_exit))
        return self.started[-1]

    def clock(self) -> ClockReading:
        return ClockReading(0)

    def listens(self, protocol: str, port: int) -> bool:
        return port in self.ports
