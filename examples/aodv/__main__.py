"""An AODV daemon (RFC 3561) for one interface: ``python3 examples/aodv --interface eth0``.

It implements route discovery with expanding ring search, replies by destinations and by
intermediate nodes, hello messages, route errors, and lifetimes that follow the traffic. Packets
without a route wait for the discovery, and are sent when a route is found.

It does not implement local repair, gratuitous replies, unidirectional-link blacklists, several
interfaces, IPv6, multicast.

Data packets are forwarded by the daemon itself, as by AODV-UU, which published experiments used, or by
the kernel (``--forward``): see ``forwarding.py``.
"""

from __future__ import annotations

import argparse
import collections
import heapq
import itertools
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from ipaddress import IPv4Address

from forwarding import WAYS, Way
from kernel import HEADER
from messages import NONE, PORT, RouteError, RouteReply, RouteRequest, newer, parse
from routes import Table

# Section 10 of the RFC; in seconds.
NODE_TRAVERSAL = 0.040
NET_DIAMETER = 35
TTL_INCREMENT = 2
TTL_THRESHOLD = 7
TIMEOUT_BUFFER = 2
RREQ_RETRIES = 2
NET_TRAVERSAL = 2 * NODE_TRAVERSAL * NET_DIAMETER
PATH_DISCOVERY = 2 * NET_TRAVERSAL
ACTIVE_ROUTE = 3.0
MY_ROUTE = 2 * ACTIVE_ROUTE
DELETE_PERIOD = 5 * ACTIVE_ROUTE
ALLOWED_HELLO_LOSS = 2
WAITING_PACKETS = 64
BROADCAST = IPv4Address("255.255.255.255")
IP_RECVTTL = 12
BATCH = 256
"""Packets that are read at once, so that messages and timers get their turn."""


def ring_wait(ttl: int) -> float:
    """Returns a request's maximum round trip in seconds with this TTL (RING_TRAVERSAL_TIME)."""
    return 2 * NODE_TRAVERSAL * (ttl + TIMEOUT_BUFFER)


def next_ttl(ttl: int) -> int:
    """Returns the TTL of the next ring (section 6.4)."""
    return ttl + TTL_INCREMENT if ttl < TTL_THRESHOLD else NET_DIAMETER


class Search:
    """A discovery in progress, with the waiting packets."""

    def __init__(self, ttl: int):
        self.ttl = ttl
        self.retries = 0
        self.packets: collections.deque[bytes] = collections.deque(maxlen=WAITING_PACKETS)


class Daemon:
    """One router; times are in seconds of the monotonic clock."""

    def __init__(
        self, interface: str, hello: float, ttl_start: int, forward: Way, say: Callable[[str], None]
    ):
        self._hello = hello
        self._ttl_start = ttl_start
        self._say = say
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        self._socket.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        self._socket.bind(("", PORT))
        self._socket.setblocking(False)
        self._me = own_address(self._socket, interface)
        self._forwarding = WAYS[forward](interface, self._me)
        self._table = Table(self._forwarding.install, self._forwarding.remove)
        self._sequence = 1
        self._identifier = 0
        self._seen: dict[tuple[IPv4Address, int], float] = {}
        self._searches: dict[IPv4Address, Search] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._counter = itertools.count()

    def serve(self) -> None:
        """Routes until the process is terminated."""
        selector = selectors.DefaultSelector()
        selector.register(self._socket, selectors.EVENT_READ, self._read_messages)
        selector.register(self._forwarding.packets, selectors.EVENT_READ, self._read_packets)
        selector.register(self._forwarding.copies, selectors.EVENT_READ, self._read_copies)
        self._after(0, self._say_hello)
        self._after(0.1, self._expire)
        self._say(f"routing for {self._me}")
        while True:
            for key, _ in selector.select(max(0.0, self._timers[0][0] - time.monotonic())):
                key.data()
            while self._timers and self._timers[0][0] <= time.monotonic():
                heapq.heappop(self._timers)[2]()

    def close(self) -> None:
        """Removes the routes from the kernel, which would go on to forward by them."""
        self._table.clear()

    # Packets

    def _read_packets(self) -> None:
        """Sends the packets that the kernel routed to the daemon, or searches a route for them."""
        now = time.monotonic()
        for _ in range(BATCH):
            packet = self._forwarding.packets.read()
            if packet is None:
                return
            destination = IPv4Address(packet[16:20])
            if destination.is_multicast or destination == BROADCAST:
                continue
            if self._table.active(destination):
                self._refresh(packet, now)
                self._forwarding.send(packet)
            elif IPv4Address(packet[12:16]) == self._me:
                self._search(destination).packets.append(packet)
            else:
                known = self._table.get(destination)
                self._send(RouteError({destination: known.sequence if known else 0}).pack(), BROADCAST, 1)

    def _read_copies(self) -> None:
        now = time.monotonic()
        for _ in range(BATCH):
            header = self._forwarding.copies.read()
            if header is None:
                return
            if len(header) >= HEADER and header[16:20] != BROADCAST.packed:
                self._refresh(header, now)

    def _refresh(self, packet: bytes, now: float) -> None:
        """Extends the routes to source and destination, and to their next hops (section 6.2)."""
        for address in (IPv4Address(packet[12:16]), IPv4Address(packet[16:20])):
            if address != self._me:
                self._table.refresh(address, now + ACTIVE_ROUTE)

    # Messages

    def _read_messages(self) -> None:
        for _ in range(BATCH):
            try:
                octets, extra, _, (sender, _) = self._socket.recvmsg(4096, 64)
            except BlockingIOError:
                return
            source = IPv4Address(sender)
            if source == self._me:
                continue
            ttl = next(
                (struct.unpack("i", data[:4])[0] for _, kind, data in extra if kind == socket.IP_TTL), 1
            )
            try:
                message = parse(octets)
            except ValueError as error:
                self._say(f"from {source}: {error}")
                continue
            if isinstance(message, RouteRequest):
                self._on_request(message, source, ttl)
            elif isinstance(message, RouteReply):
                self._on_reply(message, source, ttl)
            else:
                self._on_error(message, source)

    def _on_request(self, request: RouteRequest, source: IPv4Address, ttl: int) -> None:
        now = time.monotonic()
        self._table.learn(source, None, 1, source, now + ACTIVE_ROUTE)
        known = (request.originator, request.identifier)
        if request.originator == self._me or self._seen.get(known, 0) > now:
            return
        self._seen[known] = now + PATH_DISCOVERY
        hops = request.hops + 1
        back = now + 2 * NET_TRAVERSAL - 2 * hops * NODE_TRAVERSAL
        self._table.learn(request.originator, request.originator_sequence, hops, source, back)
        if request.destination == self._me:
            if not request.unknown_sequence and newer(request.destination_sequence, self._sequence):
                self._sequence = request.destination_sequence
            self._reply(request, 0, self._sequence, MY_ROUTE)
            return
        route = self._table.active(request.destination)
        fresh = route and route.known_sequence and (
            request.unknown_sequence or not newer(request.destination_sequence, route.sequence)
        )  # fmt: skip
        if route and fresh and not request.destination_only and route.next_hop != source:
            route.precursors.add(source)
            self._reply(request, route.hops, route.sequence, route.expires - now)
        elif ttl > 1:
            sequence, unknown = request.destination_sequence, request.unknown_sequence
            if route and route.known_sequence and (unknown or newer(route.sequence, sequence)):
                sequence, unknown = route.sequence, False
            onward = RouteRequest(
                hops, request.identifier, request.destination, sequence, request.originator,
                request.originator_sequence, unknown, request.destination_only, request.gratuitous,
            )  # fmt: skip
            self._send(onward.pack(), BROADCAST, ttl - 1)

    def _reply(self, request: RouteRequest, hops: int, sequence: int, lifetime: float) -> None:
        back = self._table.active(request.originator)
        if back:
            milliseconds = max(0, round(lifetime * 1000))
            reply = RouteReply(hops, request.destination, sequence, request.originator, milliseconds)
            self._send(reply.pack(), back.next_hop, NET_DIAMETER)

    def _on_reply(self, reply: RouteReply, source: IPv4Address, ttl: int) -> None:
        now = time.monotonic()
        expires = now + reply.lifetime_ms / 1000
        if reply.originator == NONE or (reply.destination == source and reply.hops == 0 and ttl == 1):
            self._table.learn(source, reply.destination_sequence, 1, source, expires)
            self._found(source)
            return
        self._table.learn(source, None, 1, source, now + ACTIVE_ROUTE)
        hops = reply.hops + 1
        self._table.learn(reply.destination, reply.destination_sequence, hops, source, expires)
        if reply.originator == self._me:
            self._found(reply.destination)
            return
        back = self._table.active(reply.originator)
        forward = self._table.active(reply.destination)
        if back and forward:
            forward.precursors.add(back.next_hop)
            back.expires = max(back.expires, now + ACTIVE_ROUTE)
            onward = RouteReply(
                hops, reply.destination, reply.destination_sequence, reply.originator, reply.lifetime_ms
            )
            self._send(onward.pack(), back.next_hop, NET_DIAMETER)

    def _on_error(self, error: RouteError, source: IPv4Address) -> None:
        lost: list = []
        for destination, sequence in error.unreachable.items():
            route = self._table.active(destination)
            if route and route.next_hop == source:
                route.sequence = sequence
                lost.append(route)
        self._break(lost)

    # Discovery

    def _search(self, destination: IPv4Address) -> Search:
        search = self._searches.get(destination)
        if search is None:
            # An old route has the destination's former distance (section 6.4).
            old = self._table.get(destination)
            ttl = min(NET_DIAMETER, old.hops + TTL_INCREMENT) if old else self._ttl_start
            search = self._searches[destination] = Search(ttl if ttl <= TTL_THRESHOLD else NET_DIAMETER)
            self._ask(destination, search)
        return search

    def _ask(self, destination: IPv4Address, search: Search) -> None:
        self._sequence = (self._sequence + 1) & 0xFFFF_FFFF
        self._identifier = (self._identifier + 1) & 0xFFFF_FFFF
        old = self._table.get(destination)
        known = bool(old and old.known_sequence)
        request = RouteRequest(
            0, self._identifier, destination, old.sequence if old and known else 0, self._me,
            self._sequence, unknown_sequence=not known,
        )  # fmt: skip
        self._seen[(self._me, self._identifier)] = time.monotonic() + PATH_DISCOVERY
        self._say(f"searching {destination}, ttl {search.ttl}")
        self._send(request.pack(), BROADCAST, search.ttl)
        wait = ring_wait(search.ttl) if search.ttl < NET_DIAMETER else NET_TRAVERSAL * 2**search.retries
        asked = self._identifier
        self._after(wait, lambda: self._unanswered(destination, search, asked))

    def _unanswered(self, destination: IPv4Address, search: Search, asked: int) -> None:
        if self._searches.get(destination) is not search:
            return
        if search.ttl < NET_DIAMETER:
            search.ttl = next_ttl(search.ttl)
        elif search.retries < RREQ_RETRIES:
            search.retries += 1
        else:
            del self._searches[destination]
            self._say(f"no route to {destination}, {len(search.packets)} packets dropped")
            return
        self._ask(destination, search)

    def _found(self, destination: IPv4Address) -> None:
        search = self._searches.pop(destination, None)
        if search:
            route = self._table.active(destination)
            self._say(f"found {destination}, {route.hops if route else '?'} hops")
            for packet in search.packets:
                self._forwarding.send(packet)

    # Timers

    def _say_hello(self) -> None:
        lifetime = round(ALLOWED_HELLO_LOSS * self._hello * 1000)
        self._send(RouteReply(0, self._me, self._sequence, NONE, lifetime).pack(), BROADCAST, 1)
        self._after(self._hello, self._say_hello)

    def _expire(self) -> None:
        now = time.monotonic()
        broken: list = []
        for route in self._table.expired(now):
            if route.hops == 1:
                broken.extend(self._table.through(route.destination))
            elif route not in broken:
                self._table.invalidate(route, now + DELETE_PERIOD)
        self._break(broken)
        self._seen = {key: until for key, until in self._seen.items() if until > now}
        self._after(0.1, self._expire)

    def _break(self, routes: list) -> None:
        """Removes routes whose next hop is unreachable, and notifies their users."""
        now = time.monotonic()
        unreachable: dict[IPv4Address, int] = {}
        for route in routes:
            if not route.valid:
                continue
            route.sequence = (route.sequence + 1) & 0xFFFF_FFFF
            if route.precursors:
                unreachable[route.destination] = route.sequence
            self._say(f"lost {route.destination}")
            self._table.invalidate(route, now + DELETE_PERIOD)
        if unreachable:
            self._send(RouteError(unreachable).pack(), BROADCAST, 1)

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._counter), call))

    def _send(self, octets: bytes, to: IPv4Address, ttl: int) -> None:
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, max(1, ttl))
        try:
            self._socket.sendto(octets, (str(to), PORT))
        except OSError as error:
            self._say(f"to {to}: {error}")


def own_address(any_socket: socket.socket, interface: str) -> IPv4Address:
    """Returns the interface's first IPv4 address (SIOCGIFADDR)."""
    import fcntl

    request = struct.pack("256s", interface.encode()[:15])
    return IPv4Address(fcntl.ioctl(any_socket.fileno(), 0x8915, request)[20:24])


def main() -> None:
    """Parses the command line and runs the router."""
    parser = argparse.ArgumentParser(prog="aodv", description=__doc__.splitlines()[0])
    parser.add_argument("--interface", required=True, help="interface to route on")
    parser.add_argument("--hello", type=float, default=1.0, help="seconds between hello messages (1.0)")
    parser.add_argument(
        "--ttl-start", type=int, default=1, help="first ring of a search: 1 in the RFC, 2 in AODV-UU 0.8"
    )
    parser.add_argument(
        "--forward", choices=list(WAYS), default="user",
        help="who forwards data packets: user, as in AODV-UU, or kernel (user)",
    )  # fmt: skip
    options = parser.parse_args()
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:9.3f} {text}", flush=True)

    daemon = Daemon(options.interface, options.hello, options.ttl_start, options.forward, say)
    try:
        daemon.serve()
    except KeyboardInterrupt:
        sys.exit(0)
    finally:
        daemon.close()


if __name__ == "__main__":
    main()
