"""Interfaces for a machine behind those of the host: a TAP for the machine, and a bridge between the two.

Everything is in the node's own network namespace, by the ioctls of ``netdevice(7)``, the bridge's
(kernel, ``include/uapi/linux/sockios.h``) and ``/dev/net/tun``; no program is started.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct

from airloom.errors import HostError
from airloom.nodes.within import within

_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_TUNSETIFF = 0x400454CA
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFMTU = 0x8913, 0x8914, 0x8922
_SIOCGIFINDEX, _SIOCSIFHWADDR = 0x8933, 0x8924
_SIOCBRADDBR, _SIOCBRADDIF = 0x89A0, 0x89A2
_IFF_UP, _ARPHRD_ETHER = 1, 1
_LOCAL = 0x04
"""A bit of a locally administered address that Airloom's own never have set."""


def join(namespace: int, interface: str, number: int, mac: str, mtu: int) -> int:
    """The descriptor of a TAP whose frames go through an interface of a namespace as if it were that one.

    The interface gives up its address ``mac`` for one that nobody has, since the machine has it from now on.
    """

    def act() -> int:
        bridge, tap = f"bridge{number}", tap_name(number)
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            request = struct.pack("16sH22x", tap.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
            fcntl.ioctl(descriptor, _TUNSETIFF, request)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
                _unless_there(asker, _SIOCBRADDBR, bridge.encode() + b"\0")
                _hide(asker, interface, mac)
                for name in (interface, tap):
                    fcntl.ioctl(asker, _SIOCSIFMTU, struct.pack("16si20x", name.encode(), mtu))
                    index = struct.unpack_from("i", _ask(asker, _SIOCGIFINDEX, name), 16)[0]
                    _unless_there(asker, _SIOCBRADDIF, struct.pack("16si20x", bridge.encode(), index))
                for name in (interface, tap, bridge):
                    flags = struct.unpack_from("H", _ask(asker, _SIOCGIFFLAGS, name), 16)[0]
                    fcntl.ioctl(asker, _SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), flags | _IFF_UP))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    try:
        return within(namespace, act)
    except OSError as error:
        raise HostError(
            "host.bridge",
            f"this kernel puts no machine behind {interface} by a bridge: {error.strerror}",
            cure="modprobe bridge tun",
        ) from None


def tap_name(number: int) -> str:
    """The machine's TAP of an interface, by the interface's number in its node."""
    return f"machine{number}"


def _hide(asker: socket.socket, interface: str, mac: str) -> None:
    octets = bytearray.fromhex(mac.replace(":", ""))
    octets[0] = (octets[0] | 0x02) ^ _LOCAL
    request = struct.pack("16sH6s16x", interface.encode(), _ARPHRD_ETHER, bytes(octets))
    fcntl.ioctl(asker, _SIOCSIFHWADDR, request)


def _unless_there(asker: socket.socket, request: int, argument: bytes) -> None:
    try:
        fcntl.ioctl(asker, request, argument)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.EBUSY):
            raise


def _ask(asker: socket.socket, request: int, name: str) -> bytes:
    return fcntl.ioctl(asker, request, struct.pack("16s24x", name.encode()))
