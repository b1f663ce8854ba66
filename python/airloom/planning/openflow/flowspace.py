"""Flow space: which frames belong to which slice, as OpenFlow matches.

A flow of a scenario covers both directions (``tcp port 80``: at either end). A *match* covers one
direction. Flows of two slices are disjoint if a protocol, a port or a network differs. A frame that
both could claim, each by another of its ends, belongs to neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from airloom.scenario.model.openflow import Flow

Match = dict[str, Any]
"""``type`` (EtherType), ``proto``, ``source`` and ``target`` (ports), ``net`` (at both ends)."""

_IPV4, _ARP, _IPV6 = 0x0800, 0x0806, 0x86DD
_PROTOCOLS: dict[str, tuple[Match, ...]] = {
    "arp": ({"type": _ARP},),
    "ipv4": ({"type": _IPV4},),
    "ipv6": ({"type": _IPV6},),
    "icmp": ({"type": _IPV4, "proto": 1},),
    "icmp6": ({"type": _IPV6, "proto": 58},),
    "tcp": ({"type": _IPV4, "proto": 6}, {"type": _IPV6, "proto": 6}),
    "udp": ({"type": _IPV4, "proto": 17}, {"type": _IPV6, "proto": 17}),
}


def matches(flow: Flow) -> list[Match]:
    """Returns the matches that together cover a flow."""
    if flow.protocol is not None:
        found = [dict(one) for one in _PROTOCOLS[flow.protocol]]
    else:
        found = [{}] if flow.network is None else [{"type": _IPV4}, {"type": _ARP}]
    if flow.network is not None:
        found = [{**one, "net": flow.network} for one in found if one["type"] in (_IPV4, _ARP)]
    if flow.port is not None:
        found = [{**one, end: flow.port} for one in found for end in ("source", "target")]
    return found


def both(a: Match, b: Match) -> Match | None:
    """Returns the intersection of two matches; None if it is empty."""
    merged = {**a, **b}
    for key in a.keys() & b.keys():
        if key == "net":
            if not a[key].overlaps(b[key]):
                return None
            merged[key] = max(a[key], b[key], key=lambda net: net.prefixlen)
        elif a[key] != b[key]:
            return None
    return merged


def overlap(a: Flow, b: Flow) -> bool:
    """True if two flows are not disjoint."""
    if a.port is not None and b.port is not None and a.port != b.port:
        return False
    return any(both(one, other) is not None for one in matches(a) for other in matches(b))


def contested(flows: Sequence[Sequence[Flow]]) -> list[Match]:
    """Returns the matches that two slices could both claim; ``flows``: those of each slice."""
    found: list[Match] = []
    for number, mine in enumerate(flows):
        for others in flows[number + 1 :]:
            for a in (match for flow in mine for match in matches(flow)):
                for b in (match for flow in others for match in matches(flow)):
                    common = both(a, b)
                    if common is not None and common not in found:
                        found.append(common)
    return found


def text(match: Match) -> str:
    """Returns a match in the syntax of ovs-ofctl(8); empty if it matches everything."""
    words = []
    if "type" in match:
        words.append(f"dl_type={match['type']:#06x}")
    if "proto" in match:
        words.append(f"nw_proto={match['proto']}")
    if "net" in match:
        net: IPv4Network = match["net"]
        fields = ("arp_spa", "arp_tpa") if match["type"] == _ARP else ("nw_src", "nw_dst")
        words += [f"{field}={net}" for field in fields]
    words += [
        f"{field}={match[key]}" for key, field in (("source", "tp_src"), ("target", "tp_dst")) if key in match
    ]
    return ",".join(words)
