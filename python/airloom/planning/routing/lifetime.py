"""Time to live of packets.

Linux sends packets with a time to live (IPv6: hop limit) of 64, so the 64th router drops them. In a
network whose shortest paths may be longer, all nodes send packets with 255, the largest value, unless
their ``sysctl`` sets another.
"""

from __future__ import annotations

from collections.abc import Iterable

from airloom.planning.network import Network

ORDINARY = 64
LARGEST = 255
SYSCTL = {4: "net.ipv4.ip_default_ttl", 6: "net.ipv6.conf.default.hop_limit"}


def settings(network: Network, versions: Iterable[int]) -> dict[str, str]:
    """Returns the sysctls that nodes of this network need, for the given IP versions."""
    # Paths through radios are unknown, so the number of radio nodes is the bound.
    radios = len({radio.node for radio in network.radios}) - 1
    if max(radios, _longest(network)) <= ORDINARY:
        return {}
    return {SYSCTL[version]: str(LARGEST) for version in versions}


def of(sysctl: dict[str, str], version: int) -> int:
    """Returns the initial TTL of a node's packets with these sysctls."""
    text = sysctl.get(SYSCTL[version], "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else ORDINARY


def _longest(network: Network) -> int:
    """Estimates the hops of the longest shortest path: exact in trees, rings and grids.

    Two breadth-first searches: from any node to the farthest, and from there to the farthest again.
    """
    neighbours: dict[str, list[str]] = {}
    for wire in network.wires:
        a, b = (end.name for end in wire.ends)
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    longest = 0
    seen: set[str] = set()
    for start in neighbours:
        if start not in seen:
            far, _, reached = _farthest(network, neighbours, start)
            seen |= reached
            longest = max(longest, _farthest(network, neighbours, far)[1])
    return longest


def _farthest(network: Network, neighbours: dict[str, list[str]], start: str) -> tuple[str, int, set[str]]:
    """Returns the farthest node, its hops and all visited names; switches count no hop."""
    level, hops, seen = [start], 0, {start}
    far = start
    while level:
        following = []
        for here in level:
            for name in neighbours[here]:
                if name in seen:
                    continue
                seen.add(name)
                if name in network.switches:
                    # A switch costs no hop: nodes behind it are in the same level.
                    level.append(name)
                else:
                    following.append(name)
        if following:
            hops, far = hops + 1, following[-1]
        level = following
    return far, hops, seen
