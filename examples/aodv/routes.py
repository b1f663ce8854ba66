"""The routing table of RFC 3561, sections 2 and 6.2: routes with sequence number, state and lifetime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from messages import newer


@dataclass(slots=True)
class Route:
    """One entry; ``expires`` is in seconds of the daemon's clock."""

    destination: IPv4Address
    sequence: int
    known_sequence: bool
    hops: int
    next_hop: IPv4Address
    expires: float
    valid: bool = True
    precursors: set[IPv4Address] = field(default_factory=set)


class Table:
    """The routing table; calls ``installed`` and ``removed`` to update the kernel."""

    def __init__(
        self,
        installed: Callable[[IPv4Address, IPv4Address], None],
        removed: Callable[[IPv4Address], None],
    ):
        self._routes: dict[IPv4Address, Route] = {}
        self._installed = installed
        self._removed = removed

    def get(self, destination: IPv4Address) -> Route | None:
        """Returns the entry for ``destination``, valid or not."""
        return self._routes.get(destination)

    def active(self, destination: IPv4Address) -> Route | None:
        """Returns the entry for ``destination`` if it is valid, else None."""
        route = self._routes.get(destination)
        return route if route and route.valid else None

    def learn(
        self, destination: IPv4Address, sequence: int | None, hops: int, next_hop: IPv4Address, expires: float
    ) -> bool:
        """Updates a route if the new one is fresher or shorter (section 6.2); true if updated."""
        old = self._routes.get(destination)
        if old and old.valid and old.known_sequence and sequence is not None:
            fresher = newer(sequence, old.sequence)
            shorter = sequence == old.sequence and hops < old.hops
            if not fresher and not shorter:
                if sequence == old.sequence and next_hop == old.next_hop:
                    old.expires = max(old.expires, expires)
                return False
        elif old and old.valid and sequence is None and hops >= old.hops:
            if next_hop == old.next_hop:
                old.expires = max(old.expires, expires)
            return False
        route = Route(
            destination,
            old.sequence if sequence is None and old else sequence or 0,
            sequence is not None or bool(old and old.known_sequence),
            hops,
            next_hop,
            max(expires, old.expires if old and old.valid and old.next_hop == next_hop else 0.0),
            precursors=old.precursors if old else set(),
        )
        self._routes[destination] = route
        if not old or not old.valid or old.next_hop != next_hop:
            self._installed(destination, next_hop)
        return True

    def refresh(self, destination: IPv4Address, expires: float) -> None:
        """Extends the lifetime of a used route and of the route to its next hop."""
        route = self.active(destination)
        if route:
            route.expires = max(route.expires, expires)
            hop = self.active(route.next_hop)
            if hop:
                hop.expires = max(hop.expires, expires)

    def invalidate(self, route: Route, keep_until: float) -> None:
        """Invalidates a route; the entry keeps its sequence number (section 6.11)."""
        route.valid = False
        route.expires = keep_until
        self._removed(route.destination)

    def clear(self) -> None:
        """Forgets all routes."""
        for route in self._routes.values():
            if route.valid:
                self._removed(route.destination)
        self._routes.clear()

    def through(self, neighbour: IPv4Address) -> list[Route]:
        """Returns the valid routes with next hop ``neighbour``."""
        return [route for route in self._routes.values() if route.valid and route.next_hop == neighbour]

    def expired(self, now: float) -> list[Route]:
        """Returns the expired valid routes; deletes entries that are no longer needed."""
        for address in [a for a, r in self._routes.items() if not r.valid and r.expires <= now]:
            del self._routes[address]
        return [route for route in self._routes.values() if route.valid and route.expires <= now]
