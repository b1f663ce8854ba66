"""Kernel interfaces of the daemon: host routes, a TUN interface, sockets for whole IP packets."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from ipaddress import IPv4Address

RTM_NEWLINK, RTM_NEWROUTE, RTM_DELROUTE = 16, 24, 25
NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_CREATE = 1, 4, 0x100, 0x400
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY = 1, 4, 5, 6
RT_TABLE_MAIN, RTPROT_AODV, RT_SCOPE_UNIVERSE, RT_SCOPE_LINK, RT_SCOPE_NOWHERE = 254, 200, 0, 253, 255
RTN_UNICAST = 1
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
IFF_UP, IFLA_MTU = 1, 4
SIOCGIFMTU = 0x8921
ETH_P_IP = 0x0800
SO_ATTACH_FILTER = 26
HEADER = 20
"""Octets of an IPv4 header without options."""


class Routes:
    """IPv4 routes through rtnetlink."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._netlink.bind((0, 0))
        self._sequence = 0

    def set(self, destination: IPv4Address, interface: str, gateway: IPv4Address, metric: int = 0) -> None:
        """Routes ``destination`` through ``gateway``, or directly if both are equal."""
        scope = RT_SCOPE_LINK if gateway == destination else RT_SCOPE_UNIVERSE
        attributes = _attribute(RTA_DST, destination.packed) + _out(interface) + _metric(metric)
        if gateway != destination:
            attributes += _attribute(RTA_GATEWAY, gateway.packed)
        self._route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, 32, scope, attributes)

    def remove(self, destination: IPv4Address, interface: str, metric: int = 0) -> None:
        """Removes the route to ``destination``, if it exists."""
        attributes = _attribute(RTA_DST, destination.packed) + _out(interface) + _metric(metric)
        try:
            self._route(RTM_DELROUTE, 0, 32, RT_SCOPE_NOWHERE, attributes)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise

    def catch_all(self, interface: str) -> None:
        """Sets the default route to ``interface``."""
        self._route(RTM_NEWROUTE, NLM_F_CREATE, 0, RT_SCOPE_LINK, _out(interface))

    def up(self, interface: str, mtu: int) -> None:
        """Sets ``interface`` up, with this MTU in octets."""
        head = struct.pack("BxHiII", socket.AF_UNSPEC, 0, socket.if_nametoindex(interface), IFF_UP, IFF_UP)
        self._ask(RTM_NEWLINK, 0, head + _attribute(IFLA_MTU, struct.pack("I", mtu)))

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


class Tun:
    """A TUN interface: reads the packets that the kernel routes to it."""

    def __init__(self, name: str):
        self.name = name
        self._tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self._tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))

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
            if len(packet) >= HEADER and packet[0] >> 4 == 4:
                return packet


class Output:
    """A raw socket that sends whole IP packets by the kernel's routes, on ``interface`` if it is given."""

    def __init__(self, interface: str | None):
        self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._raw.setblocking(False)
        if interface is not None:
            self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())

    def send(self, packet: bytes) -> None:
        """Sends a packet to the destination in its header."""
        try:
            self._raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
        except OSError:
            # Like the kernel's own queue: a packet that cannot leave now is lost.
            return


class Copies:
    """A packet socket that reads the headers of an interface's IPv4 packets."""

    def __init__(self, interface: str, only_to: IPv4Address | None = None):
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        if only_to is not None:
            self._filter(only_to)
        self._socket.bind((interface, ETH_P_IP))
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Returns the descriptor, for a selector."""
        return self._socket.fileno()

    def read(self) -> bytes | None:
        """Returns the first octets of the next packet, or None."""
        try:
            return self._socket.recv(64)
        except BlockingIOError:
            return None

    def _filter(self, only_to: IPv4Address) -> None:
        """Leaves only packets to this address, by a filter in the kernel (classic BPF)."""
        load_destination = struct.pack("HBBI", 0x20, 0, 0, 16)
        equal = struct.pack("HBBI", 0x15, 0, 1, int(only_to))
        keep, drop = struct.pack("HBBI", 0x06, 0, 0, 64), struct.pack("HBBI", 0x06, 0, 0, 0)
        program = ctypes.create_string_buffer(load_destination + equal + keep + drop)
        described = struct.pack("HxxxxxxP", 4, ctypes.addressof(program))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, described)


def mtu(interface: str) -> int:
    """Returns the MTU of an interface in octets (SIOCGIFMTU)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16si12x", interface.encode()[:15], 0)
        return struct.unpack_from("i", fcntl.ioctl(any_socket.fileno(), SIOCGIFMTU, request), 16)[0]


def _out(interface: str) -> bytes:
    return _attribute(RTA_OIF, struct.pack("i", socket.if_nametoindex(interface)))


def _metric(metric: int) -> bytes:
    return _attribute(RTA_PRIORITY, struct.pack("I", metric)) if metric else b""


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
