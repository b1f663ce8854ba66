"""IP packets with other addresses, whose checksums a receiving kernel accepts.

Checksums are computed anew over the whole packet (RFC 1071), so one that an offload of the capturing
machine had left out, or that belongs to octets that were not captured, is right too. Where a packet has
not all octets that a checksum covers, it follows the change of the addresses (RFC 1624): in the first
fragment of a datagram, and in UDP-Lite and DCCP, whose checksum may cover a part. Later fragments have
none. Addresses inside payloads stay, but for the packet that an ICMP error quotes.
"""

from __future__ import annotations

from collections.abc import Mapping

from airloom.host.internet_checksum import internet_checksum

_ICMP, _TCP, _UDP, _DCCP, _ICMPV6, _UDP_LITE = 1, 6, 17, 33, 58, 136
_CHECKSUM = {_ICMP: 2, _TCP: 16, _UDP: 6, _DCCP: 6, _ICMPV6: 2, _UDP_LITE: 6}
"""Place of the checksum in a header of layer 4."""
_PARTIAL = (_DCCP, _UDP_LITE)
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _OPTIONS = 0, 43, 44, 51, 60
_SOURCE_ROUTES = (131, 137)
"""IPv4 options: loose and strict source route."""
_ERRORS = {_ICMP: (3, 4, 5, 11, 12), _ICMPV6: (1, 2, 3, 4)}
"""Types of ICMP that quote a packet after 8 octets."""
_DISCOVERY = range(133, 138)
"""Types of ICMPv6 with link-layer addresses (RFC 4861)."""


class Unsuitable(Exception):
    """A packet that is not sent; the text completes "N frames ..."."""


def rewritten(packet: bytes, addresses: Mapping[bytes, bytes]) -> bytes:
    """Returns an IP packet with new addresses, and its octets behind the length of IP.

    ``addresses``: what replaces which, packed. Group addresses and the limited broadcast stay. Raises
    :class:`Unsuitable` if the packet cannot be sent with them.
    """
    octets = bytearray(packet)
    if octets[0] >> 4 == 4:
        _ipv4(octets, addresses)
    else:
        _ipv6(octets, addresses)
    return bytes(octets)


def is_later_fragment(packet: bytes) -> bool:
    """True for a fragment of an IP datagram that is not its first."""
    if packet[0] >> 4 == 4:
        return bool(int.from_bytes(packet[6:8], "big") & 0x1FFF)
    return _extensions(packet, 40 + int.from_bytes(packet[4:6], "big"))[2] == "later"


def is_group(address: bytes) -> bool:
    """True for a multicast address, or the limited broadcast of IPv4."""
    if len(address) == 4:
        return address[0] >> 4 == 14 or address == b"\xff" * 4
    return address[0] == 0xFF


def _ipv4(octets: bytearray, addresses: Mapping[bytes, bytes]) -> None:
    header, end = 4 * (octets[0] & 15), int.from_bytes(octets[2:4], "big")
    if header < 20 or not header <= end <= len(octets):
        raise Unsuitable("with a wrong length")
    if _has_source_route(octets[20:header]):
        raise Unsuitable("with a source route")
    if octets[9] == _AUTHENTICATION:
        raise Unsuitable("with authenticated addresses")
    old = bytes(octets[12:20])
    octets[12:20] = _source(old[:4], addresses) + _destination(old[4:], addresses)
    _put(octets, 10, 0)
    _put(octets, 10, internet_checksum(octets[:header]))
    fragment = int.from_bytes(octets[6:8], "big")
    if not fragment & 0x1FFF:
        _layer_4(octets, header, end, octets[9], old, 12, addresses, whole=not fragment & 0x2000)


def _ipv6(octets: bytearray, addresses: Mapping[bytes, bytes]) -> None:
    end = 40 + int.from_bytes(octets[4:6], "big")
    if end > len(octets):
        raise Unsuitable("with a wrong length")
    at, protocol, fragment = _extensions(octets, end)
    old = bytes(octets[8:40])
    octets[8:40] = _source(old[:16], addresses) + _destination(old[16:], addresses)
    if fragment != "later":
        _layer_4(octets, at, end, protocol, old, 8, addresses, whole=fragment == "")


def _extensions(octets: bytes | bytearray, end: int) -> tuple[int, int, str]:
    """Returns place and protocol of layer 4, and which fragment it is: ``""``, ``first`` or ``later``."""
    protocol, at, fragment = octets[6], 40, ""
    while protocol in (_HOP_BY_HOP, _ROUTING, _FRAGMENT, _OPTIONS):
        if at + 8 > end:
            raise Unsuitable("with a wrong length")
        if protocol == _ROUTING and octets[at + 3]:
            raise Unsuitable("with a source route")
        if protocol == _FRAGMENT:
            place = int.from_bytes(octets[at + 2 : at + 4], "big")
            if place & 0xFFF8:
                return at + 8, octets[at], "later"
            fragment = "first" if place & 1 else fragment
            length = 8
        else:
            length = 8 * (octets[at + 1] + 1)
        protocol, at = octets[at], at + length
    if protocol == _AUTHENTICATION:
        raise Unsuitable("with authenticated addresses")
    if at > end:
        raise Unsuitable("with a wrong length")
    return at, protocol, fragment


def _layer_4(
    octets: bytearray,
    at: int,
    end: int,
    protocol: int,
    old: bytes,
    place: int,
    addresses: Mapping[bytes, bytes],
    *,
    whole: bool,
) -> None:
    """Mends the checksum of layer 4, in ``octets[at:end]``; ``place`` is that of the addresses."""
    where = _CHECKSUM.get(protocol)
    if where is None:
        return
    if at + where + 2 > end:
        raise Unsuitable("with a wrong length")
    if protocol == _ICMPV6 and octets[at] in _DISCOVERY:
        raise Unsuitable("of neighbour discovery")
    new = bytes(octets[place : place + len(old)])
    if protocol == _UDP:
        if octets[at + 6 : at + 8] == b"\0\0":
            return  # the sender computed none
        length = int.from_bytes(octets[at + 4 : at + 6], "big")
        if whole and not 8 <= length <= end - at:
            raise Unsuitable("with a wrong length")
        end = at + length if whole else end
    if octets[at] in _ERRORS.get(protocol, ()):
        _quoted(octets, at + 8, end, addresses)
    if whole and protocol not in _PARTIAL:
        _put(octets, at + where, 0)
        pseudo = (
            b"" if protocol == _ICMP else new + (end - at).to_bytes(4, "big") + protocol.to_bytes(4, "big")
        )
        found = internet_checksum(pseudo + octets[at:end])
    elif protocol == _ICMP:
        return
    else:
        before = int.from_bytes(octets[at + where : at + where + 2], "big")
        # RFC 1624, equation 3: ~(~HC + ~m + m').
        inverse = bytes(0xFF - octet for octet in old)
        found = internet_checksum((0xFFFF - before).to_bytes(2, "big") + inverse + new)
    _put(octets, at + where, 0xFFFF if protocol == _UDP and found == 0 else found)


def _quoted(octets: bytearray, at: int, end: int, addresses: Mapping[bytes, bytes]) -> None:
    """Replaces the addresses of the packet that an ICMP error quotes, as far as it is there."""
    if at >= end:
        return
    size, place = (4, at + 12) if octets[at] >> 4 == 4 else (16, at + 8)
    if place + 2 * size > end:
        return
    for one in (place, place + size):
        octets[one : one + size] = addresses.get(bytes(octets[one : one + size]), octets[one : one + size])
    header = at + 4 * (octets[at] & 15)
    if size == 4 and at + 20 <= header <= end:
        _put(octets, at + 10, 0)
        _put(octets, at + 10, internet_checksum(octets[at:header]))


def _has_source_route(options: bytes | bytearray) -> bool:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] in _SOURCE_ROUTES:
            return True
        at += 1 if options[at] == 1 else max(2, options[at + 1] if at + 1 < len(options) else 2)
    return False


def _source(address: bytes, addresses: Mapping[bytes, bytes]) -> bytes:
    if address not in addresses:
        raise Unsuitable("from hosts that the map does not have")
    return addresses[address]


def _destination(address: bytes, addresses: Mapping[bytes, bytes]) -> bytes:
    found = addresses.get(address, address if is_group(address) else None)
    if found is None:
        raise Unsuitable("to hosts that the map does not have")
    return found


def _put(octets: bytearray, at: int, value: int) -> None:
    octets[at : at + 2] = value.to_bytes(2, "big")
