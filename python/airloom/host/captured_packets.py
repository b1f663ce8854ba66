"""What a captured frame carries, whatever its link type: length on an Ethernet, addresses, IP packet.

Link types are the numbers that pcap and pcapng register (draft-ietf-opsawg-pcaplinktype).
"""

from __future__ import annotations

from ipaddress import ip_address

from airloom.host.pcap import ETHERNET, Captured

_ETHERNET_HEADER = 14
_COOKED, _COOKED_2 = 113, 276
_LOOPBACK = (0, 108)
_RAW = (12, 14, 101, 228, 229)
_HEADERS = {ETHERNET: _ETHERNET_HEADER, _COOKED: 16, _COOKED_2: 20}
_HEADERS |= dict.fromkeys(_LOOPBACK, 4) | dict.fromkeys(_RAW, 0)
"""Octets before the packet of layer 3, by link type; of Ethernet without tags."""
_TAGS = (0x8100, 0x88A8)
_IPV4, _IPV6 = 0x0800, 0x86DD

READ = "Ethernet, IP without a link layer, Linux cooked capture, loopback"
"""The link types that :func:`is_known` knows, in words."""
_OTHERS = {
    9: "PPP",
    105: "IEEE 802.11",
    119: "IEEE 802.11 with a Prism header",
    127: "IEEE 802.11 with radiotap",
    189: "USB",
    192: "PPI",
    195: "IEEE 802.15.4",
    220: "USB",
    227: "CAN",
    230: "IEEE 802.15.4",
    251: "Bluetooth",
}


def is_known(frame: Captured) -> bool:
    """True if the functions of this module read frames of its link type."""
    return frame.link_type in _HEADERS


def link_type_name(number: int) -> str:
    """Returns the name of a link type, with its number."""
    name = "Ethernet" if number == ETHERNET else _OTHERS.get(number)
    return f"link type {number}" if name is None else f"link type {number}, {name}"


def ethernet_length(frame: Captured) -> int:
    """Returns the octets that the frame has on an Ethernet, without check sequence."""
    return frame.length - _HEADERS[frame.link_type] + _ETHERNET_HEADER


def ip_packet(frame: Captured) -> bytes:
    """Returns the captured octets of the IP packet of a frame; empty if it carries none."""
    octets, at = frame.octets, _HEADERS[frame.link_type]
    if frame.link_type in (ETHERNET, _COOKED, _COOKED_2):
        where = {ETHERNET: 12, _COOKED: 14, _COOKED_2: 0}[frame.link_type]
        kind = int.from_bytes(octets[where : where + 2], "big")
        while kind in _TAGS:
            kind = int.from_bytes(octets[at + 2 : at + 4], "big")
            at += 4
        if kind not in (_IPV4, _IPV6):
            return b""
    packet = octets[at:]
    version = packet[0] >> 4 if packet else 0
    if (version == 4 and len(packet) >= 20) or (version == 6 and len(packet) >= 40):
        return packet
    return b""


def sources(frame: Captured) -> set[bytes]:
    """Returns the source addresses of a frame, packed: of Ethernet and of IP."""
    found = {frame.octets[6:12]} if frame.link_type == ETHERNET else set()
    packet = ip_packet(frame)
    if packet:
        found.add(packet[12:16] if packet[0] >> 4 == 4 else packet[8:24])
    return found


def packed(address: str) -> bytes:
    """Returns an IPv4, IPv6 or MAC address in octets; raises ``ValueError`` if it is none."""
    parts = address.split(":")
    if len(parts) == 6 and all(len(part) == 2 for part in parts):
        return bytes.fromhex("".join(parts))
    return ip_address(address).packed
