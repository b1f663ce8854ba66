"""Asks this network namespace's kernel for the link-layer address towards an IP address.

The kernel resolves it itself, by ARP or neighbour discovery, as for its own packets.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Self

from airloom.errors import RunError

if TYPE_CHECKING:
    from pyroute2 import IPRoute

WITHIN = 10.0
"""Seconds for the answer of a neighbour."""
_POLL = 0.02
_NTF_USE = 1
"""<linux/neighbour.h>: resolve the entry now."""
_LOCAL, _BROADCAST, _MULTICAST = 2, 3, 5
"""<linux/rtnetlink.h>: types of routes."""


@dataclass(frozen=True, slots=True)
class Own:
    """An interface: index, MAC address, MTU in octets, and IP addresses."""

    index: int
    mac: bytes
    mtu: int
    addresses: frozenset[bytes]


class Neighbours:
    """The kernel's tables of neighbours and routes; close it after use."""

    def __init__(self, interface: str) -> None:
        from pyroute2 import IPRoute

        self._interface = interface
        self._kernel: IPRoute = IPRoute()
        try:
            self.own = self._read()
        except BaseException:
            self._kernel.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kernel.close()

    def _read(self) -> Own:
        found = self._kernel.link_lookup(ifname=self._interface)
        if not found:
            raise RunError("replay.interface", f"there is no interface {self._interface!r}")
        (link,) = self._kernel.get_links(found[0])
        mac = bytes.fromhex(link.get_attr("IFLA_ADDRESS").replace(":", ""))
        texts = [one.get_attr("IFA_ADDRESS") for one in self._kernel.get_addr(index=found[0])]
        addresses = frozenset(ip_address(text).packed for text in texts)
        return Own(found[0], mac, link.get_attr("IFLA_MTU"), addresses)

    def mac_towards(self, address: bytes) -> bytes:
        """Returns the MAC address to which frames for a packed IP address go: its own, or a router's.

        Raises :class:`~airloom.RunError` if no route leads there by the interface, or nobody answers.
        """
        target = ip_address(address)
        route = self._route(target)
        if route["type"] == _BROADCAST:
            return b"\xff" * 6
        if route["type"] == _MULTICAST or target.is_multicast:
            return _group(address)
        gateway = route.get_attr("RTA_GATEWAY") or str(target)
        self._kernel.neigh("replace", dst=gateway, ifindex=self.own.index, flags=_NTF_USE)
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            for entry in self._kernel.get_neighbours(ifindex=self.own.index, dst=gateway):
                mac = entry.get_attr("NDA_LLADDR")
                if mac and entry.get_attr("NDA_DST") == gateway:
                    return bytes.fromhex(mac.replace(":", ""))
            time.sleep(_POLL)
        raise RunError(
            "replay.neighbour", f"{gateway} does not answer on {self._interface} within {WITHIN:g} s"
        )

    def _route(self, target: IPv4Address | IPv6Address) -> Any:
        from pyroute2.netlink.exceptions import NetlinkError

        if target.is_multicast:
            return {"type": _MULTICAST}
        if target == IPv4Address("255.255.255.255"):
            return {"type": _BROADCAST}
        try:
            (route,) = self._kernel.route("get", dst=str(target))
        except NetlinkError as error:
            raise RunError("replay.route", f"there is no route to {target}: {error.args[-1]}") from None
        if route["type"] == _LOCAL:
            raise RunError("replay.route", f"{target} is an address of this node itself")
        if route.get_attr("RTA_OIF") != self.own.index:
            raise RunError("replay.route", f"the route to {target} does not leave by {self._interface}")
        return route


def _group(address: bytes) -> bytes:
    """Returns the MAC address of a group (RFC 1112 section 6.4, RFC 2464 section 7)."""
    if len(address) == 4:
        return bytes([1, 0, 0x5E, address[1] & 0x7F, address[2], address[3]])
    return b"\x33\x33" + address[12:]
