"""A flow of Airloom's generator from captures at both its ends, as a network analyser has it.

A capture's times are those of the network. In a run's own ``capture.pcapng`` they are the engine's: when
a frame entered at the sender's port and when it was due at the receiver's. In a file of tcpdump or
Wireshark they are the kernel's. The records of the generator (:mod:`airloom.measure.records`) are the
programs' view instead.

pcapng (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3) and the older pcap are read, in both byte orders, with
microseconds, nanoseconds or any other resolution.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from airloom.measure.flow import FlowReading, jitter_rfc3550, jitter_rfc4689, reordering
from airloom.measure.records import Integers
from airloom.measure.tool import MeasureError

CHECK_SEQUENCE = 4
"""Octets of an Ethernet frame that no capture has."""

_MAGIC = 0xA17A
_HEADER = struct.Struct(">HBBHIQ")
"""Magic, version, kind, flow, sequence, time: ``traffic/src/packet.rs``."""
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_CLASSIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Magic of a pcap file: nanoseconds in a unit of its fractions."""
_UDP = 17


@dataclass(frozen=True, slots=True)
class Captured:
    """One frame of a capture."""

    port: str
    """Name of the interface; empty where the file names none."""
    at: int
    """ns since 1970."""
    octets: bytes
    length: int
    """Octets of the frame, also if fewer were captured; without check sequence."""
    direction: str
    """``in``, ``out``, or empty where the file does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class Sightings:
    """The packets of one flow at one place, in the order of the capture."""

    at: Integers
    sequence: Integers
    octets: Integers
    """Of the frame, with its check sequence."""


def frames(path: str | Path) -> Iterator[Captured]:
    """All frames of a capture; :class:`MeasureError` where the file is damaged."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise MeasureError(
            "measure.capture.missing", f"cannot read the capture: {error.strerror}", where=str(path)
        ) from error
    try:
        yield from _frames(content, str(path))
    except (struct.error, IndexError) as error:
        raise MeasureError(
            "measure.capture.damaged", f"a block is cut off: {error}", where=str(path)
        ) from error


def sightings(path: str | Path, *, port: str | None = None, flow: int | None = None) -> Sightings:
    """The data packets of a flow in a capture: at the named port, or wherever the file was taken.

    ``flow`` is the number of the flow; without one the first that is seen counts.
    """
    found: list[tuple[int, int, int]] = []
    for frame in frames(path):
        if port is not None and frame.port != port:
            continue
        packet = _data(frame.octets)
        if packet is None or (port is not None and not frame.direction):
            continue
        if flow is None:
            flow = packet[0]
        if packet[0] == flow:
            found.append((frame.at, packet[1], frame.length + CHECK_SEQUENCE))
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return Sightings(*columns)


def flow(
    sender: str | Path,
    receiver: str | Path,
    *,
    sender_port: str | None = None,
    receiver_port: str | None = None,
    number: int | None = None,
) -> FlowReading:
    """The flow that two captures saw, or two ports of one capture; octets are those of frames."""
    left = sightings(sender, port=sender_port, flow=number)
    came = sightings(receiver, port=receiver_port, flow=number)
    for place, seen in ((sender, left), (receiver, came)):
        if not seen.at.size:
            raise MeasureError(
                "measure.capture.empty",
                "no packet of airloom-traffic is in the capture",
                where=str(place),
                cure="name the port (such as h1:eth0) and the number of the flow",
            )
    _, once = np.unique(left.sequence, return_index=True)
    left = Sightings(left.at[once], left.sequence[once], left.octets[once])
    known = np.isin(came.sequence, left.sequence)
    firsts = np.zeros(came.sequence.size, np.bool_)
    firsts[np.unique(came.sequence, return_index=True)[1]] = True
    kept = known & firsts
    sequence, arrived_at, octets = came.sequence[kept], came.at[kept], came.octets[kept]
    sent_at = left.at[np.searchsorted(left.sequence, sequence)]
    delays = arrived_at - sent_at
    late, extents = reordering(sequence)
    none = np.empty(0, np.int64)
    return FlowReading(
        protocol="udp",
        sent=int(left.sequence.size),
        not_sent=0,
        received=int(kept.sum()),
        duplicates=int((known & ~firsts).sum()),
        reordered=int(late.sum()),
        extents=extents,
        host_lost=0,
        complete=True,
        sent_at=sent_at,
        arrived_at=arrived_at,
        delays=delays,
        jitter=jitter_rfc4689(delays),
        jitter_rtp=jitter_rfc3550(delays),
        lateness=none,
        lateness_at=none,
        arrivals=arrived_at,
        arrival_octets=octets,
        departures=left.at,
        departure_octets=left.octets,
    )


def _data(octets: bytes) -> tuple[int, int] | None:
    """Flow and sequence number of a data packet over UDP; None for anything else."""
    at = 12
    kind = int.from_bytes(octets[at : at + 2], "big")
    while kind in (0x8100, 0x88A8):
        at += 4
        kind = int.from_bytes(octets[at : at + 2], "big")
    at += 2
    if kind == 0x0800 and len(octets) > at + 20 and octets[at + 9] == _UDP:
        # Of a packet in fragments the first has the header; the others are no packets of their own.
        if int.from_bytes(octets[at + 6 : at + 8], "big") & 0x1FFF:
            return None
        at += (octets[at] & 15) * 4
    elif kind == 0x86DD and len(octets) > at + 40 and octets[at + 6] == _UDP:
        at += 40
    else:
        return None
    at += 8
    if len(octets) < at + _HEADER.size:
        return None
    magic, version, what, flow, sequence, _time = _HEADER.unpack_from(octets, at)
    return (flow, sequence) if (magic, version, what) == (_MAGIC, 1, 0) else None


def _frames(content: bytes, where: str) -> Iterator[Captured]:
    first = content[:4]
    for order in "<>":
        if struct.unpack(order + "I", first.ljust(4, b"\0"))[0] in _CLASSIC:
            return _classic(content, order)
    if first == _SECTION.to_bytes(4, "big"):
        return _blocks(content, where)
    _refuse("the file begins neither as pcapng nor as pcap", where)


def _refuse(what: str, where: str) -> NoReturn:
    raise MeasureError("measure.capture.damaged", what, where=where)


def _classic(content: bytes, order: str) -> Iterator[Captured]:
    unit = _CLASSIC[struct.unpack_from(order + "I", content)[0]]
    at = 24
    while at < len(content):
        seconds, fraction, kept, length = struct.unpack_from(order + "IIII", content, at)
        at += 16
        yield Captured("", seconds * 10**9 + fraction * unit, content[at : at + kept], length, "")
        at += kept


def _blocks(content: bytes, where: str) -> Iterator[Captured]:
    order, at = "<", 0
    interfaces: list[tuple[str, int]] = []
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
            interfaces.append((known.get(2, b"").decode(errors="replace"), base ** (resolution & 0x7F)))
        elif kind == _PACKET:
            number, high, low, kept, original = struct.unpack_from(order + "IIIII", body)
            if number >= len(interfaces):
                _refuse(f"the block at octet {at} names interface {number}, which is not described", where)
            name, per_second = interfaces[number]
            flags = _options(body[20 + (kept + 3) // 4 * 4 :], order).get(2, b"\0\0\0\0")
            direction = ("", "in", "out", "")[struct.unpack(order + "I", flags.ljust(4, b"\0")[:4])[0] & 3]
            time = (high << 32 | low) * 10**9 // per_second
            yield Captured(name, time, body[20 : 20 + kept], original, direction)
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
