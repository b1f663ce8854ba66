"""Bridges of access points as interfaces of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from airloom.planning.network import Bridge
from airloom.planning.plan import InterfacePlan, RoutePlan

_STEM = "br"


def with_bridge(
    interfaces: Sequence[InterfacePlan], members: set[str], bridge: Bridge | None
) -> tuple[InterfacePlan, ...]:
    """Returns the interfaces of a node with its bridge, br0, which has the addresses of its first radio.

    ``members``: its other members.
    """
    if bridge is None:
        return tuple(interfaces)
    names = {one.name for one in interfaces}
    name = next(word for number in range(len(names) + 1) if (word := f"{_STEM}{number}") not in names)
    first = next(one for one in interfaces if one.name == bridge.radios[0])
    joined = (first.name, *(one.name for one in interfaces if one.name in members))
    made = InterfacePlan(name, first.mac, first.mtu, first.addresses, first.link, bridge=joined)
    return (*(replace(one, addresses=()) if one is first else one for one in interfaces), made)


def over_bridges(interfaces: Iterable[InterfacePlan], routes: Iterable[RoutePlan]) -> list[RoutePlan]:
    """Returns routes over members of a bridge as routes over the bridge."""
    bridge_of = {member: one.name for one in interfaces for member in one.bridge}
    return [replace(route, interface=bridge_of.get(route.interface, route.interface)) for route in routes]
