"""NAT from a node to the host's network, by a network stack in user space (slirp4netns).

slirp4netns holds an interface in the node's namespace and translates its traffic to sockets in the
host's network, without netfilter and without changes to the host. It ends when this process closes
its end of a pipe, thus at the latest when this process ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from airloom.errors import HostError, RunError
from airloom.host.network_namespace import within
from airloom.mininet.errors import Misused
from airloom.mininet.host_process import HostProcess, path_of
from airloom.mininet.log import error
from airloom.nodes.kind import Exit
from airloom.runs.programs import said

PROGRAM = "slirp4netns"
INTERFACE = "out0"
_NETWORKS = tuple(
    IPv4Network(f"{head}.0/24") for head in ("192.0.2", "198.51.100", "203.0.113", "198.18.0", "100.127.255")
)
"""Networks without public routes (RFC 5737, 2544, 6598). The stack uses the first one that neither
the laboratory nor the host uses: .2 is the gateway, .3 the host's resolver, .100 the node."""
_TABLE, _ARRIVED, _OWN = 100, 40_000, 40_001
"""The routing table with the default route to the stack, and the priorities of the rules that
select it for forwarded frames and for the node's own programs, after the node's main table."""
_TIMEOUT = 20.0
"""Timeout in seconds until the stack is ready."""


class ExternalAccess:
    """The NAT of one node."""

    def __init__(self, node: str, namespace: int, subnet: IPv4Network) -> None:
        program = path_of(PROGRAM, f"node {node}: NAT to the networks outside")
        taken = [subnet, *_of_machine()]
        network = next((one for one in _NETWORKS if not any(map(one.overlaps, taken))), None)
        if network is None:
            raise Misused("nat", f"{node}: subnet {subnet} and the machine leave no network for NAT")
        self._node, self._namespace, self._subnet = node, namespace, subnet
        self._gateway = str(network[2])
        self._closing = False
        ends, self._alive = os.pipe()
        ready, says_ready = os.pipe()
        try:
            words = [program, "--netns-type=path", f"--cidr={network}", "--disable-host-loopback"]
            words += ["--configure", "--enable-sandbox", f"--exit-fd={ends}", f"--ready-fd={says_ready}"]
            words += [f"/proc/self/fd/{namespace}", INTERFACE]
            self._stack = HostProcess(words, [namespace, ends, says_ready])
        except BaseException:
            os.close(ready)
            os.close(self._alive)
            raise
        finally:
            os.close(ends)
            os.close(says_ready)
        try:
            poller = select.poll()
            poller.register(ready, select.POLLIN)
            if not poller.poll(_TIMEOUT * 1000) or not os.read(ready, 1):
                raise RunError(
                    "mininet.nat",
                    f"node {node}: {PROGRAM} does not connect it to the outside: {self._stack.said()}",
                )
            within(namespace, self._route)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(ready)
        threading.Thread(target=self._watch, name=f"{node}-nat", daemon=True).start()

    def admit(self, interface: str) -> None:
        """Accepts packets from the subnet that arrive at this interface, and no others."""

        def act() -> None:
            with IPRoute() as route:
                with contextlib.suppress(NetlinkError):
                    route.rule("del", priority=_ARRIVED)
                address, length = str(self._subnet.network_address), self._subnet.prefixlen
                self._rule(route, priority=_ARRIVED, src=address, src_len=length, iifname=interface)

        within(self._namespace, act)

    def close(self) -> None:
        """Ends the stack, which removes its interface."""
        self._closing = True
        os.close(self._alive)
        try:
            self._stack.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._stack.kill()
            self._stack.wait()

    def _watch(self) -> None:
        """Reports an unexpected end of the stack; the kernel then answers "unreachable"."""
        code = self._stack.wait()
        if not self._closing:
            how = said(Exit(code) if code >= 0 else Exit(signal=-code))
            error(
                f"*** node {self._node}: NAT to the networks outside has ended: "
                f"{PROGRAM} {how}: {self._stack.said()}\n"
            )

    def _route(self) -> None:
        """Enables forwarding to the stack and proxy ARP: the node answers ARP for all senders."""
        for path, value in (
            ("ip_forward", 1),
            (f"conf/{INTERFACE}/proxy_arp", 1),
            (f"neigh/{INTERFACE}/proxy_delay", 0),
        ):
            Path("/proc/sys/net/ipv4", path).write_text(f"{value}\n")
        with IPRoute() as route:
            # The stack has set a default route for all traffic; the rules select what may use it.
            route.route("del", dst="default", gateway=self._gateway)
            route.route("add", dst="default", gateway=self._gateway, table=_TABLE)
            self._rule(route, priority=_OWN, iifname="lo")

    def _rule(self, route: Any, **words: Any) -> None:
        try:
            route.rule("add", table=_TABLE, **words)
        except NetlinkError as refused:
            raise HostError(
                "host.policy-routing",
                f"node {self._node}: this kernel takes no rule for routes: {refused}",
                cure="a kernel with CONFIG_IP_MULTIPLE_TABLES",
            ) from None


def _of_machine() -> list[IPv4Network]:
    """Returns the networks that the host has routes or addresses for, without the default route."""
    with IPRoute() as route:
        routes = [
            (message.get_attr("RTA_DST"), message["dst_len"])
            for message in route.get_routes(family=socket.AF_INET)
        ]
    return [IPv4Network(f"{to}/{length}") for to, length in routes if to is not None and length]
