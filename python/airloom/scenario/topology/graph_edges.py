"""The properties of a graph's edges: from its own attributes, its ends' coordinates and their rates."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError

from airloom.scenario.model import Direction, GraphAttributes
from airloom.scenario.problems import Problem
from airloom.scenario.topology.geography import Place, fibre_delay
from airloom.units import foreign
from airloom.units.quantities import Duration, Rate
from airloom.units.reading import UnitError

WHERE = ("topology", "file")


def number(value: Any, where: str, least: float, most: float) -> float:
    """Returns a number in a range; raises :class:`Problem`."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not least <= found <= most:
        raise wrong(where, f"{value!r} is not a number from {least:g} to {most:g}")
    return found


def wrong(where: str, why: str) -> Problem:
    """Returns the problem of a value of the file."""
    return Problem(
        "topology.attribute",
        f"{where}: {why}",
        WHERE,
        "correct the file, or set the attribute to null under 'attributes' to leave it unread",
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


class EdgeReader:
    """Reads the two directions of edges. ``said`` has the attributes of nodes by name."""

    def __init__(
        self,
        attributes: GraphAttributes,
        places: dict[str, Place],
        said: dict[str, dict[str, Any]],
    ):
        self._attributes = attributes
        self._places = places
        self._most = {
            name: {
                way: self._rate(f"node {name}: {word}", of_node[word])
                for way, word in (("up", attributes.up), ("down", attributes.down))
                if word is not None and of_node.get(word) is not None
            }
            for name, of_node in said.items()
        }

    def directions(
        self, ends: tuple[str, str], said: dict[str, Any]
    ) -> tuple[Direction | None, Direction | None]:
        """Returns the properties of an edge from its first end, and those back if they differ."""
        common = self._properties(ends, said)
        forward, backward = (self._limited(common, *way) for way in (ends, ends[::-1]))
        made = self._made(ends, forward)
        return made, None if backward == forward else self._made(ends, backward)

    def _properties(self, ends: tuple[str, str], said: dict[str, Any]) -> dict[str, Any]:
        """Returns an edge's properties; those with the names of link properties take precedence."""
        words, where = self._attributes, f"edge {ends[0]}-{ends[1]}"
        found: dict[str, Any] = {}
        read = set()

        def value(word: str | None) -> Any:
            if word is None or said.get(word) is None:
                return None
            read.add(word)
            return said[word]

        speed = value(words.rate)
        if speed is not None and "trace" not in said:
            found["rate"] = self._rate(f"{where}: {words.rate}", speed)
        if ends[0] in self._places and ends[1] in self._places:
            found["delay"] = Duration(fibre_delay(self._places[ends[0]], self._places[ends[1]]))
        delay, jitter, loss = value(words.delay), value(words.jitter), value(words.loss)
        if delay is not None:
            found["delay"] = self._duration(f"{where}: {words.delay}", delay)
        if jitter is not None:
            width = self._duration(f"{where}: {words.jitter}", jitter)
            found |= {"jitter": {"uniform": width}} if width else {}
        if loss is not None:
            found["loss"] = number(loss, f"{where}: {words.loss}", 0, 1)
        return found | {
            key: one for key, one in said.items() if key in Direction.model_fields and key not in read
        }

    def _limited(self, common: dict[str, Any], sender: str, receiver: str) -> dict[str, Any]:
        """Returns the properties with a rate of at most what the two ends can send and receive."""
        limits = [
            found
            for node, way in ((sender, "up"), (receiver, "down"))
            if (found := self._most[node].get(way)) is not None
        ]
        if not limits or "trace" in common:
            return common
        if "rate" in common:
            own = common["rate"]
            try:
                limits.append(own if isinstance(own, Rate) else Rate(str(own)))
            except UnitError as error:
                raise wrong(f"edge {sender}-{receiver}: rate", error.message) from None
        return {**common, "rate": min(limits)}

    def _rate(self, where: str, value: Any) -> Rate:
        unit = int(self._attributes.rate_unit)
        if isinstance(value, str) and not _is_number(value):
            try:
                return foreign.rate(value)
            except UnitError as error:
                raise wrong(where, error.message) from None
        return Rate(round(number(value, where, 1 / unit, 1e12 / unit) * unit))

    def _duration(self, where: str, value: Any) -> Duration:
        if isinstance(value, str) and not _is_number(value):
            try:
                return foreign.duration(value)
            except UnitError as error:
                raise wrong(where, error.message) from None
        unit = int(self._attributes.delay_unit)
        return Duration(round(number(value, where, 0, 3.6e12 / unit) * unit))

    def _made(self, ends: tuple[str, str], found: dict[str, Any]) -> Direction | None:
        try:
            return Direction.model_validate(found) if found else None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))
            raise Problem(
                "topology.file", f"edge {ends[0]}-{ends[1]}: {place}: {first['msg']}", WHERE
            ) from None
