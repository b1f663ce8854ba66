"""Where a packet's time goes: from the sending program to the receiving one, boundary by boundary.

A packet passes five kinds of stages: the system call into its node's kernel, that kernel's network stack,
the virtual device, the host's own network stack where it lies on the path, and the emulated network. Seven
moments of each packet are known:

=========  ==========================================================================  =================
boundary   when                                                                        who saw it
=========  ==========================================================================  =================
sent       right before the system call                                                generator
queued     the stack handed it to the queueing discipline                              node's kernel
driver     the device's driver took it                                                 node's kernel
entered    the engine took it from the node's port                                     engine
left       it was due at the receiving node's port (model time)                        engine
arrived    the receiving node's kernel got it from its driver                          node's kernel
read       the receiving program had it                                                generator
=========  ==========================================================================  =================

Between two boundaries lies a stage. What the engine was late is in the stage after ``left``. Times of nodes
with clocks of their own have been moved to the host's before, with an error that is given.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airloom.measure.capture import Captured
from airloom.measure.records import Integers, Passed
from airloom.measure.tool import Metric

BOUNDARIES = ("sent", "queued", "driver", "entered", "left", "arrived", "read")

STAGES: dict[str, tuple[str, str]] = {
    "send_stack": ("sent", "queued"),
    "send_queue": ("queued", "driver"),
    "send_device": ("driver", "entered"),
    "network": ("entered", "left"),
    "receive_device": ("left", "arrived"),
    "receive_stack": ("arrived", "read"),
}
"""Name of a stage: the boundaries between which it lies."""

TITLES = {
    "send_stack": "system call and the sending node's network stack",
    "send_queue": "the sending node's queueing discipline",
    "send_device": "virtual device, and the host's kernel where it lies on the path",
    "network": "the emulated network",
    "receive_device": "the engine's lateness, the host's kernel where it lies on the path, virtual device",
    "receive_stack": "the receiving node's network stack, and waking the program",
}

_MAGIC = struct.pack("!HB", 0xA17A, 1)
_UDP = 17
_VLAN = (0x8100, 0x88A8)


@dataclass(frozen=True, slots=True)
class Followed:
    """Which packets are followed, and where they meet the engine."""

    port: int
    """UDP port at which they arrive."""
    rtp: bool
    """They begin with an RTP header of 12 octets."""
    sender: str
    """Name of the sending node; its ports are ``sender:...``."""
    receiver: str
    system_call_ns: int | None = None
    """What a system call that does nothing costs in the sending node."""
    clock_error_ns: int = 0
    """Largest error of moving both nodes' times to the host's clock."""


def of_frame(octets: bytes, flow: Followed) -> int | None:
    """The low 32 bits of the number of a data packet of that flow; none for any other frame."""
    kind, place = int.from_bytes(octets[12:14], "big"), 14
    while kind in _VLAN:
        kind, place = int.from_bytes(octets[place + 2 : place + 4], "big"), place + 4
    if kind == 0x0800 and len(octets) >= place + 20:
        protocol, fragment = octets[place + 9], int.from_bytes(octets[place + 6 : place + 8], "big") & 0x1FFF
        place += (octets[place] & 15) * 4
        if fragment:
            return None  # its first fragment stands for a packet
    elif kind == 0x86DD and len(octets) >= place + 40:
        protocol = octets[place + 6]
        place += 40
    else:
        return None
    if protocol != _UDP or int.from_bytes(octets[place + 2 : place + 4], "big") != flow.port:
        return None
    place += 8 + (12 if flow.rtp else 0)
    head = octets[place : place + 10]
    if len(head) < 10 or head[:3] != _MAGIC or head[3] != 0:
        return None
    return int.from_bytes(head[6:10], "big")


def at_the_engine(captured: Iterable[Captured], flow: Followed, to_host: int) -> dict[str, Passed]:
    """When packets entered and left the engine, first time each; ``to_host`` is added to its times."""
    entered: dict[int, int] = {}
    left: dict[int, int] = {}
    for frame in captured:
        node = frame.port.partition(":")[0]
        place = left if frame.inbound and node == flow.receiver else entered
        if node != (flow.receiver if frame.inbound else flow.sender):
            continue
        number = of_frame(frame.octets, flow)
        if number is not None:
            place.setdefault(number, frame.at + to_host)
    return {name: _columns(found) for name, found in (("entered", entered), ("left", left))}


def _columns(found: Mapping[int, int]) -> Passed:
    return (
        np.fromiter(found.keys(), np.int64, len(found)),
        np.fromiter(found.values(), np.int64, len(found)),
    )


def durations(boundaries: Mapping[str, Passed]) -> dict[str, Integers]:
    """Stage: ns that each packet spent in it, of the packets that are known at both of its ends."""
    found = {}
    for name, (begin, end) in STAGES.items():
        if begin in boundaries and end in boundaries:
            (first, begun), (second, ended) = boundaries[begin], boundaries[end]
            _, here, there = np.intersect1d(first, second, return_indices=True)
            if here.size:
                found[name] = ended[there] - begun[here]
    return found


def moments(boundaries: Mapping[str, Passed], known: Sequence[str]) -> dict[str, float]:
    """Boundary: mean time since a packet was sent, ns, over the packets that are known at every boundary.

    Not every device stamps what it sends, and not every path has an engine: differences of these are the
    stages between whatever boundaries two runs have in common.
    """
    numbers = None
    for name in known:
        here = np.unique(boundaries[name][0])
        numbers = here if numbers is None else np.intersect1d(numbers, here)
    if "sent" not in known or numbers is None or not numbers.size:
        return {}
    columns = {}
    for name in known:
        order, first = np.unique(boundaries[name][0], return_index=True)
        columns[name] = boundaries[name][1][first][np.isin(order, numbers)]
    return {name: float((column - columns["sent"]).mean()) for name, column in columns.items()}


def metrics(boundaries: Mapping[str, Passed], flow: Followed) -> list[Metric]:
    """Of every stage the mean, median and 99th percentile of its time, and what was lost in it."""
    found = []
    for name, values in durations(boundaries).items():
        p50, p99 = np.quantile(values, [0.5, 0.99])
        found += [
            Metric(f"stage_{name}_mean", "ns", float(values.mean())),
            Metric(f"stage_{name}_p50", "ns", float(p50)),
            Metric(f"stage_{name}_p99", "ns", float(p99)),
        ]
    known = [name for name in BOUNDARIES if name in boundaries and boundaries[name][0].size]
    reached = {name: np.unique(boundaries[name][0]).size for name in known}
    for name, (begin, end) in STAGES.items():
        if begin in reached and end in reached:
            found.append(Metric(f"stage_{name}_lost", "packets", max(0, reached[begin] - reached[end])))
    for name, since in moments(boundaries, known).items():
        found.append(Metric(f"stage_at_{name}", "ns", since))
        found.append(Metric(f"stage_at_{name}_packets", "packets", reached[name]))
    if flow.system_call_ns is not None:
        found.append(Metric("stage_system_call", "ns", flow.system_call_ns))
    if flow.clock_error_ns:
        found.append(Metric("stage_clock_error", "ns", flow.clock_error_ns))
    return found
