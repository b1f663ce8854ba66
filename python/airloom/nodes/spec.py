"""Converts node plans to the specification that the engine module expects: ``netns/src/spec.rs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airloom.planning.plan import InterfacePlan, NodePlan


def spec_of(plan: NodePlan, wired: set[str], radios: Sequence[int] = ()) -> dict[str, Any]:
    """The specification of a node; real interfaces are left out.

    ``wired``: the interfaces without a TAP, beside radios. ``radios``: the kernel's number of each
    radio, by its number in the plan; empty if these are the same.
    """
    interfaces = [interface for interface in plan.interfaces if interface.real is None]
    names = {interface.name for interface in interfaces}
    return {
        "name": plan.name,
        "interfaces": [
            {
                "name": interface.name,
                "mac": interface.mac,
                "radio": _radio(interface, radios),
                "mtu": interface.mtu,
                "addresses": [str(address) for address in interface.addresses],
                "tap": interface.name not in wired and interface.wlan is None,
            }
            for interface in interfaces
        ],
        "routes": [
            {"to": route.to, "via": route.via, "interface": route.interface}
            for route in plan.routes
            if route.interface in names
        ],
        "neighbours": [
            {"address": one.address, "mac": one.mac, "interface": one.interface} for one in plan.neighbours
        ],
        "forwarding": plan.forwarding,
        "ipv6": _speaks_ipv6(plan, interfaces),
        "sysctl": {key: str(value) for key, value in plan.sysctl.items()},
    }


def _radio(interface: InterfacePlan, radios: Sequence[int]) -> int | None:
    if interface.wlan is None:
        return None
    return radios[interface.wlan.number] if radios else interface.wlan.number


def _speaks_ipv6(plan: NodePlan, interfaces: Sequence[InterfacePlan]) -> bool:
    """Whether a node needs IPv6: an address, an explicit setting, or a routing daemon that may use
    link-local addresses. Other nodes have IPv6 disabled: they would send multicast reports, which a
    large hub floods to all ports.
    """
    return (
        any(address.version == 6 for interface in interfaces for address in interface.addresses)
        or any(key.replace("/", ".").startswith("net.ipv6") for key in plan.sysctl)
        or (plan.forwarding and not plan.routes)
    )
