"""Areas: switches that use shortest paths and are joined by links."""

from __future__ import annotations

from collections.abc import Iterable

from airloom.planning.network import Network, Wire

FORWARDING = "shortest-path"
"""The setting ``forwarding`` of such a switch, and its name in the engine."""


def of_links(switches: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the area of each of the switches, all of which use shortest paths: its first switch.

    Links with another end are left out of account.
    """
    beside: dict[str, list[str]] = {name: [] for name in switches}
    for a, b in links if beside else ():
        if a in beside and b in beside:
            beside[a].append(b)
            beside[b].append(a)
    found: dict[str, str] = {}
    for first in beside:
        further = [first]
        while further:
            name = further.pop()
            if name not in found:
                found[name] = first
                further += beside[name]
    return found


def of(network: Network) -> dict[str, str]:
    """Returns the area of each switch of the engine that uses shortest paths: its first switch."""
    members = (name for name, switch in network.switches.items() if switch.forwarding == FORWARDING)
    return of_links(members, ((wire.ends[0].name, wire.ends[1].name) for wire in network.wires))


def is_inner(wire: Wire, areas: dict[str, str]) -> bool:
    """Whether a link joins two switches of one area."""
    return all(end.name in areas for end in wire.ends)
