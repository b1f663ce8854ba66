"""How data packets are forwarded: by the daemon itself, or by the kernel.

Both ways have a TUN interface with the default route, where packets without a route wait for a search.

``UserForwarding`` routes every packet into the TUN interface. The daemon reads it, extends the lifetimes
of the routes that it uses, and sends it on: one crossing to user space and one back for each packet and
node. Packets to the node itself are delivered by the kernel; the daemon reads a copy of their headers.
AODV-UU 0.8 did the same with a packet queue of the kernel.

``KernelForwarding`` gives the kernel the routes. The kernel forwards without waiting, and the daemon
reads a copy of each packet's headers.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Literal

import kernel

Way = Literal["user", "kernel"]
TUN = "aodv0"
BEHIND = 1
"""Metric of the routes to next hops: worse than that of the routes into the TUN interface."""


class UserForwarding:
    """The daemon forwards."""

    def __init__(self, interface: str, me: IPv4Address):
        self._interface = interface
        self.packets, self._routes = _prepared(interface)
        self.copies = kernel.Copies(interface, only_to=me)
        self._output = kernel.Output(interface)

    def install(self, destination: IPv4Address, gateway: IPv4Address) -> None:
        """Notes the next hop in the kernel, for sockets that are bound to the interface.

        Two routes of one length: a lookup takes that of the lower metric, into the TUN interface. A
        lookup for a given interface, as for the daemon's own sockets, takes that of its interface.
        """
        self._routes.set(destination, TUN, destination)
        self._routes.set(destination, self._interface, gateway, BEHIND)

    def remove(self, destination: IPv4Address) -> None:
        """Removes the next hop."""
        self._routes.remove(destination, self._interface, BEHIND)
        self._routes.remove(destination, TUN)

    def send(self, packet: bytes) -> None:
        """Sends a packet to its next hop."""
        self._output.send(packet)


class KernelForwarding:
    """The kernel forwards; the daemon sends only what waited for a route."""

    def __init__(self, interface: str, me: IPv4Address):
        self._interface = interface
        self.packets, self._routes = _prepared(interface)
        self.copies = kernel.Copies(interface)
        self._output = kernel.Output(None)

    def install(self, destination: IPv4Address, gateway: IPv4Address) -> None:
        """Gives the kernel a route."""
        self._routes.set(destination, self._interface, gateway)

    def remove(self, destination: IPv4Address) -> None:
        """Removes the kernel's route."""
        self._routes.remove(destination, self._interface)

    def send(self, packet: bytes) -> None:
        """Sends a packet by the kernel's route."""
        self._output.send(packet)


WAYS: dict[Way, type[UserForwarding | KernelForwarding]] = {
    "user": UserForwarding,
    "kernel": KernelForwarding,
}


def _prepared(interface: str) -> tuple[kernel.Tun, kernel.Routes]:
    """Returns the TUN interface, up and with the default route, and the routes of the kernel."""
    tun, routes = kernel.Tun(TUN), kernel.Routes()
    routes.up(TUN, kernel.mtu(interface))
    routes.catch_all(TUN)
    return tun, routes
