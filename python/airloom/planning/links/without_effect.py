"""Notes on settings of links that have no effect because another one is not given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from airloom.planning.links import queues, series
from airloom.planning.network import Network, Wire
from airloom.scenario.model import Direction, Scenario


@dataclass(frozen=True, slots=True)
class _Pair:
    """A setting, and what it needs."""

    key: str
    said: Callable[[Direction], bool]
    needs: Callable[[Direction], bool]
    why: str


def _rate(one: Direction) -> bool:
    return one.trace is not None or one.rate not in (None, "unlimited")


def _jitter(one: Direction) -> bool:
    return one.jitter is not None and one.jitter != "none"


def _marks(one: Direction) -> bool:
    return one.queue is not None and one.queue.ecn


_PAIRS = (
    _Pair("jitter_reorders", lambda one: one.jitter_reorders is True, _jitter, "there is no jitter"),
    _Pair(
        "reorder",
        lambda one: bool(one.reorder),
        lambda one: _jitter(one) or bool(one.delay),
        "there is no delay that a frame could skip",
    ),
    _Pair("queue", lambda one: one.queue is not None, _rate, "without a rate no frame waits"),
    _Pair("overhead", lambda one: one.overhead is not None, _rate, "without a rate frames take no time"),
    _Pair("late", lambda one: one.late is not None, _rate, "without a rate there is none to keep"),
    _Pair(
        "queue.ecn",
        _marks,
        lambda one: one.queue is not None and one.queue.discipline != "drop-tail",
        "the discipline drop-tail marks nothing",
    ),
)


def notes(scenario: Scenario, network: Network) -> list[str]:
    """Returns a note for each setting that has no effect at any time of the run."""
    changes: dict[str, list[tuple[str, Direction]]] = {}
    for event in sorted(scenario.events, key=lambda one: one.at):
        if event.link is not None and event.set is not None:
            changes.setdefault(event.link, []).append((event.direction, event.set))
    found: dict[str, None] = {}
    for wire in network.wires:
        later = changes.get(wire.name, [])
        ways = [list(_over_time(wire, word, later)) for word in ("forward", "backward")]
        for pair in _PAIRS:
            said = [any(pair.said(one) for one in way) for way in ways]
            works = [any(pair.said(one) and pair.needs(one) for one in way) for way in ways]
            if any(said) and not any(works):
                found[f"{_place(wire)}.{pair.key} has no effect: {pair.why}"] = None
    return list(found)


def _place(wire: Wire) -> str:
    return f"links[{wire.path[1]}]" if wire.path[0] == "links" else "topology.link"


def _over_time(wire: Wire, word: str, changes: list[tuple[str, Direction]]) -> Iterator[Direction]:
    """Yields the properties of a direction at time zero and after each change."""
    now: Direction = getattr(wire, word)
    yield now
    steps = [("both", _at_most(now.series))] if now.series is not None else []
    steps += changes
    for direction, said in steps:
        if direction not in ("both", word):
            continue
        update = {key: value for key in said.model_fields_set if (value := getattr(said, key)) is not None}
        if said.queue is not None:
            update["queue"] = queues.merged(now.queue, said.queue)
        now = now.model_copy(update=update)
        yield now


@lru_cache(maxsize=64)
def _at_most(file: str) -> Direction:
    """Returns the properties that a table sets at any time, each with a value that is not zero, if any is."""
    found: dict[str, object] = {}
    for row in series.read(file):
        for key in row.said.model_fields_set:
            if (value := getattr(row.said, key)) and value != "none":
                found.setdefault(key, value)
    return Direction.model_construct(_fields_set=set(found), **found)
