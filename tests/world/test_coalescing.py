"""Segments that a node gets together, with real programs: each has its own time on the links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from airloom import Capture, Lab, Scenario
from airloom.host import pcap
from helpers.nodes import eventually

pytestmark = pytest.mark.world

RATE = 200_000_000
FULL = 1514
"""Octets of a full frame."""
INTERVAL = (FULL + 24) * 8 * 10**9 // RATE
"""Time of a full frame on a link in ns, rounded down."""
ROUTERS = 4
LAST = ROUTERS + 2
AT_ONCE = 0.2
"""Share of segments that a router may send at once with the one before.

It is more than a half if a router sends each super-frame on as a whole: its segments then leave at one
instant, and there are more of them than of super-frames. A segment that a busy machine hands on late leaves
with the one after it, which the run counts.
"""
RX_PACKETS = "cat /sys/class/net/eth0/statistics/rx_packets"
SENDS, DATAGRAMS = 4, 40
"""Calls of ``send`` with UDP segmentation, and datagrams of each; a socket's buffer holds them all."""
SENDER = f"""
import socket, struct, sys, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_UDP, 103, 1472)  # UDP_SEGMENT
for call in range({SENDS}):
    numbers = range(call * {DATAGRAMS}, (call + 1) * {DATAGRAMS})
    udp.sendto(b"".join(struct.pack("!I", n) + bytes([n]) * 1468 for n in numbers), (sys.argv[1], 6000))
    time.sleep(0.01)
"""
RECEIVER = f"""
import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
udp.bind(("0.0.0.0", 6000))
udp.settimeout(20)
print("bound", flush=True)
for n in range({SENDS * DATAGRAMS}):
    data = udp.recv(65535)
    assert data == n.to_bytes(4, "big") + bytes([n]) * 1468, (n, len(data), data[:8])
print("all")
"""


@dataclass(frozen=True)
class Seen:
    """What one TCP flow over the routers left behind."""

    frames: int
    """Data frames that reached the last node, as the capture has them."""
    packets: int
    """Packets that its kernel counted."""
    gaps: dict[str, np.ndarray]
    """Intervals in ns of the full frames at each port, by the port's name and direction."""


def scenario(coalesce: str) -> Scenario:
    """Returns a chain of routers."""
    link = {"rate": "200 Mbit/s", "coalesce": coalesce, "queue": {"packets": 1000}}
    return Scenario.model_validate(
        {"name": "coalescing", "topology": {"generator": "chain", "nodes": LAST, "link": link}}
    )


def flow(folder: Path, coalesce: str) -> Seen:
    """Sends 1 MB of TCP over a chain of routers."""
    with Lab(scenario(coalesce), out=folder, capture=Capture(merged=True)) as lab:
        sink = lab[f"n{LAST}"]
        server = sink.start(["iperf3", "-s", "-1"])
        lab["n1"].run(
            f"for try in 1 2 3 4 5 6 7 8 9; do "
            f"iperf3 -c {lab.addresses[sink.name]} -n 1M -C cubic && exit 0; sleep 1; done; exit 1",
            timeout=60,
            check=True,
        )
        server.wait(20)
        packets = int(sink.run(RX_PACKETS, check=True).stdout)
    return seen(folder, packets)


def seen(folder: Path, packets: int) -> Seen:
    """Reads the capture of a flow of full frames."""
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
        assert np.mean(gaps < INTERVAL // 2) < AT_ONCE, f"n{router}"
    arrivals = together.gaps[f"n{LAST}:eth0 in"]
    assert arrivals.min() >= INTERVAL, "the last link has its rate"
    assert np.median(arrivals) <= INTERVAL + 1, "and is busy"


def test_without_coalescing_each_segment_is_a_packet(tmp_path: Path) -> None:
    alone = flow(tmp_path / "alone", "0 s")
    assert alone.packets >= alone.frames


def datagrams(folder: Path, coalesce: str) -> Seen:
    """Sends UDP super-frames over a chain of routers to a socket that wants single datagrams."""
    with Lab(scenario(coalesce), out=folder, capture=Capture(merged=True)) as lab:
        source, sink = lab["n1"], lab[f"n{LAST}"]
        receiver = sink.start(["python3", "-c", RECEIVER])
        eventually(lambda: "bound" in receiver.output, "the receiver is bound")
        source.run(["python3", "-c", SENDER, lab.addresses[sink.name]], check=True)
        receiver.wait(30)
        assert receiver.output.split() == ["bound", "all"]
        packets = int(sink.run(RX_PACKETS, check=True).stdout)
    return seen(folder, packets)


def test_datagrams_together_arrive_as_they_were_sent(tmp_path: Path) -> None:
    together = datagrams(tmp_path / "together", "2 ms")
    assert together.frames == SENDS * DATAGRAMS
    assert together.packets < together.frames / 2, "the kernel got several at once"
    for router in range(2, LAST):
        gaps = together.gaps[f"n{router}:eth1 out"]
        assert np.mean(gaps < INTERVAL // 2) < AT_ONCE, f"n{router}"
    assert together.gaps[f"n{LAST}:eth0 in"].min() >= INTERVAL, "the last link has its rate"
    alone = datagrams(tmp_path / "alone", "0 s")
    assert alone.frames == SENDS * DATAGRAMS
    assert alone.packets >= alone.frames
