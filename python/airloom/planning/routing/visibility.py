"""Links that are up only in some intervals, such as those of satellites: as timed events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airloom.planning import tables
from airloom.planning.network import Network
from airloom.scenario.model import Event, Link, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.quantities import Duration

Interval = tuple[Duration, Duration]
"""Time from the start, at which the link comes up, to the end, at which it goes down."""


def intervals_of(link: Link) -> Sequence[Interval]:
    """Returns the intervals in which a link is up. Raises :class:`~airloom.planning.tables.TableError`."""
    said = link.visibility
    return tables.intervals(said) if isinstance(said, str) else said or ()


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with intervals, and events that contradict them."""
    names = {wire.path[1]: wire.name for wire in network.wires if wire.path[0] == "links"}
    timed = {names[index]: index for index, link in enumerate(scenario.links) if link.visibility is not None}
    for index in timed.values():
        path: Path_ = ("links", index, "visibility")
        try:
            found = intervals_of(scenario.links[index])
        except tables.TableError as error:
            yield Problem(error.code, error.message, path, error.cure)
            continue
        yield from _order(found, path, in_file=isinstance(scenario.links[index].visibility, str))
    for number, event in enumerate(scenario.events):
        if event.link in timed and event.action in ("up", "down"):
            yield Problem(
                "link.visibility",
                f"the link {event.link!r} goes up and down by its visibility",
                ("events", number, "action"),
                "leave the event out, or change the visibility",
            )


def _order(found: Sequence[Interval], path: Path_, *, in_file: bool) -> Iterator[Problem]:
    before = Duration(0)
    for number, (start, end) in enumerate(found):
        where = path if in_file else (*path, number)
        if start >= end:
            yield Problem(
                "link.visibility", f"the interval ends at {end.text}, not after {start.text}", where
            )
            return
        if start < before:
            yield Problem(
                "link.visibility",
                f"the interval from {start.text} starts before the end of another at {before.text}",
                where,
                "intervals ascend and do not overlap",
            )
            return
        before = end


def with_events(scenario: Scenario, network: Network) -> Scenario:
    """Returns the checked scenario with events in place of visibility.

    Changes after the end of the run are left out: a trace may be longer than the run.
    """
    if all(link.visibility is None for link in scenario.links):
        return scenario
    events = list(scenario.events)
    links = list(scenario.links)
    for wire in network.wires:
        if wire.path[0] != "links":
            continue
        link = scenario.links[int(wire.path[1])]
        if link.visibility is None:
            continue
        events += [
            # The passes may be those of a day: they keep no run going.
            Event(at=at, link=wire.name, action="up" if up else "down", awaited=False)
            for at, up in _changes(intervals_of(link))
            if scenario.duration is None or at <= scenario.duration
        ]
        links[int(wire.path[1])] = link.model_copy(update={"visibility": None, "name": wire.name})
    return scenario.model_copy(update={"events": events, "links": links})


def _changes(intervals: Sequence[Interval]) -> Iterator[tuple[Duration, bool]]:
    """Yields the times at which a link, which is up at first, goes up (True) and down (False)."""
    before = Duration(0)
    for start, end in intervals:
        if start > before:
            yield before, False
            yield start, True
        before = end
    yield before, False
