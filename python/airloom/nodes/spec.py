"""Converts node plans to the specification that the engine module expects: ``netns/src/spec.rs``."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from zlib import crc32

from airloom.planning.plan import InterfacePlan, NodePlan

_SEED = "net.ipv4.fib_multipath_hash_seed"
"""Seed of a node's hash of flows, of both families; kernels have it from 6.11 on."""


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
                "tap": interface.name not in wired and interface.wlan is None and not interface.bridge,
                "bridge": list(interface.bridge),
                "offloads": {
                    "transmit": interface.offloads.transmit,
                    "receive": interface.offloads.receive,
                },
            }
            for interface in interfaces
        ],
        "routes": [
            {
                "to": route.to,
                "via": route.via,
                "interface": route.interface,
                "more": [{"via": via, "interface": name} for via, name in route.more if name in names],
            }
            for route in plan.routes
            if route.interface in names
        ],
        "neighbours": [
            {
                "address": one.address,
                "mac": one.mac,
                "interface": one.interface,
                "permanent": one.permanent,
            }
            for one in plan.neighbours
        ],
        "forwarding": plan.forwarding,
        "ipv6": _speaks_ipv6(plan, interfaces),
        "sysctl": _without_ipv6(plan, interfaces)
        | {key: str(value) for key, value in (_division(plan) | dict(plan.sysctl)).items()},
    }


def _without_ipv6(plan: NodePlan, interfaces: Sequence[InterfacePlan]) -> dict[str, str]:
    """Disables IPv6 on the members of a bridge, which has the addresses."""
    if not _speaks_ipv6(plan, interfaces):
        return {}
    return {
        f"net/ipv6/conf/{member}/disable_ipv6": "1" for interface in interfaces for member in interface.bridge
    }


def _division(plan: NodePlan) -> dict[str, str]:
    """Returns the settings by which a node divides flows among next hops of equal cost.

    The hash is that of addresses and ports (RFC 2992). Where all nodes had one seed, the second router
    of a path would find only flows of one half of the values of the first one, and use one next hop.
    """
    if not any(route.more for route in plan.routes):
        return {}
    versions = {ip_address(route.via).version for route in plan.routes if route.more}
    found = {f"net.ipv{version}.fib_multipath_hash_policy": "1" for version in sorted(versions)}
    if plan.guest is None and Path("/proc/sys", _SEED.replace(".", "/")).exists():
        found[_SEED] = str(crc32(plan.name.encode()) or 1)
    return found


def no_longer_divided(before: NodePlan, after: NodePlan) -> dict[str, str]:
    """Returns the settings of a new node for those by which a node divided flows, and does so no more."""
    return dict.fromkeys(_division(before).keys() - _division(after).keys() - {_SEED}, "0")


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
