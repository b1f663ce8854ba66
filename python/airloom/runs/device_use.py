"""Devices of the engine in virtual machines: their settings and counters for ``details.json``."""

from __future__ import annotations

from airloom.errors import translated
from airloom.results.details import DeviceUse
from airloom.runs.emulation import World


def devices_of(world: World) -> tuple[DeviceUse, ...]:
    """All such devices."""
    found = []
    with translated():
        states = world.engine.guests()
    for port, counts in states.items():
        plan = world.plan.nodes[port.partition(":")[0]]
        if plan.guest is None:
            continue
        handling = plan.guest.handling
        is_wlan = any(one.wlan is not None and f"{plan.name}:{one.name}" == port for one in plan.interfaces)
        found.append(
            DeviceUse(
                name=port,
                notifications=handling.notifications,
                frames=handling.frames,
                time_ns=handling.time,
                translation="stream" if is_wlan and plan.kind == "qemu" else handling.translation,
                entries=handling.entries,
                taken=counts["taken"],
                put=counts["put"],
                kicks=counts["kicks"],
                calls=counts["calls"],
                spared=counts["spared"],
                again=counts["again"],
                longest_hold_ns=counts["longest_hold_ns"],
                mapped=counts["mapped"],
                cache_hits=counts["cache_hits"],
                cache_misses=counts["cache_misses"],
                bounced_octets=counts["bounced_octets"],
            )
        )
    return tuple(found)
