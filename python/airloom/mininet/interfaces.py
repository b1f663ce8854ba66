"""Creates and configures interfaces of a running node, in a thread inside its namespace."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import TypeVar

from pyroute2 import IPRoute

from airloom.errors import HostError, RunError
from airloom.host.interfaces import TUN, Interfaces, close_tap, open_tap
from airloom.host.network_namespace import within
from airloom.mininet.log import debug
from airloom.planning.plan import OffloadsPlan

_Value = TypeVar("_Value")

_GLOBAL = 0
"""Scope of a global address (``rtnetlink(7)``)."""
_NO_DAD = 0x02
"""``IFA_F_NODAD``: the address is usable at once."""
NOTICED = 2.0
"""Seconds within which the kernel of a busy machine notices a carrier."""


@dataclass(frozen=True, slots=True)
class Tap:
    """A node's TAP interface and its file descriptor."""

    name: str
    descriptor: int
    mac: str


def make_tap(namespace: int, name: str, keep: bool) -> Tap:
    """Creates a TAP interface in a namespace; it is up and has no address.

    ``keep``: the interface lives until the namespace ends, and is removed together with all others,
    which is faster; otherwise closing the descriptor removes it.
    """
    if not 0 < len(name.encode()) < 16:
        raise RunError(
            "mininet.interface-name",
            f"interface {name!r}: the kernel's names have 1 to 15 octets",
            cure="give nodes shorter names, or links intfName1 and intfName2",
        )
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise HostError("host.tun-device", f"{TUN} cannot be opened", cure="modprobe tun")

    def act(interfaces: Interfaces) -> Tap:
        descriptor = open_tap(name, persistent=keep)
        try:
            mac = interfaces.mac(name).hex(":")
            interfaces.set_up(name)
        except OSError:
            os.close(descriptor)
            raise
        return Tap(name, descriptor, mac)

    made = _in(namespace, name, act)
    debug(f"*** {name}: TAP interface {made.mac}, up\n")
    return made


def remove_tap(tap: Tap) -> None:
    """Closes the last descriptor, which removes the interface."""
    with contextlib.suppress(OSError):
        close_tap(tap.descriptor)


def move_interface(namespace: int, other: int, name: str) -> None:
    """Moves an interface to another namespace and sets it up there."""

    def act(_: Interfaces) -> None:
        with IPRoute() as route:
            (index,) = route.link_lookup(ifname=name)
            route.link("set", index=index, net_ns_fd=other)

    _in(namespace, name, act)
    debug(f"*** {name}: in another namespace\n")
    set_up(other, name, True)


def set_address(namespace: int, name: str, address: IPv4Interface | IPv6Interface) -> None:
    """Replaces the first IPv4 address of an interface, or its global IPv6 addresses, and sets it up."""

    def act(interfaces: Interfaces) -> None:
        interfaces.set_up(name)
        if isinstance(address, IPv4Interface):
            interfaces.set_address(name, address)
            return
        with IPRoute() as route:
            (index,) = route.link_lookup(ifname=name)
            route.flush_addr(index=index, family=socket.AF_INET6, scope=_GLOBAL)
            route.addr(
                "add",
                index=index,
                address=str(address.ip),
                prefixlen=address.network.prefixlen,
                family=socket.AF_INET6,
                flags=_NO_DAD,
            )

    _in(namespace, name, act)
    debug(f"*** {name}: address {address}, up\n")


def set_mac(namespace: int, name: str, mac: str) -> None:
    """Sets the MAC address of an interface."""

    def act(interfaces: Interfaces) -> None:
        # Down in between, so that the kernel derives the link-local IPv6 address anew.
        interfaces.set_up(name, False)
        interfaces.set_mac(name, bytes.fromhex(mac.replace(":", "")))
        interfaces.set_up(name)

    _in(namespace, name, act)
    debug(f"*** {name}: MAC address {mac}\n")


def set_offloads(namespace: int, name: str, offloads: OffloadsPlan) -> None:
    """Sets the offloads of an interface that its kernel decides on, as ``ethtool -K`` does."""
    _in(
        namespace,
        name,
        lambda interfaces: interfaces.set_offloads(
            name, transmit=offloads.transmit, receive=offloads.receive
        ),
    )
    words = ", ".join(
        f"{word} {'on' if on else 'off'}"
        for word, on in (("tx", offloads.transmit), ("rx, gro", offloads.receive))
    )
    debug(f"*** {name}: offloads {words}\n")


def set_up(namespace: int, name: str, up: bool) -> None:
    """Sets an interface up or down."""
    _in(namespace, name, lambda interfaces: interfaces.set_up(name, up))
    debug(f"*** {name}: {'up' if up else 'down'}\n")


def await_carrier(namespace: int, name: str) -> None:
    """Waits until the kernel has noticed an interface's carrier, for :data:`NOTICED` at most.

    The kernel does so at once, unless other processes hold the lock of its interfaces.
    """

    def act(interfaces: Interfaces) -> None:
        deadline = time.monotonic() + NOTICED
        while not interfaces.is_running(name) and time.monotonic() < deadline:
            time.sleep(0.001)

    _in(namespace, name, act)


def is_up(namespace: int, name: str) -> bool:
    """True if an interface is up."""
    return _in(namespace, name, lambda interfaces: interfaces.is_up(name))


def _in(namespace: int, name: str, act: Callable[[Interfaces], _Value]) -> _Value:
    """Returns the result of ``act``, called in a namespace."""

    def work() -> _Value:
        with Interfaces() as interfaces:
            return act(interfaces)

    try:
        return within(namespace, work)
    except OSError as error:
        raise RunError("mininet.interface", f"interface {name}: {error.strerror}") from None
