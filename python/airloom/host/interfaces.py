"""Configures network interfaces with the ioctls of ``netdevice(7)`` and of bridges.

All calls act on the network namespace of the calling thread (see
:mod:`airloom.host.network_namespace`) and raise :class:`OSError` if the kernel refuses.

pyroute2 does the same over netlink, but opens an event loop for each socket. Setting address, MTU
and state of 50 TAPs takes 288 ms with it and 0.9 ms with ioctls; one interface takes 7.9 ms and
0.01 ms. Guests and Mininet networks are brought up interface by interface.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from ipaddress import IPv4Interface
from types import TracebackType
from typing import Self

# <linux/if_tun.h>
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR, _IFF_TUN_EXCL = 0x0002, 0x1000, 0x4000, 0x8000
_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB
# <linux/sockios.h>
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFMTU = 0x8913, 0x8914, 0x8922
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFBRDADDR = 0x8916, 0x891C, 0x891A
_SIOCGIFHWADDR, _SIOCSIFHWADDR, _SIOCGIFINDEX = 0x8927, 0x8924, 0x8933
_SIOCBRADDBR, _SIOCBRADDIF = 0x89A0, 0x89A2
_SIOCETHTOOL = 0x8946
# <linux/ethtool.h>: scatter and gather, checksums, TSO and GSO; checksums and GRO
_OFFLOADS_SENT, _OFFLOADS_RECEIVED = (0x19, 0x17, 0x1F, 0x24), (0x15, 0x2C)
_IFF_UP, _IFF_RUNNING, _ARPHRD_ETHER = 1, 0x40, 1

TUN = "/dev/net/tun"


def open_tap(name: str, *, persistent: bool = False) -> int:
    """Creates a TAP with virtio-net headers; returns the file descriptor of its user-space end.

    The interface is removed with the last descriptor or, if ``persistent``, with its namespace. An
    existing interface of that name belongs to another program and is never reused.
    """
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | _IFF_TUN_EXCL
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        if persistent:
            fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def close_tap(descriptor: int) -> None:
    """Closes a TAP's descriptor and removes the interface, persistent or not."""
    try:
        fcntl.ioctl(descriptor, _TUNSETPERSIST, 0)
    finally:
        os.close(descriptor)


class Interfaces:
    """Reads and sets properties of interfaces by name."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def is_up(self, name: str) -> bool:
        """True if an interface is up."""
        return bool(self._flags(name) & _IFF_UP)

    def is_running(self, name: str) -> bool:
        """True if the interface has a carrier that the kernel has noticed: before, it drops all frames."""
        return bool(self._flags(name) & _IFF_RUNNING)

    def set_up(self, name: str, up: bool = True) -> None:
        """Sets an interface up or down."""
        flags = self._flags(name) | _IFF_UP if up else self._flags(name) & ~_IFF_UP
        self._tell(_SIOCSIFFLAGS, "16sH22x", name, flags)

    def mac(self, name: str) -> bytes:
        """Returns the MAC address."""
        return self._ask(_SIOCGIFHWADDR, name)[2:8]

    def set_mac(self, name: str, mac: bytes) -> None:
        """Sets the MAC address."""
        self._tell(_SIOCSIFHWADDR, "16sH6s16x", name, _ARPHRD_ETHER, mac)

    def set_mtu(self, name: str, mtu: int) -> None:
        """Sets the MTU in octets."""
        self._tell(_SIOCSIFMTU, "16si20x", name, mtu)

    def set_offloads(self, name: str, *, transmit: bool, receive: bool) -> None:
        """Switches offloads of sent and of received frames on or off, those that the device has."""
        for commands, on in ((_OFFLOADS_SENT, transmit), (_OFFLOADS_RECEIVED, receive)):
            for command in commands:
                value = ctypes.create_string_buffer(struct.pack("II", command, on))
                request = struct.pack("16sP16x", name.encode(), ctypes.addressof(value))
                try:
                    fcntl.ioctl(self._socket, _SIOCETHTOOL, request)
                except OSError as error:
                    if error.errno != errno.EOPNOTSUPP:
                        raise

    def set_address(self, name: str, address: IPv4Interface) -> None:
        """Replaces the first IPv4 address; 0.0.0.0 removes it."""
        values = [(_SIOCSIFADDR, address.ip)]
        if not address.ip.is_unspecified:
            values.append((_SIOCSIFNETMASK, address.netmask))
            if address.network.prefixlen <= 30:
                values.append((_SIOCSIFBRDADDR, address.network.broadcast_address))
        for request, value in values:
            self._tell(request, "16sHH4s16x", name, socket.AF_INET, 0, value.packed)

    def add_bridge(self, name: str) -> None:
        """Creates a bridge unless it exists."""
        _unless_there(self._socket, _SIOCBRADDBR, name.encode() + b"\0")

    def add_to_bridge(self, bridge: str, name: str) -> None:
        """Adds an interface to a bridge unless it is already a port of one."""
        index = struct.unpack_from("i", self._ask(_SIOCGIFINDEX, name))[0]
        _unless_there(self._socket, _SIOCBRADDIF, struct.pack("16si20x", bridge.encode(), index))

    def _flags(self, name: str) -> int:
        flags: int = struct.unpack_from("H", self._ask(_SIOCGIFFLAGS, name))[0]
        return flags

    def _ask(self, request: int, name: str) -> bytes:
        """Returns the octets that the kernel writes after the name in a ``struct ifreq``."""
        answer: bytes = fcntl.ioctl(self._socket, request, struct.pack("16s24x", name.encode()))
        return answer[16:]

    def _tell(self, request: int, form: str, name: str, *values: int | bytes) -> None:
        fcntl.ioctl(self._socket, request, struct.pack(form, name.encode(), *values))


def _unless_there(asker: socket.socket, request: int, argument: bytes) -> None:
    try:
        fcntl.ioctl(asker, request, argument)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.EBUSY):
            raise
