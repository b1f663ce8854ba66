"""Interfaces of a node that is already up: made and configured from a thread that enters its namespace.

Addresses are set by the ioctls of netdevice(7), without starting a program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import TypeVar

from pyroute2 import IPRoute

from airloom.errors import HostError, RunError
from airloom.nodes.within import within

_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR, _IFF_TUN_EXCL = 0x0002, 0x1000, 0x4000, 0x8000
_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFBRDADDR = 0x8916, 0x891C, 0x891A
_SIOCGIFHWADDR, _SIOCSIFHWADDR = 0x8927, 0x8924
_IFF_UP = 1
_ARPHRD_ETHER = 1

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Tap:
    """A node's interface and the descriptor of its far end."""

    name: str
    descriptor: int
    mac: str


def make_tap(namespace: int, name: str, keep: bool) -> Tap:
    """Makes an interface in a namespace; it is up, and has no address.

    ``keep``: it goes with the namespace, not with the descriptor.
    """
    if not 0 < len(name.encode()) < 16:
        raise RunError(
            "mininet.interface-name",
            f"interface {name!r}: the kernel's names have 1 to 15 octets",
            cure="give nodes shorter names, or links intfName1 and intfName2",
        )

    def act() -> Tap:
        try:
            descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise HostError(
                "host.tun-device", f"/dev/net/tun: {error.strerror}", cure="modprobe tun"
            ) from None
        try:
            # Exclusive: an interface of that name that is there already is somebody else's.
            flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | _IFF_TUN_EXCL
            fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
            if keep:
                # The namespace deletes it with all others at once, which closing one by one does not.
                fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
            with _asking() as asker:
                mac = _ask(asker, _SIOCGIFHWADDR, name)[18:24].hex(":")
                _raise(asker, name)
        except OSError as error:
            os.close(descriptor)
            raise RunError("mininet.interface", f"interface {name}: {error.strerror}") from None
        return Tap(name, descriptor, mac)

    return within(namespace, act)


def remove_tap(tap: Tap) -> None:
    """The interface goes with the last descriptor."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(tap.descriptor, _TUNSETPERSIST, 0)
    os.close(tap.descriptor)


def move_interface(namespace: int, other: int, name: str) -> None:
    """Moves an interface to another namespace, where it is up again."""

    def act() -> None:
        with IPRoute() as route:
            (index,) = route.link_lookup(ifname=name)
            route.link("set", index=index, net_ns_fd=other)

    _named(namespace, name, act)
    set_up(other, name, True)


def set_address(namespace: int, name: str, address: IPv4Interface) -> None:
    """The first IPv4 address of an interface, which replaces the one before; it goes up."""

    def act() -> None:
        with _asking() as asker:
            for request, value in (
                (_SIOCSIFADDR, address.ip),
                (_SIOCSIFNETMASK, address.netmask),
                (_SIOCSIFBRDADDR, address.network.broadcast_address),
            ):
                if request == _SIOCSIFBRDADDR and address.network.prefixlen > 30:
                    continue
                packed = struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, value.packed)
                fcntl.ioctl(asker, request, packed)
            _raise(asker, name)

    _named(namespace, name, act)


def set_mac(namespace: int, name: str, mac: str) -> None:
    """The hardware address of an interface."""

    def act() -> None:
        octets = bytes.fromhex(mac.replace(":", ""))
        with _asking() as asker:
            packed = struct.pack("16sH6s16x", name.encode(), _ARPHRD_ETHER, octets)
            # Down in between, so that the kernel makes the link-local IPv6 address anew.
            _raise(asker, name, False)
            fcntl.ioctl(asker, _SIOCSIFHWADDR, packed)
            _raise(asker, name)

    _named(namespace, name, act)


def set_up(namespace: int, name: str, up: bool) -> None:
    """Takes an interface up or down."""

    def act() -> None:
        with _asking() as asker:
            _raise(asker, name, up)

    _named(namespace, name, act)


def is_up(namespace: int, name: str) -> bool:
    """Whether an interface is up."""

    def act() -> bool:
        with _asking() as asker:
            return bool(struct.unpack_from("H", _ask(asker, _SIOCGIFFLAGS, name), 16)[0] & _IFF_UP)

    return _named(namespace, name, act)


def _named(namespace: int, name: str, act: Callable[[], _Value]) -> _Value:
    try:
        return within(namespace, act)
    except OSError as error:
        raise RunError("mininet.interface", f"interface {name}: {error.strerror}") from None


def _asking() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _ask(asker: socket.socket, request: int, name: str) -> bytes:
    return fcntl.ioctl(asker, request, struct.pack("16s24x", name.encode()))


def _raise(asker: socket.socket, name: str, up: bool = True) -> None:
    flags = struct.unpack_from("H", _ask(asker, _SIOCGIFFLAGS, name), 16)[0]
    flags = flags | _IFF_UP if up else flags & ~_IFF_UP
    fcntl.ioctl(asker, _SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), flags))
