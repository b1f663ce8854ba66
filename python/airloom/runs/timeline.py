"""The run's own calendar in Python: what happens when, on one thread, in one order.

Times are engine time in nanoseconds. Things due at the same moment happen in the order in which they
were asked for. Other threads and signal handlers hand in work with :meth:`Timeline.post`. Changes of
links do not pass through here: the engine carries them out itself, at the exact nanosecond.
"""

from __future__ import annotations

import heapq
import itertools
import queue
from collections.abc import Callable

Action = Callable[[], None]


class Timeline:
    """Runs actions at their times until it is told to end."""

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
        """Has an action done at a moment; at once if that has passed. Only from the timeline's thread."""
        heapq.heappush(self._due, (moment, next(self._order), action))

    def after(self, span: int, action: Action) -> None:
        """Has an action done some nanoseconds from now. Only from the timeline's thread."""
        self.at(self._now() + span, action)

    def post(self, action: Action) -> None:
        """Has an action done as soon as possible; from any thread, and from signal handlers."""
        self._posted.put(action)

    def end(self) -> None:
        """Makes :meth:`run` return after the action that is being done."""
        self._ended = True

    def run(self) -> None:
        """Does what is due until :meth:`end`."""
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
        """Seconds until something is due; an hour if nothing is."""
        if not self._due:
            return 3600.0
        return max(0.0, (self._due[0][0] - self._now()) / 1e9)


def _nothing() -> None:
    """The clock was not there yet."""
