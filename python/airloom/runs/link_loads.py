"""The load of links: what waits in their queues, what they drop, mark and carry, now and over time."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloom.errors import LabError, ScenarioError
from airloom.runs.emulation import World
from airloom.runs.sampler import Sampler

DIRECTIONS = ("forward", "backward")
USUAL = 100_000_000
"""Time between samples in ns, unless the scenario says it."""
USUAL_OF_MANY = 1_000_000_000
"""The same of a network with more than :data:`MANY` links."""
MANY = 100

_NUMBERS = 7
_FIELDS = struct.Struct(f"<{_NUMBERS}Q")

Series = tuple[str, str, str, str, list[int], list[float]]
"""Measurement, metric, unit, link with its direction; times in ns and values."""


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """One direction of a link at an instant. Counts are totals since the start, without retransmissions
    of a lower layer; octets have the Ethernet header, not the check sequence.
    """

    at: int
    """Time since the start in ns."""
    queue: int
    """Frames in the queue; the one on the wire is not among them."""
    queue_octets: int
    sent: int
    """Frames that have reached the far end."""
    sent_octets: int
    dropped: int
    """Frames dropped in the queue or on the wire."""
    marked: int
    """Frames marked with ECN Congestion Experienced."""
    busy: int
    """Time in ns for which frames occupied the wire; 0 without a rate."""

    def utilization_since(self, before: LinkLoad) -> float:
        """Returns the share of the time since an earlier reading for which the wire was occupied."""
        span = self.at - before.at
        return min(1.0, max(0.0, (self.busy - before.busy) / span)) if span > 0 else 0.0


def require_direction(word: str) -> None:
    """Raises :class:`~airloom.ScenarioError` for a word that is not one of :data:`DIRECTIONS`."""
    if word not in DIRECTIONS:
        raise ScenarioError("word.unknown", f"{word!r} is no direction", cure="forward or backward")


def load_of(engine: Any, names: Mapping[str, int], link: str, direction: str) -> LinkLoad:
    """Returns the load of a link now. ``names``: the number of each link of the engine."""
    at, octets = engine.link_loads()
    place = 2 * names[link] + DIRECTIONS.index(direction)
    return LinkLoad(at, *_FIELDS.unpack_from(octets, place * _FIELDS.size))


def loads_of(engine: Any) -> list[LinkLoad]:
    """Returns the loads of all links now, in the engine's order: forward and backward of each."""
    at, octets = engine.link_loads()
    return [LinkLoad(at, *numbers) for numbers in _FIELDS.iter_unpack(octets)]


def numbers_of(engine: Any) -> dict[str, int]:
    """Returns the number of each link of the engine."""
    return {name: number for number, name in enumerate(engine.ledger()["links"])}


class _Track:
    """The samples of one direction."""

    def __init__(self, rated: bool) -> None:
        self.rated = rated
        self.times = array("q")
        self.values: dict[str, array[float]] = {metric: array("d") for metric in _METRICS}

    def add(self, now: LinkLoad, before: LinkLoad) -> None:
        """Adds a sample."""
        self.times.append(now.at)
        found = {
            "queue": now.queue,
            "queue_octets": now.queue_octets,
            "dropped": now.dropped - before.dropped,
            "marked": now.marked - before.marked,
            "rate": (now.sent_octets - before.sent_octets) * 8e9 / (now.at - before.at),
            "utilization": now.utilization_since(before),
        }
        for metric, value in found.items():
            self.values[metric].append(value)


_METRICS = {
    "queue": "packets",
    "queue_octets": "octets",
    "dropped": "packets",
    "marked": "packets",
    "rate": "bit/s",
    "utilization": "1",
}
"""Metrics and their units; drops and marks are those since the sample before."""
_OF_RATED = ("queue", "queue_octets", "utilization")
"""Metrics that a link without a rate does not have."""


class LinkWatch(Sampler):
    """Samples the links of an emulation, if it has any."""

    _skips = True

    def __init__(self, world: World) -> None:
        said = world.plan.scenario.engine.link_interval
        links = world.plan.links
        usual = USUAL if len(links) <= MANY else USUAL_OF_MANY
        interval = usual if said is None else int(said)
        super().__init__(world, interval / 1e9, "linkwatch", at_once=True)
        self._there = bool(links) and interval > 0
        self._names: list[str] = []
        self._before: tuple[int, Any] | None = None
        self._tracks: dict[int, _Track] = {}

    def __enter__(self) -> LinkWatch:
        return super().__enter__() if self._there else self

    def series(self) -> Iterator[Series]:
        """Queue, drops, marks, rate and utilization of each direction from its first frame on."""
        for place in sorted(self._tracks):
            track = self._tracks[place]
            whose = f"{self._names[place // 2]} {DIRECTIONS[place % 2]}"
            times = list(track.times)
            for metric, unit in _METRICS.items():
                if track.rated or metric not in _OF_RATED:
                    yield ("link", metric, unit, whose, times, list(track.values[metric]))

    def _sample(self) -> None:
        if not self._there:
            return
        try:
            at, octets = self._world.engine.link_loads()
            now = np.frombuffer(octets, "<u8").reshape(-1, _NUMBERS)
            if len(now) > len(DIRECTIONS) * len(self._names):  # links may be added meanwhile
                self._names = list(numbers_of(self._world.engine))
        except LabError:
            return  # the engine has ended; earlier samples remain
        if self._before is None or len(now) != len(self._before[1]):
            self._before = (at, now)
            return
        since, before = self._before
        if at <= since:
            return
        self._before = (at, now)
        for place in np.flatnonzero((now != before).any(axis=1)).tolist():
            if place not in self._tracks and place // 2 < len(self._names):
                self._tracks[place] = _Track(self._is_rated(place))
        for place, track in self._tracks.items():
            track.add(LinkLoad(at, *now[place].tolist()), LinkLoad(since, *before[place].tolist()))

    def _is_rated(self, place: int) -> bool:
        """Whether a direction has a rate, so that frames may wait for it."""
        link = self._world.plan.links.get(self._names[place // 2])
        if link is None:
            return True
        settings = self._world.link_settings(link.name)[DIRECTIONS[place % 2]]
        return settings.mean_rate is not None
