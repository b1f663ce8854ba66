"""Movement traces of other tools: where each node of a file is, and when its radios are on.

Models ``ns-2``, ``bonnmotion`` and ``bonnmotion-3d`` are read by the engine, ``sumo`` (floating-car data)
by :mod:`airloom.planning.radio.floating_cars`. A file may be packed by gzip.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from airloom.errors import ScenarioError
from airloom.host.files import content
from airloom.planning.radio import floating_cars
from airloom.planning.radio.floating_cars import Point, Switched
from airloom.planning.tables import LARGEST, TableError
from airloom.scenario import formats
from airloom.scenario.model import Mobility

_READERS = {"ns-2": formats.NS2, "sumo": formats.SUMO}
"""The models whose files are recognised by content."""


@dataclass(frozen=True, slots=True)
class Track:
    """The places of one node, and the times at which its radios turn on or off."""

    points: list[Point]
    switched: tuple[Switched, ...] = ()

    def from_time(self, start: int) -> Track:
        """Returns the track with ``start`` (ns) as time zero."""
        if not start:
            return self
        after = bisect_right(self.points, start, key=lambda point: point[0])
        before = [(0, *self._between(after, start)[1:])] if after else []
        points = before + [(at - start, x, y, z) for at, x, y, z in self.points[after:]]
        past = [on for at, on in self.switched if at <= start]
        switched = [(0, past[-1])] if past else []
        return Track(points, tuple(switched + [(at - start, on) for at, on in self.switched if at > start]))

    def _between(self, after: int, at: int) -> Point:
        last = self.points[after - 1]
        if after == len(self.points):
            return last
        following = self.points[after]
        share = (at - last[0]) / (following[0] - last[0])
        x, y, z = (one + (other - one) * share for one, other in zip(last[1:], following[1:], strict=True))
        return (at, x, y, z)

    def on_at_zero(self) -> bool:
        """Returns whether the radios are on at time zero."""
        past = [on for at, on in self.switched if at == 0]
        return past[-1] if past else True

    def later(self) -> tuple[Switched, ...]:
        """Returns the switching after time zero, without what changes nothing."""
        state, found = self.on_at_zero(), []
        for at, on in self.switched:
            if at > 0 and on != state:
                found.append((at, on))
                state = on
        return tuple(found)


ALWAYS = Track([])
"""No place, and radios that are never switched."""


@dataclass(frozen=True, slots=True)
class Movements:
    """All tracks of a file, by number, and the numbers of nodes with names."""

    tracks: Mapping[int, Track]
    names: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def get(self, node: int | str) -> Track | None:
        """Returns the track of a node by its number or its name; None if it is not in the file."""
        number = self.names.get(node) if isinstance(node, str) else node
        return None if number is None else self.tracks.get(number)

    @property
    def known(self) -> list[str]:
        """Returns the names of the nodes, or their numbers if they have none."""
        return list(self.names) or [str(number) for number in self.tracks]


def movements(moves: Mobility) -> Movements:
    """Returns the tracks of the file of a movement; raises :class:`ScenarioError`."""
    return _read(moves.model, moves.file or "", int(moves.start or 0), moves.geographic)


@lru_cache(maxsize=8)
def _read(model: str, file: str, start: int, geographic: bool | None) -> Movements:
    text = _text(model, file)
    if model == "sumo":
        cars = floating_cars.read(text, geographic)
        tracks = {number: Track(*car) for number, car in enumerate(cars.tracks.values())}
        names = {name: number for number, name in enumerate(cars.tracks)}
        notes = cars.notes
    else:
        # The engine's reader is the only one; loaded here because few scenarios have traces.
        from airloom import _engine

        tracks = {
            number: Track(points, tuple(switched))
            for number, points, switched in _engine.read_movements(model, text)
        }
        names, notes = {}, ()
    return Movements({number: track.from_time(start) for number, track in tracks.items()}, names, notes)


def _text(model: str, file: str) -> str:
    """Returns the file's text; refuses a file of another format by its name."""
    try:
        octets = content(file, LARGEST)
        form = formats.recognise(octets)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError("file.unreadable", f"it cannot be read: {reason}") from None
    wanted = _READERS.get(model)
    if form is not None and (form.reads is None or form.reads != wanted):
        message, cure = formats.refusal(form, wanted or "")
        raise ScenarioError("movement.format", message, cure=cure)
    try:
        return formats.text(octets)
    except ValueError as error:
        raise TableError("file.unreadable", f"it cannot be read: {error}") from None
