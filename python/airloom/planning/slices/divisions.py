"""What keeps slices apart that have overlapping channels, and how long a slice waits for its slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from airloom.planning import timed_changes
from airloom.planning.radio.channels import mhz_of
from airloom.planning.slices import codes, hopping
from airloom.planning.slices.spans import within

if TYPE_CHECKING:
    from airloom.planning.plan import Plan, RadioPlan

SLOTS = "different time slots"
CODES = "orthogonal codes"
HOPS = "hopping sequences that never meet"
TURNS = "no radio at the same time"


@dataclass(frozen=True, slots=True)
class Division:
    """Two slices with overlapping channels that nevertheless do not disturb each other."""

    one: str
    other: str
    channels: tuple[int, int]
    """A channel of each that overlap."""
    by: str
    """One of the constants of this module."""

    @property
    def text(self) -> str:
        """The division in words."""
        mine, theirs = self.channels
        on = f"channel {mine}" if mine == theirs else f"channels {mine} and {theirs}, which overlap"
        return f"{self.one} and {self.other} share {on}, with {self.by}"


def over_time(plan: Plan) -> list[Division]:
    """Returns the divisions by the grants of the start and of each later change, each once."""
    found = (one for at, then in timed_changes.granted(plan) for one in _at(then, at))
    return list(dict.fromkeys(found))


def _at(plan: Plan, at: int) -> Iterator[Division]:
    for medium in plan.media.values():
        slices: dict[str, list[RadioPlan]] = {}
        for radio in medium.radios:
            if radio.grant is not None:
                slices.setdefault(radio.grant.slice, []).append(radio)
        for one, other in combinations(slices, 2):
            channels = _shared(slices[one], slices[other])
            by = None if channels is None else _divided(slices[one], slices[other], at)
            if channels is not None and by is not None:
                yield Division(one, other, channels, by)


def _shared(one: list[RadioPlan], other: list[RadioPlan]) -> tuple[int, int] | None:
    """Returns the lowest channels of two grants that overlap."""
    from airloom import _engine

    mine, theirs = (
        sorted({channel for radio in radios if radio.grant for channel in radio.grant.channels})
        for radios in (one, other)
    )
    pairs = ((a, b) for a in mine for b in theirs)
    return next((pair for pair in pairs if _engine.overlap(*map(mhz_of, pair)) > 0), None)


def _divided(one: list[RadioPlan], other: list[RadioPlan], at: int) -> str | None:
    if not all(_is_on(radios, at) for radios in (one, other)):
        return TURNS
    if in_turn(one[0].settings, other[0].settings):
        return SLOTS
    if code_factor(one[0].settings, other[0].settings) == 0:
        return CODES
    hops = [radios[0].settings.get("hops") for radios in (one, other)]
    if None not in hops and not _meet(*hops):
        return HOPS
    return None


def _is_on(radios: list[RadioPlan], at: int) -> bool:
    return any(radio.grant is not None and within(radio.grant.held, at) for radio in radios)


def _meet(one: Any, other: Any) -> bool:
    from airloom import _engine

    pairs = hopping.pairs(hopping.channels(one), hopping.channels(other))
    return any(_engine.overlap(mhz_of(mine), mhz_of(theirs)) > 0 for mine, theirs in pairs)


def in_turn(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the radios of two slices, given their settings, have no time slot in common."""
    mine, theirs = one.get("slots"), other.get("slots")
    return mine is not None and theirs is not None and not {*mine["own"]} & {*theirs["own"]}


def code_factor(sender: dict[str, Any], receiver: dict[str, Any]) -> float:
    """Returns the share of the sender's power that the receiver's code passes."""
    return codes.factor(sender.get("code"), receiver.get("code"))


def longest_wait(slots: dict[str, Any]) -> int:
    """Returns the longest time in ns between two windows of a slice's slots.

    A window ends a guard time before its last slot does, so the wait for the next one is
    ``gap * length + guard`` with the largest number of foreign slots in a row.
    """
    own, frame = sorted(slots["own"]), slots["frame"]
    gaps = [(after - before - 1) % frame for before, after in zip(own, [*own[1:], own[0]], strict=True)]
    gap = max(gaps) if len(own) < frame else 0
    return int(gap * slots["length_ns"] + slots["guard_ns"]) if gap else 0
