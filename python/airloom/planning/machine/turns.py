"""Plans of guests that take turns: whose turn it is at a time, and when that changes.

Turn k begins at B + phase + k quantum, where B is the moment from which turns are taken, and belongs to
guest k modulo their number, also for k below zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.scenario.model import Scenario


LATE = 0.1
"""Share of a turn by which it may begin late."""


@dataclass(frozen=True, slots=True)
class TurnsPlan:
    """Guests that take turns; times in ns of the engine."""

    name: str
    guests: tuple[str, ...]
    """Nodes with a machine of their own, or shared guests."""
    quantum: int
    phase: int
    spans: tuple[tuple[int, int | None], ...]
    """From when to when turns are taken; None: to the end of the run."""

    @property
    def wait(self) -> int:
        """Returns the longest time in ns between two turns of a guest, the second of which may begin late."""
        return self.quantum * (len(self.guests) - 1) + int(LATE * self.quantum)

    @property
    def who(self) -> str:
        """Returns the guests as text."""
        return f"{', '.join(self.guests[:-1])} and {self.guests[-1]}"

    def whose(self, at: int) -> str | None:
        """Returns the guest whose turn it is; None while no turns are taken, and all run."""
        begin = self._begin(at)
        if begin is None:
            return None
        return self.guests[(at - begin - self.phase) // self.quantum % len(self.guests)]

    def change(self, at: int) -> int | None:
        """Returns the first time after ``at`` at which another guest's turn may begin, or turns begin or end;
        None if there is none.
        """
        edges = [edge for span in self.spans for edge in span if edge is not None and edge > at]
        begin = self._begin(at)
        if begin is not None:
            edges.append(at + self.quantum - (at - begin - self.phase) % self.quantum)
        return min(edges, default=None)

    def count(self, until: int) -> int:
        """Returns how many turns begin before ``until``. The first of a span may begin within its length."""
        found = 0
        for begin, end in self.spans:
            last = (until if end is None else min(until, end)) - 1
            if last >= begin:
                found += (last - begin - self.phase) // self.quantum - -self.phase // self.quantum + 1
        return found

    def _begin(self, at: int) -> int | None:
        found = (begin for begin, end in self.spans if begin <= at and (end is None or at < end))
        return next(found, None)


def plans(scenario: Scenario) -> tuple[TurnsPlan, ...]:
    """Returns the turns of a checked scenario."""
    return tuple(
        TurnsPlan(name, tuple(said.nodes), int(said.quantum), int(said.phase), tuple(_spans(scenario, name)))
        for name, said in scenario.turns.items()
    )


def _spans(scenario: Scenario, name: str) -> Iterator[tuple[int, int | None]]:
    begin = 0 if scenario.turns[name].active else None
    for event in sorted(scenario.events, key=lambda event: event.at):
        if event.turns != name:
            continue
        if event.action == "start" and begin is None:
            begin = int(event.at)
        elif event.action == "stop" and begin is not None:
            if event.at > begin:
                yield begin, int(event.at)
            begin = None
    if begin is not None:
        yield begin, None
