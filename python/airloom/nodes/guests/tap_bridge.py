"""Connects a guest's machine to an interface of the host through a TAP and a bridge.

Everything is in the node's own network namespace.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from airloom.errors import HostError
from airloom.host.interfaces import Interfaces, open_tap
from airloom.host.network_namespace import within

_LOCAL = 0x04
"""A bit of a locally administered address that is never set in Airloom's own addresses."""


def join(namespace: int, interface: str, number: int, mac: str, mtu: int) -> int:
    """Creates a TAP bridged to an interface of a namespace. Returns its descriptor.

    The machine takes over the address ``mac``; the interface gets an unused one.
    """

    def act() -> int:
        bridge, tap = bridge_name(number), tap_name(number)
        descriptor = open_tap(tap)
        try:
            with Interfaces() as interfaces:
                interfaces.add_bridge(bridge)
                interfaces.set_mac(interface, _hidden(mac))
                for name in (interface, tap):
                    interfaces.set_mtu(name, mtu)
                    interfaces.add_to_bridge(bridge, name)
                for name in (interface, tap, bridge):
                    interfaces.set_up(name)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    try:
        return within(namespace, act)
    except OSError as error:
        raise HostError(
            "host.bridge",
            f"this kernel cannot bridge {interface} to the machine: {error.strerror}",
            cure="modprobe bridge tun",
        ) from None


def tap_name(number: int) -> str:
    """Name of the machine's TAP for an interface, by the interface's number in its node."""
    return f"machine{number}"


def as_one(counted: dict[str, dict[str, int]], interfaces: Sequence[str]) -> dict[str, dict[str, int]]:
    """Converts a namespace's counters to the machine's: drops of the TAP count as receive drops."""
    for number, interface in enumerate(interfaces):
        own = counted.pop(tap_name(number), None)
        if own is not None and interface in counted:
            counted[interface]["rx_dropped"] += own["tx_dropped"]
        counted.pop(bridge_name(number), None)
    return counted


def bridge_name(number: int) -> str:
    """Name of the bridge for an interface, by the interface's number in its node."""
    return f"bridge{number}"


def _hidden(mac: str) -> bytes:
    octets = bytearray.fromhex(mac.replace(":", ""))
    octets[0] = (octets[0] | 0x02) ^ _LOCAL
    return bytes(octets)
