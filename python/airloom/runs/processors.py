"""Modelled processors in virtual time: what guests have worked there."""

from __future__ import annotations

from airloom.results.details import ProcessorUse
from airloom.runs.emulation import World
from airloom.units.text import measured_percent


def of(world: World) -> tuple[ProcessorUse, ...]:
    """Returns what each guest of a processor has worked, in their order; none in wall time."""
    found = world.pacer.worked() if world.pacer is not None else []
    return tuple(ProcessorUse.model_validate(one) for one in found)


def notes(world: World) -> list[str]:
    """Returns a note for each processor: how busy it was, and for whom."""
    passed = world.now()
    if not passed:
        return []
    used = of(world)
    made = []
    for processor in world.plan.processors:
        shares = {one.guest: one.nanoseconds / passed for one in used if one.processor == processor.name}
        named = ", ".join(f"{guest} {measured_percent(share)}" for guest, share in shares.items())
        busy = measured_percent(sum(shares.values()))
        made.append(f"processor {processor.name} was busy for {busy} of the time: {named}")
    return made
