"""Packets followed through the stages of their path, and clocks that stand apart."""

import struct

import numpy as np
import pytest

from airloom.host.pcap import Captured
from airloom.measure.packets import data_packet
from airloom.measure.stages import Followed, at_the_engine, durations, metrics
from airloom.measure.tool import Skew
from airloom.nodes.kind import ClockReading

FLOW = Followed(port=5201, rtp=False, sender="h1", receiver="h2", system_call_ns=120)


def packet(number: int, *, port: int = 5201, kind: int = 0, vlan: bool = False, v6: bool = False) -> bytes:
    own = struct.pack("!HBBHIQ", 0xA17A, 1, kind, 1, number, 0)
    udp = struct.pack("!HHHH", 40000, port, 8 + len(own), 0) + own
    ipv4, ipv6 = b"\x45" + bytes(8) + b"\x11" + bytes(10), b"\x60" + bytes(5) + b"\x11\x40" + bytes(32)
    tag = b"\x81\x00\x00\x0a" if vlan else b""
    return bytes(12) + tag + (b"\x86\xdd" + ipv6 if v6 else b"\x08\x00" + ipv4) + udp


def frame(interface: str, at: int, direction: str, **more) -> Captured:
    octets = packet(3, **more)
    return Captured(interface, at, octets, len(octets), direction)


def columns(found: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(found)), np.array(list(found.values()))


@pytest.mark.parametrize("more", [{}, {"vlan": True}, {"v6": True}, {"vlan": True, "v6": True}])
def test_a_data_packet_is_known_in_a_frame(more):
    found = data_packet(packet(7, **more))
    assert found is not None
    assert (found.port, found.flow, found.sequence) == (5201, 1, 7)


@pytest.mark.parametrize(
    "other",
    [packet(7, kind=1), packet(7)[:30], b"", packet(7)[:-12], bytes(200)],
    ids=["end mark", "cut", "empty", "cut in our header", "no IP"],
)
def test_everything_else_is_passed_over(other):
    assert data_packet(other) is None


def test_the_engine_saw_it_enter_at_the_sender_and_leave_at_the_receiver():
    captured = [
        frame("h1:eth0", 1_000, "out"),
        frame("h1:eth0", 900, "out", port=5202),  # another flow
        frame("r:eth0", 1_400, "in"),  # a router on the way
        frame("r:eth1", 1_500, "out"),
        frame("h2:eth0", 2_000, "in"),
        frame("h2:eth0", 2_300, "in"),  # a duplicate
    ]
    found = at_the_engine(captured, FLOW, -900)
    assert [times.tolist() for _, times in found.values()] == [[100], [1_100]]


def test_stages_and_losses():
    boundaries = {
        "sent": columns({0: 0, 1: 1_000, 2: 2_000}),
        "queued": columns({0: 10, 1: 1_010, 2: 2_010}),
        "driver": columns({1: 1_013, 0: 12}),
        "entered": columns({0: 112, 1: 1_113}),
        "left": columns({0: 612}),
        "arrived": columns({0: 642}),
        "read": columns({0: 649}),
    }
    assert {name: one.tolist() for name, one in durations(boundaries).items()} == {
        "send_stack": [10, 10, 10],
        "send_queue": [2, 3],
        "send_device": [100, 100],
        "network": [500],
        "receive_device": [30],
        "receive_stack": [7],
    }
    found = {one.name: one.value for one in metrics(boundaries, FLOW)}
    assert found["stage_send_queue_mean"] == 2.5
    assert found["stage_send_queue_lost"] == 1
    assert found["stage_network_lost"] == 1
    assert found["stage_receive_stack_lost"] == 0
    assert found["stage_system_call"] == 120
    # Only packet 0 is known everywhere.
    assert [found[f"stage_at_{name}"] for name in boundaries] == [0, 10, 12, 112, 612, 642, 649]
    assert [found[f"stage_at_{name}_packets"] for name in boundaries] == [3, 3, 2, 2, 1, 1, 1]


def test_a_clock_that_stands_apart_and_drifts_is_moved():
    # The node's clock was 1 s behind at first, and gained 1 us in 10 ms.
    host = np.array([50_000_000, 55_000_000, 60_000_000])
    node = host - 1_000_000_000 + np.array([0, 500, 1_000])
    skew = Skew(ClockReading(50_000_000, -1_000_000_000, 90), ClockReading(60_000_000, -999_999_000, 70))
    assert np.abs(skew.to_host(node) - host).max() <= 1
    assert skew.error == 90
    still = Skew(ClockReading(0, 5, 1), ClockReading(9, 5, 1))
    assert still.to_host(np.array([105])).tolist() == [100]
