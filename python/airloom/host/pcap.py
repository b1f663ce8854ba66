"""Reads captured frames from pcapng and pcap files.

Supports pcapng (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3) and the older pcap, in both byte
orders, with microsecond, nanosecond or any other resolution.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from airloom.errors import RunError
from airloom.host import files

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_CLASSIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Magic number of a pcap file: nanoseconds per unit of its fractional timestamps."""


ETHERNET = 1
"""Link type of Ethernet frames."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One frame of a capture."""

    port: str
    """Name of the interface; empty if the file names none."""
    at: int
    """ns since 1970."""
    octets: bytes
    length: int
    """Octets of the frame, even if fewer were captured; without check sequence."""
    direction: str
    """``in``, ``out``, or empty if not in the file."""
    link_type: int = ETHERNET
    """What its octets begin with: a number of the registry of link types of the formats."""


LARGEST = 4 << 30
"""Octets of a capture that is read: all of it is in memory."""


def frames(path: str | Path) -> Iterator[Captured]:
    """All frames of a capture. Raises :class:`RunError` if the file is damaged."""
    try:
        content = files.content(path, LARGEST)
    except OSError as error:
        raise RunError(
            "measure.capture.missing", f"cannot read the capture: {error.strerror}", where=str(path)
        ) from error
    try:
        yield from _frames(content, str(path))
    except (struct.error, IndexError) as error:
        raise RunError("measure.capture.damaged", f"a block is cut off: {error}", where=str(path)) from error


def _frames(content: bytes, where: str) -> Iterator[Captured]:
    first = content[:4]
    for order in "<>":
        if struct.unpack(order + "I", first.ljust(4, b"\0"))[0] in _CLASSIC:
            return _classic(content, order)
    if first == _SECTION.to_bytes(4, "big"):
        return _blocks(content, where)
    _refuse("the file begins neither as pcapng nor as pcap", where)


def _refuse(what: str, where: str) -> NoReturn:
    raise RunError("measure.capture.damaged", what, where=where)


def _classic(content: bytes, order: str) -> Iterator[Captured]:
    unit = _CLASSIC[struct.unpack_from(order + "I", content)[0]]
    link_type = struct.unpack_from(order + "I", content, 20)[0] & 0xFFFF
    at = 24
    while at < len(content):
        seconds, fraction, kept, length = struct.unpack_from(order + "IIII", content, at)
        at += 16
        yield Captured("", seconds * 10**9 + fraction * unit, content[at : at + kept], length, "", link_type)
        at += kept


def _blocks(content: bytes, where: str) -> Iterator[Captured]:
    order, at = "<", 0
    interfaces: list[tuple[str, int, int]] = []
    while at < len(content):
        if content[at : at + 4] == _SECTION.to_bytes(4, "big"):
            order = "<" if content[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, length = struct.unpack_from(order + "II", content, at)
        if length < 12 or length % 4 or at + length > len(content):
            _refuse(f"the block at octet {at} has a length of {length}", where)
        body = content[at + 8 : at + length - 4]
        if kind == _INTERFACE:
            known = _options(body[8:], order)
            resolution = known.get(9, b"\x06")[0]
            base = 2 if resolution & 0x80 else 10
            name = known.get(2, b"").decode(errors="replace")
            link_type = struct.unpack_from(order + "H", body)[0]
            interfaces.append((name, base ** (resolution & 0x7F), link_type))
        elif kind == _PACKET:
            number, high, low, kept, original = struct.unpack_from(order + "IIIII", body)
            if number >= len(interfaces):
                _refuse(f"the block at octet {at} names interface {number}, which is not described", where)
            name, per_second, link_type = interfaces[number]
            flags = _options(body[20 + (kept + 3) // 4 * 4 :], order).get(2, b"\0\0\0\0")
            direction = ("", "in", "out", "")[struct.unpack(order + "I", flags.ljust(4, b"\0")[:4])[0] & 3]
            time = (high << 32 | low) * 10**9 // per_second
            yield Captured(name, time, body[20 : 20 + kept], original, direction, link_type)
        at += length


def _options(data: bytes, order: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0:
            break
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found
