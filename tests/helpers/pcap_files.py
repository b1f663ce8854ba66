"""Writes captures as other tools do."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

_BEGIN = struct.Struct("<IHHiIII")


def write(
    path: Path, rows: Iterable[tuple[int, bytes]], link_type: int = 1, length: int | None = None
) -> Path:
    """Writes a pcap of frames at times in ns; of ``length`` octets each, if more than are kept."""
    octets = [_BEGIN.pack(0xA1B23C4D, 2, 4, 0, 0, 65535, link_type)]
    for at, frame in rows:
        header = struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), length or len(frame))
        octets += [header, frame]
    path.write_bytes(b"".join(octets))
    return path


def udp_packet(
    payload: bytes, source: bytes = b"\xc0\0\2\1", to: bytes = b"\xc0\0\2\2", number: int = 0
) -> bytes:
    """Returns an IPv4 packet with a UDP datagram, from 192.0.2.1 to 192.0.2.2 by default."""
    datagram = struct.pack("!HHHH", 4000, 4001, 8 + len(payload), 0) + payload
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), number & 0xFFFF, 0, 64, 17, 0, source, to
    )
    return header + datagram


def ethernet(packet: bytes) -> bytes:
    """Returns a frame that carries an IPv4 packet."""
    return bytes.fromhex("020000000002020000000001") + b"\x08\0" + packet
