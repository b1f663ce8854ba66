"""Finds data packets of Airloom's generator in Ethernet frames (see ``traffic/src/packet.rs``)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_MAGIC = 0xA17A
_HEADER = struct.Struct(">HBBHIQ")
"""Magic, version, kind, flow, sequence, time."""
_RTP = 12
_UDP = 17
_TAGS = (0x8100, 0x88A8)


@dataclass(frozen=True, slots=True)
class DataPacket:
    """Identification of a data packet."""

    port: int
    """UDP destination port."""
    flow: int
    sequence: int
    """Low 32 bits of its number."""


def data_packet(octets: bytes, *, rtp: bool = False) -> DataPacket | None:
    """The data packet over UDP in a frame; None if the frame contains none.

    VLAN tags are skipped. Of a fragmented packet only the first fragment has the header; other
    fragments are ignored. With ``rtp`` an RTP header of 12 octets comes first.
    """
    at = 12
    kind = int.from_bytes(octets[at : at + 2], "big")
    while kind in _TAGS:
        at += 4
        kind = int.from_bytes(octets[at : at + 2], "big")
    at += 2
    if kind == 0x0800 and len(octets) > at + 20 and octets[at + 9] == _UDP:
        if int.from_bytes(octets[at + 6 : at + 8], "big") & 0x1FFF:
            return None
        at += (octets[at] & 15) * 4
    elif kind == 0x86DD and len(octets) > at + 40 and octets[at + 6] == _UDP:
        at += 40
    else:
        return None
    port = int.from_bytes(octets[at + 2 : at + 4], "big")
    at += 8 + (_RTP if rtp else 0)
    if len(octets) < at + _HEADER.size:
        return None
    magic, version, what, flow, sequence, _time = _HEADER.unpack_from(octets, at)
    return DataPacket(port, flow, sequence) if (magic, version, what) == (_MAGIC, 1, 0) else None
