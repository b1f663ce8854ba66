"""Tests the real network below tunnels before a run starts: addresses, path MTU, reachability.

The kernel's route to the peer gives the local address, the interface and its MTU. An echo request
as long as the longest packet of the tunnel, with fragmentation forbidden, tests the rest of the
path. A peer that does not answer echo requests is accepted; an unreachable one is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from airloom.errors import HostError, ScenarioError
from airloom.host.internet_checksum import internet_checksum
from airloom.host.network_namespace import within
from airloom.planning.plan import Plan, TunnelPlan

_ANSWER = 1.0
"""Seconds to wait for an echo reply."""
_UNREACHABLE = 4.0
"""Seconds after which the kernel has given up address resolution of a neighbour."""
_SHORT = 64
"""Octets of a packet that every network carries."""
_GRE = 47
_RECEIVE_OCTETS, _SEND_OCTETS = 8 << 20, 4 << 20
_RTN_LOCAL = 2
# Options that Python's socket module does not define (linux/in.h, linux/in6.h, asm/socket.h).
_IP_MTU_DISCOVER, _IP_RECVERR, _IP_MTU = 10, 11, 14
_IPV6_MTU_DISCOVER, _IPV6_MTU, _IPV6_RECVERR = 23, 24, 25
_PMTUDISC_DONT, _PMTUDISC_DO = 0, 2
_SO_NO_CHECK, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 11, 32, 33
_PLACES = ("/run/netns", "/var/run/netns")

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Way:
    """The route to a peer."""

    interface: str
    mtu: int


@dataclass(frozen=True, slots=True)
class Sockets:
    """The receiving and the sending socket that the engine takes over."""

    receive: socket.socket
    send: socket.socket


def survey(plans: Iterable[Plan]) -> list[str]:
    """Refuses tunnels that cannot carry the nodes' packets. Returns what is undetermined."""
    seen: set[str] = set()
    notes = []
    for plan in plans:
        for tunnel in plan.tunnels.values():
            if repr(tunnel) not in seen:
                seen.add(repr(tunnel))
                note = _in_underlay(tunnel, partial(_survey, tunnel))
                notes += [note] if note else []
    return notes


@contextlib.contextmanager
def sockets(tunnel: TunnelPlan) -> Iterator[Sockets]:
    """Context manager: the sockets of a tunnel; the engine has duplicates of them."""
    made = _in_underlay(tunnel, partial(_sockets, tunnel))
    with made.receive, made.send:
        yield made


def _in_underlay(tunnel: TunnelPlan, act: Callable[[], _Value]) -> _Value:
    """Calls ``act`` in the network namespace of a tunnel's underlay."""
    if tunnel.namespace is None:
        return act()
    name = tunnel.namespace
    paths = [Path(name)] if "/" in name else [Path(place, name) for place in _PLACES]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        raise _error(
            tunnel,
            "namespace",
            f"there is no network namespace {name!r}",
            "make it by `ip netns add`, or give a path such as /proc/PID/ns/net",
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return within(descriptor, act)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _error(
            tunnel, "namespace", f"cannot enter the network namespace {name!r}: {error.strerror}", None
        ) from None


def _error(tunnel: TunnelPlan, code: str, message: str, cure: str | None) -> ScenarioError:
    return ScenarioError(f"tunnel.{code}", message, where=f"tunnels.{tunnel.name}", cure=cure)


def _survey(tunnel: TunnelPlan) -> str | None:
    """Raises an error if a tunnel cannot work. Returns a sentence if the peer does not answer."""
    way = _way(tunnel)
    if not tunnel.fragment and way.mtu < tunnel.outer:
        raise _too_small(tunnel, f"{way.interface} takes {way.mtu}", way.mtu, f"of {way.interface} ")
    with _echo_socket(tunnel) as echo:
        longest = _SHORT if tunnel.fragment else tunnel.outer
        found = echo.ask(longest, _ANSWER)
        if found == "silent" and echo.ask(_SHORT, _ANSWER) == "answered":
            # The first request may be lost during address resolution; the second cannot.
            found = echo.ask(longest, _ANSWER)
            if found == "silent":
                raise _too_small(
                    tunnel, f"only shorter packets come through to {tunnel.remote}", None, "of the path "
                )
        if found == "too big":
            raise _too_small(tunnel, f"the path to {tunnel.remote} takes {echo.mtu()}", echo.mtu(), "")
        if found == "silent":
            found = echo.wait(_UNREACHABLE - 2 * _ANSWER)
        if found == "unreachable":
            raise _error(
                tunnel,
                "peer",
                f"nothing at {tunnel.remote} answers: the network says that it cannot be reached",
                "start the other machine, or correct 'remote'",
            )
    if found == "silent":
        return (
            f"tunnel {tunnel.name}: {tunnel.remote} does not answer echo requests, so the MTU of "
            f"the path beyond {way.interface} is unknown"
        )
    return None


def _too_small(tunnel: TunnelPlan, but: str, mtu: int | None, of: str) -> ScenarioError:
    """The error, with the arithmetic."""
    overhead = tunnel.outer - tunnel.mtu
    parts = ", ".join(f"{name} {octets}" for name, octets in tunnel.headers)
    smaller = f"set mtu: {mtu - overhead} on its link" if mtu is not None else "set a smaller mtu on its link"
    return _error(
        tunnel,
        "mtu",
        f"the tunnel does not carry packets of {tunnel.mtu} octets: "
        f"{tunnel.mtu} + {overhead} ({parts}) = {tunnel.outer}, but {but}",
        f"{smaller}, raise the MTU {of}to {tunnel.outer}, or allow fragment: true",
    )


def _way(tunnel: TunnelPlan) -> Way:
    """The kernel's route to the peer."""
    from pyroute2 import IPRoute  # loads slowly, and few runs have a tunnel
    from pyroute2.netlink.exceptions import NetlinkError

    wanted = {"dst": str(tunnel.remote)}
    if tunnel.local is not None:
        wanted["src"] = str(tunnel.local)
        with socket.socket(_family(tunnel), socket.SOCK_DGRAM) as trial:
            try:
                trial.bind((wanted["src"], 0))
            except OSError:
                raise _not_own(tunnel) from None
    with IPRoute() as kernel:
        try:
            route = kernel.route("get", **wanted)[0]
        except NetlinkError as error:
            raise _error(
                tunnel,
                "route",
                f"this machine has no route to {tunnel.remote}: {os.strerror(error.code)}",
                "add one, or correct 'remote' or 'namespace'",
            ) from None
        if route["type"] == _RTN_LOCAL:
            raise _error(
                tunnel, "own", f"{tunnel.remote} is this machine's own address", "name the other machine's"
            )
        link = kernel.get_links(route.get_attr("RTA_OIF"))[0]
        metrics = route.get_attr("RTA_METRICS")
        limit = metrics.get_attr("RTAX_MTU") if metrics is not None else None
        mtu: int = link.get_attr("IFLA_MTU")
        return Way(str(link.get_attr("IFLA_IFNAME")), min(mtu, int(limit)) if limit else mtu)


def _not_own(tunnel: TunnelPlan) -> ScenarioError:
    return _error(
        tunnel, "local", f"{tunnel.local} is no address of this machine", "leave 'local' out, or correct it"
    )


class _Echo:
    """Echo requests to one peer (ICMP, ICMPv6), with fragmentation forbidden."""

    def __init__(self, tunnel: TunnelPlan, raw: socket.socket) -> None:
        self._raw = raw
        self._old = tunnel.remote.version == 4
        self._mark = os.urandom(4)
        raw.setblocking(False)
        if self._old:
            raw.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)
            raw.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        else:
            raw.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
            raw.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        _bind_and_connect(tunnel, raw)

    def __enter__(self) -> _Echo:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def ask(self, octets: int, seconds: float) -> Literal["answered", "too big", "unreachable", "silent"]:
        """Sends a packet of ``octets`` octets and waits for the outcome, at most ``seconds``."""
        head = 28 if self._old else 48
        message = bytes([8 if self._old else 128, 0, 0, 0]) + self._mark + bytes(octets - head)
        if self._old:
            message = message[:2] + struct.pack("!H", internet_checksum(message)) + message[4:]
        try:
            self._raw.send(message)
        except OSError as error:
            return _meaning(error)
        return self.wait(seconds)

    def wait(self, seconds: float) -> Literal["answered", "too big", "unreachable", "silent"]:
        """Waits for a reply to any earlier request, at most ``seconds``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self._raw, select.POLLIN)
            poll.poll(left * 1000)
            try:
                packet = self._raw.recv(65_536)
            except BlockingIOError:
                continue
            except OSError as error:
                return _meaning(error)
            body = packet[(packet[0] & 0xF) * 4 :] if self._old else packet
            if body[:1] == bytes([0 if self._old else 129]) and body[4:8] == self._mark:
                return "answered"
        return "silent"

    def mtu(self) -> int:
        """The path MTU that the kernel currently has for the peer."""
        level, option = (socket.IPPROTO_IP, _IP_MTU) if self._old else (socket.IPPROTO_IPV6, _IPV6_MTU)
        return int(self._raw.getsockopt(level, option))


def _meaning(error: OSError) -> Literal["too big", "unreachable", "silent"]:
    if error.errno == errno.EMSGSIZE:
        return "too big"
    # Other errors, such as a full neighbour table, are not about the peer.
    return "unreachable" if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH) else "silent"


def _echo_socket(tunnel: TunnelPlan) -> _Echo:
    if tunnel.remote.version == 4:
        return _Echo(tunnel, _raw(tunnel, socket.IPPROTO_ICMP))
    return _Echo(tunnel, _raw(tunnel, socket.IPPROTO_ICMPV6))


def _family(tunnel: TunnelPlan) -> socket.AddressFamily:
    return socket.AF_INET if tunnel.remote.version == 4 else socket.AF_INET6


def _raw(tunnel: TunnelPlan, protocol: int) -> socket.socket:
    try:
        return socket.socket(_family(tunnel), socket.SOCK_RAW, protocol)
    except PermissionError:
        raise HostError(
            "host.tunnel",
            f"the tunnel {tunnel.name} needs raw sockets in its underlay, and they are not permitted",
            where=f"tunnels.{tunnel.name}",
            cure="run as root, or give a network namespace of your own",
        ) from None


def _bind_and_connect(tunnel: TunnelPlan, made: socket.socket, port: int = 0) -> None:
    try:
        if tunnel.local is not None:
            made.bind((str(tunnel.local), 0))
        made.connect((str(tunnel.remote), port))
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _not_own(tunnel) from None
        raise _error(
            tunnel, "route", f"packets to {tunnel.remote} cannot be sent: {error.strerror}", None
        ) from None


def _sockets(tunnel: TunnelPlan) -> Sockets:
    if tunnel.port is None:
        both = _raw(tunnel, _GRE)
        _bind_and_connect(tunnel, both)
        made = Sockets(both, both)
    else:
        made = Sockets(_listening(tunnel, tunnel.port), socket.socket(_family(tunnel), socket.SOCK_DGRAM))
        _bind_and_connect(tunnel, made.send, tunnel.port)
        if tunnel.remote.version == 4:
            # The frame has its own checksums; RFC 7348 requires zero here.
            made.send.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
    _set_buffer(made.receive, _SO_RCVBUFFORCE, socket.SO_RCVBUF, _RECEIVE_OCTETS)
    _set_buffer(made.send, _SO_SNDBUFFORCE, socket.SO_SNDBUF, _SEND_OCTETS)
    discover = _PMTUDISC_DONT if tunnel.fragment else _PMTUDISC_DO
    if tunnel.remote.version == 4:
        made.send.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, discover)
        made.send.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, tunnel.ttl)
    else:
        made.send.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, discover)
        made.send.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, tunnel.ttl)
    for one in (made.receive, made.send):
        one.setblocking(False)
    return made


def _listening(tunnel: TunnelPlan, port: int) -> socket.socket:
    receive = socket.socket(_family(tunnel), socket.SOCK_DGRAM)
    if tunnel.remote.version == 6:
        receive.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        receive.bind((str(tunnel.local) if tunnel.local is not None else "", port))
    except OSError as error:
        receive.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _not_own(tunnel) from None
        raise _error(
            tunnel,
            "port",
            f"UDP port {port} cannot be had: {error.strerror}",
            "another laboratory or a vxlan interface of the kernel has it; "
            "give another port at both ends, or the tunnel its own 'local' address",
        ) from None
    return receive


def _set_buffer(made: socket.socket, forced: int, plain: int, octets: int) -> None:
    """A buffer above the system's limit needs privilege; without it the limit applies."""
    try:
        made.setsockopt(socket.SOL_SOCKET, forced, octets)
    except PermissionError:
        made.setsockopt(socket.SOL_SOCKET, plain, octets)
