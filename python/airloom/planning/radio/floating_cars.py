"""Floating-car data of SUMO: the places of vehicles and persons at the steps of a simulation.

A vehicle is on the road, and its radios are on, from the first step that has it until the first one
without it; it may come back. Between two steps it moves in a straight line. The ones of the last step
stay where they are. Written by ``sumo --fcd-output FILE``, with ``--fcd-output.geo`` in degrees.

Degrees become metres east and north of the south-west corner of all places, by an equirectangular
projection at the mean latitude: x = R * cos(lat) * (lon - west), y = R * (lat - south). Over 50 km its
error of distances is below 0.4 % up to 60 degrees of latitude.

Source: SUMO's user documentation, "FCD Output".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from airloom.errors import ScenarioError
from airloom.scenario.topology.geography import EARTH

Point = tuple[int, float, float, float]
"""Nanoseconds, and metres east, north and up."""
Switched = tuple[int, bool]
"""Nanoseconds, and whether the radios are on from then."""

MOST_POINTS = 10_000_000
"""Largest number of places in a file."""
_MOVERS = ("vehicle", "person", "container")
_DEGREES = 1e-3
"""Below this part of the way that their speeds mean, changes of place are degrees: 1 degree is about
10^5 m. """


@dataclass(slots=True)
class Cars:
    """The tracks by name, in the order of appearance, and what was found out about the file."""

    tracks: dict[str, tuple[list[Point], tuple[Switched, ...]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Car:
    points: list[Point] = field(default_factory=list)
    switched: list[Switched] = field(default_factory=list)
    step: int = -1
    """Number of the last step that has it."""


class _Reader:
    """Takes the elements in the order of the file."""

    def __init__(self) -> None:
        self.cars: dict[str, _Car] = {}
        self.step = -1
        self.at = 0
        self.present: set[str] = set()
        self.count = 0
        self.way = self.meant = 0.0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity

    def refuse(self, why: str) -> ScenarioError:
        return ScenarioError("movement.syntax", f"line {self.parser.CurrentLineNumber}: {why}")

    def _entity(self, *_: Any) -> None:
        raise self.refuse("an XML entity, which no floating-car data has")

    def _number(self, said: dict[str, str], key: str, most: float, default: str | None = None) -> float:
        text = said.get(key, default)
        try:
            value = float(text or "")
        except ValueError:
            value = math.nan
        if not abs(value) <= most:
            raise self.refuse(f"{key} is {text!r}, and no number")
        return value

    def _start(self, name: str, said: dict[str, str]) -> None:
        if name == "timestep":
            at = self._number(said, "time", 1e9)
            moment = round(at * 1e9)
            if moment < 0 or (self.step >= 0 and moment < self.at):
                raise self.refuse(f"the time {at:g} is below 0 or before that of the step before")
            self.step, self.at = self.step + 1, moment
        elif name in _MOVERS:
            if self.step < 0 or "id" not in said:
                raise self.refuse(f"a {name} outside a timestep, or without an id")
            self._place(said["id"], said)

    def _place(self, name: str, said: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_POINTS:
            raise self.refuse(f"more than {MOST_POINTS} places")
        point = (
            self.at,
            self._number(said, "x", 1e9),
            self._number(said, "y", 1e9),
            self._number(said, "z", 1e9, "0"),
        )
        car = self.cars.setdefault(name, _Car())
        if name not in self.present:
            if not car.points and self.at > 0:
                car.switched.append((0, False))
            if self.at > 0:
                car.switched.append((self.at, True))
                if car.points:
                    # It is off where it left, and comes back elsewhere.
                    car.points.append((self.at, *car.points[-1][1:]))
            self.present.add(name)
        elif car.points and car.step == self.step - 1:
            self.way += math.hypot(point[1] - car.points[-1][1], point[2] - car.points[-1][2])
            seconds = (self.at - car.points[-1][0]) / 1e9
            self.meant += abs(self._number(said, "speed", 1e6, "0")) * seconds
        car.points.append(point)
        car.step = self.step

    def _end(self, name: str) -> None:
        if name == "timestep":
            for gone in [one for one in self.present if self.cars[one].step != self.step]:
                self.cars[gone].switched.append((self.at, False))
                self.present.discard(gone)


def read(text: str, geographic: bool | None = None) -> Cars:
    """Returns the tracks of a file's text; raises :class:`ScenarioError`.

    ``geographic``: whether places are degrees; by default the speeds in the file tell.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        why = expat.errors.messages.get(error.code, str(error)) if isinstance(error.code, int) else str(error)
        raise ScenarioError("movement.syntax", f"line {error.lineno}: {why}") from None
    if not reader.cars:
        raise ScenarioError("movement.syntax", "the file moves no vehicle")
    degrees = geographic
    if degrees is None:
        places = [point for car in reader.cars.values() for point in car.points]
        fits = all(abs(x) <= 180 and abs(y) <= 90 for _, x, y, _ in places)
        degrees = fits and reader.meant > 1 and reader.way < _DEGREES * reader.meant
    notes: tuple[str, ...] = ()
    if degrees:
        notes = (_project(list(reader.cars.values())),)
    return Cars({name: (car.points, tuple(car.switched)) for name, car in reader.cars.items()}, notes)


def _project(cars: list[_Car]) -> str:
    """Turns degrees into metres; returns the note that says how."""
    places = [point for car in cars for point in car.points]
    west, south = min(place[1] for place in places), min(place[2] for place in places)
    north = max(place[2] for place in places)
    if south < -90 or north > 90:
        raise ScenarioError("movement.syntax", f"a latitude of {max(north, -south):g} degrees")
    metre = math.radians(1) * EARTH
    across = metre * math.cos(math.radians((south + north) / 2))
    for car in cars:
        car.points = [(at, (x - west) * across, (y - south) * metre, z) for at, x, y, z in car.points]
    return f"degrees of the movement are metres from its south-west corner, {south:.6g} north {west:.6g} east"
