"""Time of a packet in each stage of its path from the sending to the receiving program.

A packet passes five kinds of stages: the system call into its node's kernel, that kernel's network stack,
the virtual device, the host's own network stack if it is on the path, and the emulated network. Seven
times are recorded for each packet:

=========  ==========================================================================  =================
boundary   when                                                                        recorded by
=========  ==========================================================================  =================
sent       right before the system call                                                generator
queued     the stack passed it to the queueing discipline                              node's kernel
driver     the device's driver took it                                                 node's kernel
entered    the engine took it from the node's port                                     engine
left       it was due at the receiving node's port (model time)                        engine
arrived    the receiving node's kernel got it from its driver                          node's kernel
read       the receiving program read it                                               generator
=========  ==========================================================================  =================

A stage lies between two boundaries. The engine's lateness belongs to the stage after ``left``. Times
of nodes with their own clocks have already been converted to the host's; the error is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airloom.host.pcap import Captured
from airloom.measure.packets import data_packet
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
"""Name of a stage: its first and its last boundary."""

TITLES = {
    "send_stack": "system call and the sending node's network stack",
    "send_queue": "the sending node's queueing discipline",
    "send_device": "virtual device, and the host's kernel where it lies on the path",
    "network": "the emulated network",
    "receive_device": "the engine's lateness, the host's kernel where it lies on the path, virtual device",
    "receive_stack": "the receiving node's network stack, and waking the program",
}


@dataclass(frozen=True, slots=True)
class Followed:
    """The packets to follow, and their ports at the engine."""

    port: int
    """Destination UDP port."""
    rtp: bool
    """Whether they begin with an RTP header of 12 octets."""
    sender: str
    """Name of the sending node; its ports are ``sender:...``."""
    receiver: str
    system_call_ns: int | None = None
    """Duration of an empty system call in the sending node."""
    clock_error_ns: int = 0
    """Largest error of the conversion of both nodes' times to the host's clock."""


def at_the_engine(captured: Iterable[Captured], flow: Followed, to_host: int) -> dict[str, Passed]:
    """Times at which packets first entered and left the engine; ``to_host`` is added to them."""
    entered: dict[int, int] = {}
    left: dict[int, int] = {}
    for frame in captured:
        if not frame.direction:
            continue
        inbound = frame.direction == "in"
        if frame.port.partition(":")[0] != (flow.receiver if inbound else flow.sender):
            continue
        packet = data_packet(frame.octets, rtp=flow.rtp)
        if packet is not None and packet.port == flow.port:
            (left if inbound else entered).setdefault(packet.sequence, frame.at + to_host)
    return {name: _columns(found) for name, found in (("entered", entered), ("left", left))}


def _columns(found: Mapping[int, int]) -> Passed:
    return (
        np.fromiter(found.keys(), np.int64, len(found)),
        np.fromiter(found.values(), np.int64, len(found)),
    )


def durations(boundaries: Mapping[str, Passed]) -> dict[str, Integers]:
    """Stage: ns that each packet spent in it, for packets with times at both of its boundaries."""
    found = {}
    for name, (begin, end) in STAGES.items():
        if begin in boundaries and end in boundaries:
            (first, begun), (second, ended) = boundaries[begin], boundaries[end]
            _, here, there = np.intersect1d(first, second, return_indices=True)
            if here.size:
                found[name] = ended[there] - begun[here]
    return found


def moments(boundaries: Mapping[str, Passed], known: Sequence[str]) -> dict[str, float]:
    """Boundary: mean time since sending, ns, over the packets with times at every boundary.

    Not every device timestamps the packets it sends, and not every path has an engine. Differences
    of these values are the stages between the boundaries that two runs have in common.
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
    """Mean, median and 99th percentile of the time in each stage, and its losses."""
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
