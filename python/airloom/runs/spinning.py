"""Programs in virtual time that called their kernel over and over without waiting: what they were charged."""

from __future__ import annotations

from airloom.results.details import Spun
from airloom.runs.emulation import World
from airloom.units.text import duration

_NAMED = 5
"""Most programs in the verdict's notes; ``details.json`` has all."""


def of(world: World) -> tuple[Spun, ...]:
    """Returns the programs that were charged time, those with the most first; none in wall time."""
    found = world.pacer.spun() if world.pacer is not None else []
    spun = (Spun.model_validate(one) for one in found)
    return tuple(sorted(spun, key=lambda one: (-one.nanoseconds, one.guest, one.program)))


def notes(world: World) -> list[str]:
    """Returns the notes for the verdict."""
    return [
        f"virtual.spun: {one.program or 'other programs'} of guest {one.guest} called the kernel "
        f"{one.calls:,} times more than is free, without waiting: {duration(one.nanoseconds)} of virtual "
        "time were charged"
        for one in of(world)[:_NAMED]
    ]
