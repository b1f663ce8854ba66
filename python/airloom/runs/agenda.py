"""The events of a scenario that are to come: due on the timeline, unless they are withdrawn before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from airloom.runs.timeline import Timeline
from airloom.scenario.model import Event


class Agenda:
    """Events to come. Call on the timeline only."""

    def __init__(self, timeline: Timeline, act: Callable[[Event], None]) -> None:
        """``act``: carries an event out."""
        self._timeline = timeline
        self._act = act
        self._numbers = itertools.count()
        self._left: dict[int, Event] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether a run without a duration lasts for an event that is to come."""
        return any(event.awaited for event in self._left.values())

    def put(self, event: Event) -> None:
        """Adds an event, which happens at its time, or at once if that has passed."""
        number = next(self._numbers)
        self._left[number] = event
        self._timeline.at(event.at, partial(self._happen, number))

    def withdraw(self, event: Event) -> None:
        """Takes out an event; of several equal ones, one."""
        number = next((number for number, one in self._left.items() if one == event), None)
        if number is not None:
            del self._left[number]

    def _happen(self, number: int) -> None:
        event = self._left.pop(number, None)
        if event is not None:
            self._act(event)
