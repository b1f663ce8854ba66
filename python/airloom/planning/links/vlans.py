"""Virtual LANs: which of them a link carries at each switch, and the segments they form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from airloom.planning.links import areas
from airloom.planning.network import Network, Wire
from airloom.units.given import given

DEFAULT = 1
"""VLAN of a link without VLAN settings at a VLAN-aware switch (IEEE 802.1Q, 9.6)."""
EVERY = range(1, 4095)
"""All VLAN IDs; 0 and 4095 are reserved."""


def aware(network: Network) -> set[str]:
    """Returns the VLAN-aware switches: those with a link that sets VLANs, and all of their areas."""
    found = {end.name for wire in network.wires if wire.speaks_of_vlans for end in wire.ends}
    members = areas.of(network)
    knowing = {members[name] for name in found & members.keys()}
    return (found & set(network.switches)) | {name for name, first in members.items() if first in knowing}


def settings(network: Network, knowing: set[str], wire: Wire) -> tuple[dict[str, Any] | None, ...]:
    """Returns the settings of each end's switch (``VlanSettings`` in ``engine/src/settings.rs``)."""
    if not wire.speaks_of_vlans:
        return (None, None)
    if wire.vlan is not None:
        said: dict[str, Any] = {"access": {"vlan": wire.vlan}}
    else:
        allowed = EVERY if wire.trunk == "all" else wire.trunk or ()
        said = {"trunk": {"allowed": sorted(set(allowed)), "native": wire.native}}
    return tuple(said if end.name in knowing else None for end in wire.ends)


@dataclass(frozen=True, slots=True)
class Strand:
    """One VLAN on a link: with its tag, or untagged."""

    wire: int
    tag: int | None
    joins: tuple[tuple[str, int], ...]
    """VLANs of switches that it connects; 0 at a switch that is not VLAN-aware."""


def strands(network: Network) -> Iterator[Strand]:
    """Yields the strands of all links in order; for each link the untagged one first."""
    knowing = aware(network)
    known = {number for wire in network.wires for number in _numbers(wire)} | {DEFAULT}
    members = areas.of(network)
    for index, wire in enumerate(network.wires):
        ends = [end.name for end in wire.ends if end.name in network.switches]
        if areas.is_inner(wire, members) and ends[0] in knowing:
            yield Strand(index, None, ())
            for tag in sorted(known):
                yield Strand(index, tag, tuple((name, tag) for name in ends))
            continue
        bare = given(wire.vlan, wire.native if wire.trunk is not None else DEFAULT)
        joins = [(name, bare if name in knowing else 0) for name in ends]
        yield Strand(index, None, tuple((name, number) for name, number in joins if number is not None))
        if wire.trunk is not None:
            for tag in sorted(known if wire.trunk == "all" else set(wire.trunk)):
                if tag != wire.native:
                    yield Strand(index, tag, tuple((name, tag) for name in ends if name in knowing))


def _numbers(wire: Wire) -> list[int]:
    listed = [] if wire.trunk is None or wire.trunk == "all" else list(wire.trunk)
    return listed + [number for number in (wire.vlan, wire.native) if number is not None]
