"""A grant: what a slice may use in its window, and whether a setting of a radio is within it.

A run is held to its grant twice: before it starts, by what its scenario says, and in a shared laboratory,
by what it asks of the laboratory, which may be anything. Both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from airloom.scenario.suggest import listing
from airloom.units.quantities import Duration

_DIVISION = ("frame", "length_ns", "guard_ns")
"""Settings of a radio's slots that are the testbed's."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Why a setting is outside of a grant, and what is within it."""

    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class Grant:
    """What a slice may use in its window."""

    radios: dict[str, tuple[str, ...]]
    """Radios by node."""
    channels: tuple[int, ...]
    slots: tuple[int, ...]
    """Slots of the frame, counted from 0."""
    power_dbm: float
    """Largest transmit power."""

    @property
    def nodes(self) -> list[str]:
        """The nodes."""
        return list(self.radios)

    def plain(self) -> dict[str, Any]:
        """Returns the grant as data for JSON."""
        data: dict[str, Any] = _GRANT.dump_python(self, mode="json")
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Grant:
        """Returns the grant that :meth:`plain` gave as data."""
        return _GRANT.validate_python(data)

    def outside_radio(self, node: str, radio: str) -> Outside | None:
        """Returns why a radio of a node is not granted, or None."""
        if node not in self.radios:
            return Outside(f"the node {node!r} is not granted", f"granted: {listing(self.radios)}")
        if radio in self.radios[node]:
            return None
        cure = f"granted there: {listing(self.radios[node])}"
        return Outside(f"the radio {node}:{radio} is not granted", cure)

    def outside_channel(self, channel: object) -> Outside | None:
        """Returns why a channel is not granted, or None."""
        if type(channel) is int and channel in self.channels:
            return None
        return Outside(f"channel {_shown(channel)} is not granted", f"granted: {listing(self.channels)}")

    def outside_power(self, power: object) -> Outside | None:
        """Returns why a transmit power in dBm is not granted, or None."""
        # Not a number is not less than anything.
        if type(power) in (int, float) and power <= self.power_dbm:  # type: ignore[operator]
            return None
        return Outside(f"{_shown(power)} dBm are not granted", f"at most {self.power_dbm:g} dBm")

    def outside_slots(self, asked: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Outside]:
        """Yields what of a radio's slots is not granted.

        ``asked``: settings of the radio, in the engine's encoding. ``part``: those of all granted slots.
        """
        if any(asked.get(key) != part[key] for key in _DIVISION):
            length, guard = Duration(part["length_ns"]), Duration(part["guard_ns"])
            cure = f"slots: {{frame: {part['frame']}, length: {length.text}, guard: {guard.text}}}"
            yield Outside("its frame of slots is not the testbed's", cure)
        if asked.get("hold") is not True:
            yield Outside("its frames do not wait for their slots", "leave out hold: false")
        own: Sequence[object] = asked.get("own", ())
        strange = [slot for slot in own if type(slot) is not int or slot not in part["own"]]
        if strange:
            yield Outside(f"slot {_shown(strange[0])} is not granted", f"granted: {listing(part['own'])}")


_GRANT = TypeAdapter(Grant)


def _shown(value: object) -> str:
    """Returns a value of a message, which may be anything and of any length."""
    return f"{value:g}" if type(value) in (int, float) else str(value)[:16]
