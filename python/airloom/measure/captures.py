"""A flow of Airloom's generator computed from captures at both ends, as by a network analyser.

The times of a capture are those of the network. In a run's own ``capture.pcapng`` they are the
engine's: when a frame entered at the sender's port and when it was due at the receiver's. In a file
of tcpdump or Wireshark they are the kernel's. The generator's records
(:mod:`airloom.measure.records`) contain the programs' times instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airloom.host.pcap import frames
from airloom.measure.flow import FlowReading, jitter_rfc3550, jitter_rfc4689, reordering
from airloom.measure.packets import data_packet
from airloom.measure.records import Integers
from airloom.measure.tool import MeasureError

CHECK_SEQUENCE = 4
"""Octets of an Ethernet frame's check sequence, which no capture contains."""


@dataclass(frozen=True, slots=True, eq=False)
class Sightings:
    """The packets of one flow at one place, in capture order."""

    at: Integers
    sequence: Integers
    octets: Integers
    """Length of the frame, including its check sequence."""


def sightings(path: str | Path, *, port: str | None = None, flow: int | None = None) -> Sightings:
    """The data packets of a flow in a capture: at the named port, or in the whole file.

    ``flow`` is the number of the flow; the default is the first flow in the file.
    """
    found: list[tuple[int, int, int]] = []
    for frame in frames(path):
        if port is not None and frame.port != port:
            continue
        packet = data_packet(frame.octets)
        if packet is None or (port is not None and not frame.direction):
            continue
        if flow is None:
            flow = packet.flow
        if packet.flow == flow:
            found.append((frame.at, packet.sequence, frame.length + CHECK_SEQUENCE))
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
    """The flow between two captures, or two ports of one capture; octets are those of frames."""
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
