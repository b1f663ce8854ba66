"""Compares the events of a running laboratory with those of a changed scenario.

Events that have been are facts: both scenarios must have them. Those to come may go, come and change. The
engine schedules its changes of links and radios ahead; their settings at a time follow from all events and
tables before, so that they are all scheduled anew if one differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airloom.planning import timed_changes
from airloom.planning.plan import Plan
from airloom.scenario.model import Event
from airloom.scenario.problems import Problem
from airloom.units.text import seconds


@dataclass(slots=True)
class EventDifference:
    """Events that go and come, and what cannot change."""

    removed: list[Event] = field(default_factory=list)
    """Events to come that do not happen."""
    added: list[Event] = field(default_factory=list)
    """Events to come that are new."""
    reschedules: bool = False
    """Whether the engine gets other timed changes than it has."""
    steps: list[tuple[Literal["+", "-"], str, str]] = field(default_factory=list)
    """Each change: sign, when, and what in words."""
    problems: list[Problem] = field(default_factory=list)


def compare(before: Plan, after: Plan, now: int, by_hand: Sequence[Event]) -> EventDifference:
    """Returns what changes at engine time ``now`` in ns.

    ``by_hand``: events of ``before`` that its file does not have. Those that have been stay all the same.
    """
    found = EventDifference()
    mine = _without(before.scenario.events, [event for event in by_hand if event.at <= now])
    found.removed = _without(mine, after.scenario.events)
    found.added = _without(after.scenario.events, mine)
    found.steps += _steps(found, found.removed, now, "-")
    found.steps += _steps(found, found.added, now, "+")
    found.reschedules = _scheduled(before, now) != _scheduled(after, now)
    return found


def _steps(
    found: EventDifference, events: Sequence[Event], now: int, sign: Literal["+", "-"]
) -> Iterator[tuple[Literal["+", "-"], str, str]]:
    for event in sorted(events, key=lambda event: event.at):
        if event.at <= now:
            found.problems.append(has_been(event, now, is_new=sign == "+"))
        else:
            yield sign, f"event at {seconds(event.at)}", timed_changes.describe(event)


def has_been(event: Event, now: int, *, is_new: bool) -> Problem:
    """Returns the refusal of an event that cannot come or go any more."""
    what = f"the event at {seconds(event.at)} ({timed_changes.describe(event)})"
    how = "cannot be added" if is_new else "cannot be taken out"
    cure = "give it a later time" if is_new else "leave it in the file as it is"
    return Problem("apply.event", f"{what} {how}: it is {seconds(now)} already", ("events",), cure)


def _without(events: Sequence[Event], others: Sequence[Event]) -> list[Event]:
    """Returns the events that the others do not have; of equal ones, those that are more."""
    left, found = list(others), []
    for event in events:
        if event in left:
            left.remove(event)
        else:
            found.append(event)
    return found


def _scheduled(plan: Plan, now: int) -> Any:
    """Returns the changes that the engine makes later than ``now``."""
    links, radios = timed_changes.link_changes(plan), timed_changes.radio_changes(plan)
    return [one for one in links if one.at > now], [one for one in radios if one.at > now]
