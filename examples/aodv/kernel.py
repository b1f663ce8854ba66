"""Kernel interfaces of the daemon: host routes, a catch-all interface, a packet tap."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from ipaddress import IPv4Address

RTM_NEWLINK, RTM_NEWROUTE, RTM_DELROUTE = 16, 24, 25
NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_CREATE = 1, 4, 0x100, 0x400
RTA_DST, RTA_OIF, RTA_GATEWAY = 1, 4, 5
RT_TABLE_MAIN, RTPROT_AODV, RT_SCOPE_UNIVERSE, RT_SCOPE_LINK, RTN_UNICAST = 254, 200, 0, 253, 1
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
IFF_UP = 1


class Routes:
    """IPv4 host routes through rtnetlink."""

    def __init__(self, interface: str):
        self._index = socket.if_nametoindex(interface)
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._netlink.bind((0, 0))
        self._sequence = 0

    def set(self, destination: IPv4Address, gateway: IPv4Address) -> None:
        """Routes ``destination`` through ``gateway``, or directly if both are equal."""
        scope = RT_SCOPE_LINK if gateway == destination else RT_SCOPE_UNIVERSE
        attributes = _attribute(RTA_DST, destination.packed) + _attribute(
            RTA_OIF, struct.pack("i", self._index)
        )
        if gateway != destination:
            attributes += _attribute(RTA_GATEWAY, gateway.packed)
        self._route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, 32, scope, attributes)

    def remove(self, destination: IPv4Address) -> None:
        """Removes the route to ``destination``, if it exists."""
        try:
            self._route(RTM_DELROUTE, 0, 32, RT_SCOPE_UNIVERSE, _attribute(RTA_DST, destination.packed))
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise

    def catch_all(self, interface: str) -> None:
        """Sets the default route to ``interface``."""
        index = struct.pack("i", socket.if_nametoindex(interface))
        self._route(RTM_NEWROUTE, NLM_F_CREATE, 0, RT_SCOPE_LINK, _attribute(RTA_OIF, index))

    def up(self, interface: str) -> None:
        """Sets ``interface`` up."""
        index = socket.if_nametoindex(interface)
        self._ask(RTM_NEWLINK, 0, struct.pack("BxHiII", socket.AF_UNSPEC, 0, index, IFF_UP, IFF_UP))

    def _route(self, kind: int, flags: int, prefix: int, scope: int, attributes: bytes) -> None:
        head = struct.pack(
            "BBBBBBBBI", socket.AF_INET, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_AODV, scope, RTN_UNICAST, 0
        )
        self._ask(kind, flags, head + attributes)

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._sequence += 1
        head = struct.pack(
            "IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST | NLM_F_ACK, self._sequence, 0
        )
        self._netlink.send(head + body)
        answer = self._netlink.recv(8192)
        (code,) = struct.unpack_from("i", answer, 16)
        if code:
            raise OSError(-code, os.strerror(-code))


class CatchAll:
    """A TUN interface that receives the packets without a route."""

    def __init__(self, name: str):
        self.name = name
        self._tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self._tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._raw.setblocking(False)

    def fileno(self) -> int:
        """Returns the descriptor, for a selector."""
        return self._tun

    def read(self) -> bytes | None:
        """Returns the next IPv4 packet, or None."""
        while True:
            try:
                packet = os.read(self._tun, 65_536)
            except BlockingIOError:
                return None
            if len(packet) >= 20 and packet[0] >> 4 == 4:
                return packet

    def send(self, packet: bytes) -> None:
        """Sends a packet that waited, by the route found."""
        try:
            self._raw.sendto(packet, (str(IPv4Address(packet[16:20])), 0))
        except OSError:
            # Like the kernel's own queue: a packet that cannot leave now is lost.
            return


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
