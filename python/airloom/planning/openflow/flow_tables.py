"""Flow tables of Open vSwitches: rules as ``ovs-ofctl dump-flows`` prints them, as ternary matches.

A match is a *cube*: for each field the bits that it compares, and their values. Names of fields that
mean the same header are one field here: ``tcp_dst`` and ``udp_dst`` are ``tp_dst``; ``dl_vlan`` and
``dl_vlan_pcp`` are parts of ``vlan_tci``, with bit 12 for the presence of a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

Bits = tuple[int, int]
"""Value and mask of a field."""
Cube = Mapping[str, Bits]
"""What a match compares; an empty one matches everything."""

TAGGED = 0x1000
"""Bit of ``vlan_tci`` that says that a frame has a VLAN tag."""
_PROTOCOLS: dict[str, tuple[int, int | None]] = {
    "ip": (0x0800, None),
    "arp": (0x0806, None),
    "rarp": (0x8035, None),
    "ipv6": (0x86DD, None),
    "icmp": (0x0800, 1),
    "tcp": (0x0800, 6),
    "udp": (0x0800, 17),
    "sctp": (0x0800, 132),
    "icmp6": (0x86DD, 58),
    "tcp6": (0x86DD, 6),
    "udp6": (0x86DD, 17),
    "sctp6": (0x86DD, 132),
}
"""Shorthands of a match: EtherType and protocol (ovs-fields(7))."""
_SAME = {
    "dl_src": "eth_src",
    "dl_dst": "eth_dst",
    "dl_type": "eth_type",
    "ip_src": "nw_src",
    "ip_dst": "nw_dst",
    "ip_proto": "nw_proto",
} | {f"{one}_{end}": f"tp_{end}" for one in ("tcp", "udp", "sctp") for end in ("src", "dst")}
WIDTHS = {
    "eth_src": 48,
    "eth_dst": 48,
    "eth_type": 16,
    "vlan_tci": 16,
    "nw_src": 32,
    "nw_dst": 32,
    "arp_spa": 32,
    "arp_tpa": 32,
    "nw_proto": 8,
    "tp_src": 16,
    "tp_dst": 16,
}
"""Width of fields in bits; others have :data:`WIDEST`."""
WIDEST = 128
_STATISTICS = frozenset(
    {
        "cookie",
        "duration",
        "n_packets",
        "n_bytes",
        "idle_timeout",
        "hard_timeout",
        "idle_age",
        "hard_age",
        "importance",
        "send_flow_rem",
        "reset_counts",
        "check_overlap",
        "no_packet_counts",
        "no_byte_counts",
    }
)
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One flow of a table."""

    table: int
    priority: int
    in_port: int | None
    match: Cube
    actions: tuple[str, ...]
    text: str
    """Its match and its actions, without statistics."""
    strange: str | None = None
    """The part of its match that cannot be read."""


def rules(dump: str) -> dict[int, list[Rule]]:
    """Returns the rules of a bridge by table, in the order in which they apply."""
    found: dict[int, list[Rule]] = {}
    for line in dump.splitlines():
        if "actions=" in line:
            rule = _rule(line.strip())
            found.setdefault(rule.table, []).append(rule)
    for table in found.values():
        table.sort(key=lambda one: -one.priority)
    return found


def width_of(field: str) -> int:
    """Returns the width of a field in bits."""
    return WIDTHS.get(field, WIDEST)


def bits_of(field: str, said: str) -> Bits:
    """Returns value and mask of ``VALUE`` or ``VALUE/MASK``. Raises :class:`ValueError`."""
    value, _, mask = said.partition("/")
    whole = (1 << width_of(field)) - 1
    if not mask:
        return number(value) & whole, whole
    if "." in value or (":" in value and not _MAC.fullmatch(value)):
        length = ip_address(value).max_prefixlen
        if mask.isdecimal():
            ones = ((1 << length) - 1) ^ ((1 << (length - int(mask))) - 1)
            return number(value) & ones, ones
    ones = number(mask) & whole
    return number(value) & ones, ones


def number(said: str) -> int:
    """Returns a number, MAC address or IP address as an integer. Raises :class:`ValueError`."""
    if _MAC.fullmatch(said):
        return int(said.replace(":", ""), 16)
    if "." in said or ":" in said:
        return int(ip_address(said))
    return int(said, 0)


def split(text: str) -> list[str]:
    """Returns the parts of a list, which commas separate outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _rule(line: str) -> Rule:
    head, _, actions = line.partition("actions=")
    table, priority, in_port, strange = 0, 32768, None, None
    match: dict[str, Bits] = {}
    shown = []
    for part in split(head.replace(" ", ",")):
        key, _, value = part.partition("=")
        if key in _STATISTICS:
            continue
        shown.append(part)
        try:
            if key == "table":
                table = int(value)
            elif key == "priority":
                priority = int(value)
            elif key == "in_port":
                in_port = _port(value)
            else:
                for field, bits in _parts(key, value):
                    old = match.get(field, (0, 0))
                    match[field] = (old[0] | bits[0], old[1] | bits[1])
        except ValueError:
            strange = part
    text = f"{','.join(shown)} actions={actions}"
    return Rule(table, priority, in_port, match, tuple(split(actions)), text, strange)


def _port(value: str) -> int:
    return 65534 if value == "LOCAL" else int(value)


def _parts(key: str, value: str) -> Iterator[tuple[str, Bits]]:
    if not value and key in _PROTOCOLS:
        kind, protocol = _PROTOCOLS[key]
        yield "eth_type", bits_of("eth_type", str(kind))
        if protocol is not None:
            yield "nw_proto", bits_of("nw_proto", str(protocol))
    elif key in ("dl_vlan", "vlan_vid"):
        yield "vlan_tci", _vlan(key, value)
    elif key in ("dl_vlan_pcp", "vlan_pcp"):
        yield "vlan_tci", (TAGGED | int(value, 0) << 13, 0xF000)
    else:
        field = _SAME.get(key, key)
        yield field, bits_of(field, value)


def _vlan(key: str, value: str) -> Bits:
    said, _, mask = value.partition("/")
    number = int(said, 0)
    if key == "dl_vlan":
        return (0, 0xFFFF) if number == 0xFFFF else (TAGGED | number, 0x1FFF)
    return number & 0x1FFF, int(mask, 0) & 0x1FFF if mask else 0x1FFF
