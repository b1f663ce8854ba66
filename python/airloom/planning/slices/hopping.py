"""Hopping sequences of slices: admission, encoding for the engine, and how often two of them meet.

In dwell n sequence k of a set is on the channel at place (k + step * n) mod N of its N channels
(``medium/hops.rs``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from airloom.planning.radio.channels import BOTH, mhz_of, number_of
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest

if TYPE_CHECKING:
    from airloom.scenario.model import Grant, HopGrant, Hops, Scenario

_WIDTH = {"802.11a": 20, "802.11g": 20}
_FIVE_MHZ = 5000
_DSSS_WIDTH = 25
"""Least distance in MHz of channels without overlap (IEEE Std 802.11-2020, 17.3.8, 16.3.6)."""


def overlap(one: int, other: int, phy: str) -> bool:
    """Whether two channels of a physical layer overlap."""
    both = [mhz_of(one), mhz_of(other)]
    known = "802.11a" if phy == BOTH and min(both) > _FIVE_MHZ else phy
    return abs(both[0] - both[1]) < _WIDTH.get(known, _DSSS_WIDTH)


def settings(hops: Hops, grant: HopGrant, phy: str) -> dict[str, Any]:
    """Returns the sequence of a radio for the engine."""
    chosen = hops.sets[grant.set]
    return {
        "channels": [number_of(channel, phy) for channel in chosen.channels],
        "step": chosen.step,
        "sequence": grant.sequence,
        "dwell_ns": int(hops.dwell),
        "switch_ns": int(hops.switch),
    }


def channels(hops: Mapping[str, Any]) -> list[int]:
    """Returns the channels of a sequence, encoded for the engine, in each dwell of one period."""
    listed = hops["channels"]
    count = len(listed)
    return [listed[(hops["sequence"] + hops["step"] * dwell) % count] for dwell in range(count)]


def pairs(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the channels of two sequences in each dwell of their common period."""
    length = math.lcm(len(one), len(other))
    return [(one[dwell % len(one)], other[dwell % len(other)]) for dwell in range(length)]


def never_meet(hops: Hops | None, one: Grant, other: Grant, phy: str) -> bool:
    """Whether two slices of one medium are never on overlapping channels."""
    if hops is None or one.hops is None or other.hops is None:
        return False
    if not {one.hops.set, other.hops.set} <= hops.sets.keys():
        return False
    mine, theirs = (channels(settings(hops, grant, phy)) for grant in (one.hops, other.hops))
    return not any(overlap(a, b, phy) for a, b in pairs(mine, theirs))


def problems(
    scenario: Scenario, medium: str, name: str, granted: Sequence[int], phy: str
) -> Iterator[Problem]:
    """Checks that the medium has the sequence of the slice ``name``, and that its grant has the
    channels; ``granted``: their numbers.
    """
    hops, grant = scenario.media[medium].hops, scenario.slices[name].grant
    if grant is None or grant.hops is None:
        return
    path: Path_ = ("slices", name, "grant", "hops")
    if hops is None:
        cure = f"media: {{{medium}: {{hops: {{sets: {{{grant.hops.set}: {{channels: [36, 40]}}}}}}}}}}"
        yield Problem("slice.hops", f"the medium {medium!r} has no hopping sequences", path, cure)
        return
    chosen = hops.sets.get(grant.hops.set)
    if chosen is None:
        message = f"there is no set {grant.hops.set!r} of hopping sequences"
        yield Problem("slice.hops", message, (*path, "set"), nearest(grant.hops.set, sorted(hops.sets)))
        return
    where: Path_ = ("media", medium, "hops")
    count = len(chosen.channels)
    if hops.switch >= hops.dwell:
        message = "the change of the channel takes the whole dwell"
        yield Problem("slice.hops", message, (*where, "switch"), "make it shorter")
        return
    if math.gcd(chosen.step, count) != 1 or chosen.step >= count:
        message = f"with step {chosen.step} a sequence does not reach each of {count} channels once"
        good = [step for step in range(1, count) if math.gcd(step, count) == 1]
        cure = f"a step without common divisor with {count}: {', '.join(map(str, good))}"
        yield Problem("slice.hops", message, (*where, "sets", grant.hops.set, "step"), cure)
        return
    if grant.hops.sequence >= count:
        message = f"set {grant.hops.set!r} has no sequence {grant.hops.sequence}"
        cure = f"sequences are 0 to {count - 1}, one for each channel"
        yield Problem("slice.hops", message, (*path, "sequence"), cure)
        return
    numbers = [number_of(channel, phy) for channel in chosen.channels]
    for index, (number, channel) in enumerate(zip(numbers, chosen.channels, strict=True)):
        if number not in granted:
            yield Problem(
                "slice.hops",
                f"channel {getattr(channel, 'text', channel)} of set {grant.hops.set!r} is not one of the "
                f"grant of {name!r}",
                (*where, "sets", grant.hops.set, "channels", index),
                f"granted: {', '.join(map(str, granted))}",
            )
            return
    for (first, one), (second, other) in combinations(enumerate(numbers), 2):
        if overlap(one, other, phy):
            yield Problem(
                "slice.hops",
                f"channels {one} and {other} overlap, so sequences {first} and {second} would meet",
                (*where, "sets", grant.hops.set, "channels", second),
                "channels of a set lie 20 MHz apart, 25 MHz with 802.11b",
            )
            return
