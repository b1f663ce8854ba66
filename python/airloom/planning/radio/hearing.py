"""How many pairs of radios can hear each other during a run.

Radios hear each other if one receives the other's power, by the propagation and motion that the run will
have, at or above its threshold of reception; fading and noise are left out. Moving radios are looked at
:data:`LOOKS` times over the run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from airloom.errors import translated
from airloom.planning.radio.interference import FLOOR_DBM, RECEIVE_DBM
from airloom.units.given import given

if TYPE_CHECKING:
    from airloom.planning.plan import MediumPlan, Plan, RadioPlan

LOOKS = 12
"""Times over a run at which moving radios are looked at, of few of them."""
PAIRS = 600_000
"""Pairs that are computed at most: with many radios fewer times, and beyond that none."""
USUAL = 60_000_000_000
"""Length of a run without a duration, ns."""


def pairs(plan: Plan, nodes: Collection[str]) -> int:
    """Returns the number of ordered pairs of radios of these nodes in which one hears the other."""
    return sum(_in(medium, nodes, given(plan.scenario.duration, USUAL)) for medium in plan.media.values())


def _in(medium: MediumPlan, nodes: Collection[str], length: int) -> int:
    radios = [one for one in medium.radios if one.port.partition(":")[0] in nodes]
    squared = len(radios) * (len(radios) - 1)
    if not squared or squared > PAIRS:
        return 0
    moves = len({one.mover for one in radios if one.motion}) > 0
    looks = max(1, min(LOOKS, PAIRS // squared)) if moves else 1
    from airloom import _engine

    heard: set[tuple[str, str]] = set()
    with translated():
        engine = _engine.Engine(1)
        engine.add_medium(medium.name, {**medium.settings, "floor_dbm": FLOOR_DBM})
        for radio in medium.radios:
            engine.add_memory_port(radio.port)
            engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.mover)
        for look in range(looks):
            if look:
                engine.step(length * look // (looks - 1))
            heard |= {
                (one.port, other.port)
                for one in radios
                for other in radios
                if one is not other
                and (one.port, other.port) not in heard
                and engine.signal(one.port, other.port) >= _threshold(other)
            }
    return len(heard)


def _threshold(radio: RadioPlan) -> float:
    return float(radio.settings.get("receive_dbm", RECEIVE_DBM))
