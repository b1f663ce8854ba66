"""The event loop of a run: runs actions on one thread in a fixed order.

Times are engine time in nanoseconds. Actions due at the same time run in the order in which they
were scheduled. Other threads and signal handlers submit work with :meth:`Timeline.post`. Link
changes do not use the timeline: the engine applies them at the exact nanosecond.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from airloom.errors import RunError
from airloom.nodes.virtual_time import Pacer

Action = Callable[[], None]
_Value = TypeVar("_Value")

_PATIENCE = 0.2
"""Seconds between two looks whether the timeline that is to answer has ended."""


class Timeline:
    """Runs actions at their times until :meth:`end`."""

    def __init__(self, now: Callable[[], int], pacer: Pacer | None = None) -> None:
        """``pacer``: lets virtual time pass; without one, time passes by itself."""
        self._now = now
        self.pacer = pacer
        self._due: list[tuple[int, int, Action]] = []
        self._order = itertools.count()
        self._posted: queue.SimpleQueue[Action] = queue.SimpleQueue()
        self.ended = False
        """True once :meth:`run` returns, or is about to."""
        self.is_turning = False
        """Whether :meth:`pass_time` runs."""

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

    def ask(self, act: Callable[[], _Value]) -> _Value:
        """Acts as soon as possible and returns the value; from any other thread, while :meth:`run` runs.

        In virtual time whoever calls has let it stand still, and acts itself.
        Raises :class:`~airloom.errors.RunError` if the timeline has ended.
        """
        if self.pacer is not None:
            return act()
        answers: queue.SimpleQueue[tuple[_Value | None, Exception | None]] = queue.SimpleQueue()
        refused = threading.Event()

        def work() -> None:
            if refused.is_set():
                return
            try:
                answers.put((act(), None))
            except Exception as error:  # for the caller; the timeline goes on
                answers.put((None, error))

        self.post(work)
        while True:
            try:
                value, error = answers.get(timeout=_PATIENCE)
            except queue.Empty:
                if self.ended:
                    refused.set()
                    raise RunError("lab.closed", "the laboratory is not up") from None
                continue
            if error is not None:
                raise error
            return cast(_Value, value)

    def end(self) -> None:
        """Makes :meth:`run` return after the current action."""
        self.ended = True

    def run(self) -> None:
        """Runs due actions until :meth:`end`."""
        self.ended = False
        while not self.ended:
            self._turn(None)

    def pass_time(self, most: int | None) -> None:
        """In virtual time: runs the next action that is due; if none is, lets time pass.

        For at most ``most`` ns, and until something may have come of it. For those that wait outside
        of the timeline. An action that waits itself lets only time pass.
        """
        assert self.pacer is not None
        if self.is_turning:
            self.pacer.advance(most)
            return
        self.is_turning = True
        try:
            self._turn(most)
        finally:
            self.is_turning = False

    def _turn(self, most: int | None) -> None:
        try:
            action = self._posted.get(timeout=self._pause() if self.pacer is None else 0)
        except queue.Empty:
            action = self._next_due()
        if action is _nothing and self.pacer is not None:
            spans = [] if most is None else [most]
            spans += [self._due[0][0] - self._now()] if self._due else []
            self.pacer.advance(min(spans, default=None))
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
