"""Nodes in the words of the engine module, which makes them: ``netns/src/spec.rs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airloom.plan import InterfacePlan, NodePlan


def spec_of(plan: NodePlan, wired: set[str]) -> dict[str, Any]:
    """A node; a real interface is not the node's."""
    interfaces = [interface for interface in plan.interfaces if interface.real is None]
    names = {interface.name for interface in interfaces}
    return {
        "name": plan.name,
        "interfaces": [
            {
                "name": interface.name,
                "mac": interface.mac,
                "mtu": interface.mtu,
                "addresses": [str(address) for address in interface.addresses],
                "tap": interface.name not in wired,
            }
            for interface in interfaces
        ],
        "routes": [
            {"to": route.to, "via": route.via, "interface": route.interface}
            for route in plan.routes
            if route.interface in names
        ],
        "forwarding": plan.forwarding,
        "ipv6": _speaks_ipv6(plan, interfaces),
        "sysctl": {key: str(value) for key, value in plan.sysctl.items()},
    }


def _speaks_ipv6(plan: NodePlan, interfaces: Sequence[InterfacePlan]) -> bool:
    """Whether a node needs IPv6: an address, a wish, or a router whose daemon may want link-local
    addresses. The others send no multicast reports, which a large hub would carry to everybody.
    """
    return (
        any(address.version == 6 for interface in interfaces for address in interface.addresses)
        or any(key.replace("/", ".").startswith("net.ipv6") for key in plan.sysctl)
        or (plan.forwarding and not plan.routes)
    )
