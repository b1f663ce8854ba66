"""The event loop of a run: runs actions on one thread in a fixed order.

Times are engine time in nanoseconds. Actions due at the same time run in the order in which they
were scheduled. Other threads and signal handlers submit work with :meth:`Timeline.post`. Link
changes do not use the timeline: the engine applies them at the exact nanosecond.
"""

from __future__ import annotations

import heapq
import itertools
import queue
from collections.abc import Callable

Action = Callable[[], None]


class Timeline:
    """Runs actions at their times until :meth:`end`."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._due: list[tuple[int, int, Action]] = []
        self._order = itertools.count()
        self._posted: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self._ended = False

    def now(self) -> int:
        """Engine time in nanoseconds."""
        return self._now()

    def at(self, moment: int, action: Action) -> None:
        """Schedules an action at ``moment``, or at once if that has passed. Timeline thread only."""
        heapq.heappush(self._due, (moment, next(self._order), action))

    def after(self, span: int, action: Action) -> None:
        """Schedules an action ``span`` nanoseconds from now. Timeline thread only."""
        self.at(self._now() + span, action)

    def post(self, action: Action) -> None:
        """Schedules an action as soon as possible, from any thread and from signal handlers."""
        self._posted.put(action)

    def end(self) -> None:
        """Makes :meth:`run` return after the current action."""
        self._ended = True

    def run(self) -> None:
        """Runs due actions until :meth:`end`."""
        self._ended = False
        while not self._ended:
            try:
                action = self._posted.get(timeout=self._pause())
            except queue.Empty:
                action = self._next_due()
            action()

    def _next_due(self) -> Action:
        if self._due and self._due[0][0] <= self._now():
            return heapq.heappop(self._due)[2]
        return _nothing

    def _pause(self) -> float:
        """Seconds until the next action is due; 3600 if there is none."""
        if not self._due:
            return 3600.0
        return max(0.0, (self._due[0][0] - self._now()) / 1e9)


def _nothing() -> None:
    """Placeholder for a wait that ended without a due action."""
