"""Two captures of one path, packet by packet: which of A came to B, when, and what was lost.

A packet is found again by its content: length, identification, protocol, addresses and payload of IP;
not by what routers change (time to live, DSCP and ECN, header checksum). Packets of which a capture has
two of the same content count for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from airloom.errors import RunError, ScenarioError
from airloom.host import captured_packets, pcap

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LOST = -1
"""Time of arrival of a packet that did not come."""
_ON_THE_WIRE = 24
"""Octets that the wire is charged beyond a frame: preamble 8, check sequence 4, gap 12."""
_LEAST_FRAME = 60
_FULL_FRAME = 1514
"""Longer frames are taken for several that an offload joined."""


@dataclass(frozen=True, slots=True)
class Way:
    """Packets of one direction in the order of their departure; times in ns by the sender's clock."""

    sent: Integers
    arrived: Integers
    """:data:`LOST` if it did not come."""
    frames: Integers
    """Octets of the Ethernet frame without check sequence."""
    duplicates: int

    @property
    def wire(self) -> Integers:
        """Octets that the wire is charged."""
        return np.maximum(self.frames, _LEAST_FRAME) + _ON_THE_WIRE

    @property
    def came(self) -> npt.NDArray[np.bool_]:
        """Whether each packet came."""
        return np.not_equal(self.arrived, LOST)

    @property
    def delays(self) -> Integers:
        """Delays of the packets that came, in ns."""
        return (self.arrived - self.sent)[self.came]

    def between(self, first: int, last: int) -> Way:
        """Returns the packets that were sent from ``first`` until before ``last``."""
        inside = (self.sent >= first) & (self.sent < last)
        return Way(self.sent[inside], self.arrived[inside], self.frames[inside], self.duplicates)

    def moved(self, shift: Floats) -> Way:
        """Returns the same with each arrival earlier by ``shift`` ns."""
        arrived = self.arrived - np.rint(shift).astype(np.int64)
        return Way(self.sent, np.where(self.came, arrived, LOST), self.frames, self.duplicates)


@dataclass(frozen=True, slots=True)
class Paired:
    """Both directions of a path; one may be empty."""

    forward: Way
    """From A to B."""
    backward: Way
    ambiguous: int
    """Packets that are left out because a capture has several of the same content."""
    joined: int
    """Frames that are left out because an offload had joined several."""


def paired(a: Path, b: Path) -> Paired:
    """Returns the packets of two captures. Raises :class:`ScenarioError` if they have nothing in common."""
    rows_a, rows_b = _read(a), _read(b)
    longest = min((len(one.packet) for one in (*rows_a, *rows_b) if one.cut), default=1 << 16)
    (in_a, several_a), (in_b, several_b) = _by_content(rows_a, longest), _by_content(rows_b, longest)
    common = [key for key in in_a if key in in_b]
    if not common:
        raise ScenarioError(
            "capture.unpaired",
            f"no packet of {a.name} is in {b.name}",
            cure="captures of both ends of one path at one time, whole or cut at one length, without address "
            "translation between them, and without offloads (ethtool -K eth0 tso off gso off gro off)",
        )
    forward = _forward({key: (in_a[key], in_b[key]) for key in common})
    return Paired(
        _way(in_a, in_b, common, lambda flow: flow in forward, several_b),
        _way(in_b, in_a, common, lambda flow: flow not in forward, several_a),
        ambiguous=len(several_a | several_b),
        joined=sum(one.frame > _FULL_FRAME for one in (*rows_a, *rows_b)),
    )


Flow = tuple[bytes, bytes]
"""Source and destination of IP."""


@dataclass(frozen=True, slots=True)
class _Packet:
    at: int
    frame: int
    packet: bytes
    cut: bool

    @property
    def flow(self) -> Flow:
        packet = self.packet
        return (packet[12:16], packet[16:20]) if packet[0] >> 4 == 4 else (packet[8:24], packet[24:40])

    def content(self, longest: int) -> bytes:
        """Digest of what no router changes."""
        packet = self.packet
        if packet[0] >> 4 == 4:
            # Behind a short packet is the padding of its frame.
            length = int.from_bytes(packet[2:4], "big") or len(packet)
            kept = packet[:1] + packet[2:8] + packet[9:10] + packet[12 : min(length, longest)]
        else:
            length = 40 + int.from_bytes(packet[4:6], "big")
            kept = packet[4:7] + packet[8 : min(length, longest)]
        return hashlib.blake2b(kept, digest_size=12).digest()


def _read(path: Path) -> list[_Packet]:
    found = []
    strange = None
    try:
        captured = list(pcap.frames(path))
    except RunError as error:
        raise ScenarioError(
            error.code, error.message, where=str(path), cure="a pcap or pcapng file"
        ) from None
    for one in captured:
        if not captured_packets.is_known(one):
            strange = one.link_type
            continue
        packet = captured_packets.ip_packet(one)
        if packet:
            length = captured_packets.ethernet_length(one)
            found.append(_Packet(one.at, length, packet, len(one.octets) < one.length))
    if not found:
        what = "" if strange is None else f", and frames of {captured_packets.link_type_name(strange)}"
        raise ScenarioError(
            "capture.empty",
            f"the capture has no IP packet{what}",
            where=str(path),
            cure=f"these are read: {captured_packets.READ}",
        )
    return found


def _by_content(rows: list[_Packet], longest: int) -> tuple[dict[bytes, _Packet], set[bytes]]:
    """Returns the packets whose content is there once, and the content of the others."""
    found: dict[bytes, _Packet] = {}
    several = set()
    for one in rows:
        key = one.content(longest)
        if key in found:
            several.add(key)
        found[key] = one
    for key in several:
        del found[key]
    return found, several


def _forward(pairs: dict[bytes, tuple[_Packet, _Packet]]) -> set[Flow]:
    """Returns the flows from A to B.

    Of a flow and its answers, B's clock less A's is more for the one from A to B, by both delays,
    whatever the clocks are. What has no answers goes where other flows of its source go, else to B.
    """
    apart: dict[Flow, list[int]] = {}
    for one, other in pairs.values():
        apart.setdefault(one.flow, []).append(other.at - one.at)
    middle = {flow: float(np.median(values)) for flow, values in apart.items()}
    sides: dict[bytes, bool] = {}
    for (source, to), value in middle.items():
        answer = middle.get((to, source))
        if answer is not None:
            sides[source] = value > answer
    return {
        (source, to) for source, to in middle if sides.get(source, not sides[to] if to in sides else True)
    }


def _way(
    here: dict[bytes, _Packet],
    there: dict[bytes, _Packet],
    common: Sequence[bytes],
    mine: Callable[[Flow], bool],
    several: set[bytes],
) -> Way:
    """Returns a direction: what was sent between its first and its last packet that both captures have."""
    both = [here[key] for key in common if mine(here[key].flow)]
    flows = {one.flow for one in both}
    first, last = (min(one.at for one in both), max(one.at for one in both)) if both else (0, -1)
    # Of what the other capture has several times, this one has one: the path has duplicated it.
    doubled = sum(key in several and one.flow in flows for key, one in here.items())
    rows = sorted(
        (one.at, there[key].at if key in there else LOST, one.frame)
        for key, one in here.items()
        if first <= one.at <= last and one.flow in flows and key not in several and one.frame <= _FULL_FRAME
    )
    sent, arrived, frames = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Way(sent, arrived, frames, doubled)
