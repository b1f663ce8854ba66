"""The engine's own captures (pcapng), read back frame by frame.

Reads what ``ports/src/pcapng.rs`` writes: one section in this machine's byte order, one interface for
each port, enhanced packet blocks with nanosecond stamps and the direction in ``epb_flags``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airloom.measure.tool import MeasureError

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_NAME, _FLAGS = 2, 2
_INBOUND, _OUTBOUND = 1, 2


@dataclass(frozen=True, slots=True)
class Captured:
    """One frame at one port."""

    port: str
    at: int
    """Nanoseconds since 1970 on the engine's clock: when it entered, or was due to leave."""
    inbound: bool
    """The node gets it; otherwise the node sends it."""
    octets: bytes


def frames(path: Path) -> Iterator[Captured]:
    """All frames that passed ports, in the file's order; those that were dropped are left out."""
    content = path.read_bytes()
    names: list[str] = []
    place = 0
    while place + 12 <= len(content):
        kind, length = struct.unpack_from("=II", content, place)
        if length < 12 or length % 4 or place + length > len(content):
            return  # cut short in the middle of a block
        if place == 0 and kind != _SECTION:
            raise MeasureError("measure.capture.damaged", "the file is no pcapng capture", where=str(path))
        body = content[place + 8 : place + length - 4]
        if kind == _INTERFACE:
            names.append(_options(body[8:]).get(_NAME, b"").decode("utf-8", "replace"))
        elif kind == _PACKET:
            number, high, low, kept, _ = struct.unpack_from("=IIIII", body)
            flags = _options(body[20 + (kept + 3) // 4 * 4 :]).get(_FLAGS)
            direction = struct.unpack("=I", flags)[0] & 3 if flags else 0
            if direction in (_INBOUND, _OUTBOUND):
                yield Captured(names[number], high << 32 | low, direction == _INBOUND, body[20 : 20 + kept])
        place += length


def _options(content: bytes) -> dict[int, bytes]:
    found, place = {}, 0
    while place + 4 <= len(content):
        code, length = struct.unpack_from("=HH", content, place)
        if code == 0:
            break
        found[code] = content[place + 4 : place + 4 + length]
        place += 4 + (length + 3) // 4 * 4
    return found
