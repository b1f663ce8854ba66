"""Radios of the nodes' own 802.11 stacks: which ports they are, and what did not reach their medium."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airloom.errors import translated
from airloom.planning.plan import Plan
from airloom.runs.emulation import World

_FIVE_MHZ = 5000
"""Between the bands at 2.4 and 5 GHz."""
_SIX_MHZ = 5925
"""Lower edge of the band at 6 GHz, which no physical layer here has."""
_NAMED = 3
"""Frequencies, and radios, that a note names."""


def ports(plan: Plan) -> frozenset[str]:
    """The ports of wireless devices."""
    return frozenset(
        f"{node.name}:{interface.name}"
        for node in plan.nodes.values()
        for interface in node.interfaces
        if interface.wlan is not None
    )


def notes(world: World) -> Iterator[str]:
    """What the stacks sent in vain: outside the bands of their radio, or by a radio without a port."""
    stacks = ports(world.plan)
    if not stacks:
        return
    with translated():
        radios, guests = world.engine.radios(), world.engine.guests()
    for radio in radios:
        if radio["foreign"]:
            yield outside_note(radio["port"], str(radio["settings"]["phy"]), radio["foreign"])
    for port, state in guests.items():
        if state["unserved"]:
            yield unserved_note(port.partition(":")[0], state["unserved"])


def outside_note(port: str, phy: str, frames: Mapping[int, int]) -> str:
    """The note on frames at frequencies where a radio has no channel."""
    most = sorted(frames.items(), key=lambda one: -one[1])
    named = ", ".join(f"{mhz} MHz" for mhz, _ in most[:_NAMED])
    more = f" and {len(most) - _NAMED} other frequencies" if len(most) > _NAMED else ""
    cure = "no phy has that frequency"
    if any(_FIVE_MHZ < mhz < _SIX_MHZ for mhz in frames):
        cure = "phy: 802.11a has 5 GHz, phy: 802.11abg both bands"
    elif any(mhz < _FIVE_MHZ for mhz in frames):
        cure = "phy: 802.11bg has 2.4 GHz, phy: 802.11abg both bands"
    return (
        f"{port}: programs of the node sent {sum(frames.values()):,} frames at {named}{more}, where the "
        f"radio has no channel with `phy: {phy}`; nobody heard them (outside-band); {cure}"
    )


def unserved_note(node: str, radios: list[str]) -> str:
    """The note on radios that a program of a node created."""
    named = ", ".join(radios[:_NAMED])
    more = f" and {len(radios) - _NAMED} more" if len(radios) > _NAMED else ""
    return (
        f"{node}: {named}{more} of its kernel sent frames that nobody heard: a program of the node created "
        f"the radio, and the medium has none for it; add one under `radios` of the node"
    )
