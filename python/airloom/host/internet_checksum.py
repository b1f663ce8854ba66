"""The checksum of IP, ICMP, TCP and UDP."""

from __future__ import annotations


def internet_checksum(octets: bytes | bytearray) -> int:
    """Returns the Internet checksum of octets (RFC 1071)."""
    total = sum(octets[0::2]) * 256 + sum(octets[1::2])
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total
