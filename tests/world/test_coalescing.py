"""Segments that a node gets together, with real programs: each has its own time on the links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from airloom import Capture, Lab, Scenario
from airloom.measure import pcap

pytestmark = pytest.mark.world

RATE = 200_000_000
FULL = 1514
"""Octets of a full frame."""
INTERVAL = (FULL + 24) * 8 * 10**9 // RATE
"""Time of a full frame on a link in ns, rounded down."""
ROUTERS = 4
LAST = ROUTERS + 2


@dataclass(frozen=True)
class Seen:
    """What one TCP flow over the routers left behind."""

    frames: int
    """Data frames that reached the last node, as the capture has them."""
    packets: int
    """Packets that its kernel counted."""
    gaps: dict[str, np.ndarray]
    """Intervals in ns of the full frames at each port, by the port's name and direction."""


def flow(folder: Path, coalesce: str) -> Seen:
    """Sends 1 MB of TCP over a chain of routers."""
    link = {"rate": "200 Mbit/s", "coalesce": coalesce, "queue": {"packets": 1000}}
    scenario = Scenario.model_validate(
        {"name": "coalescing", "topology": {"generator": "chain", "nodes": LAST, "link": link}}
    )
    with Lab(scenario, out=folder, capture=Capture(merged=True)) as lab:
        sink = lab[f"n{LAST}"]
        received = "cat /sys/class/net/eth0/statistics/rx_packets"
        server = sink.start(["iperf3", "-s", "-1"])
        lab["n1"].run(
            f"for try in 1 2 3 4 5 6 7 8 9; do "
            f"iperf3 -c {lab.addresses[sink.name]} -n 1M -C cubic && exit 0; sleep 1; done; exit 1",
            timeout=60,
            check=True,
        )
        server.wait(20)
        packets = int(sink.run(received, check=True).stdout)
    times: dict[str, list[int]] = {}
    for frame in pcap.frames(folder / "capture.pcapng"):
        if frame.length == FULL:
            times.setdefault(f"{frame.port} {frame.direction}", []).append(frame.at)
    gaps = {name: np.diff(np.sort(np.array(at))) for name, at in times.items()}
    return Seen(len(times[f"n{LAST}:eth0 in"]), packets, gaps)


def test_segments_together_leave_routers_as_they_came(tmp_path: Path) -> None:
    together = flow(tmp_path / "together", "2 ms")
    assert together.packets < together.frames / 2, "the kernel got several at once"
    for router in range(2, LAST):
        gaps = together.gaps[f"n{router}:eth1 out"]
        # A super-frame that is sent on as a whole would have all its segments at one instant.
        assert np.mean(gaps < INTERVAL // 2) < 0.05, f"n{router}"
    arrivals = together.gaps[f"n{LAST}:eth0 in"]
    assert arrivals.min() >= INTERVAL, "the last link has its rate"
    assert np.median(arrivals) <= INTERVAL + 1, "and is busy"


def test_without_coalescing_each_segment_is_a_packet(tmp_path: Path) -> None:
    alone = flow(tmp_path / "alone", "0 s")
    assert alone.packets >= alone.frames
