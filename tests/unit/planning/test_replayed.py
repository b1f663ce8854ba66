"""Measurements that send what a capture has."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.measure import Place
from airloom.measure.traffic import TrafficTool
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from helpers.pcap_files import ethernet, udp_packet, write

SCENARIO = (
    "name: x\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n"
    "measurements: [{name: flow, traffic: {from: a, to: b, pattern: replay, capture: x.pcap%s}}]\n"
)
START = 1_700_000_000_000_000_123
OTHER = b"\xc0\0\2\7"


def plan(folder: Path, said: str = "") -> Plan:
    (folder / "x.yaml").write_text(SCENARIO % said)
    return check(folder / "x.yaml").plans[0]


def trace(folder: Path, said: str = "", address: str = "10.0.0.2") -> list[tuple[int, int]]:
    tool = plan(folder, said).scenario.measurements[0].traffic
    assert tool is not None
    place = Place("flow", {"a": ["10.0.0.1"], "b": [address]}, port=5201, seed=1, traffic="/bin/t")
    sender = TrafficTool(tool, place).steps()[1]
    words = " ".join(sender.argv)
    assert "--pattern trace" in words
    lines = sender.files["flow.trace"].decode().splitlines()
    return [(int(at), int(size)) for at, size in (line.split() for line in lines)]


def payloads(*rows: tuple[int, int]) -> list[tuple[int, bytes]]:
    return [(START + at, ethernet(udp_packet(bytes(size)))) for at, size in rows]


def test_frames_keep_their_times_and_lengths_to_the_nanosecond(tmp_path: Path) -> None:
    rows = [(0, 200), (1, 1400), (1_000_001, 18), (3_000_000_007, 600)]
    write(tmp_path / "x.pcap", payloads(*rows))
    assert trace(tmp_path) == rows
    # As long over IPv6, whose header has 20 octets more; what does not fit is the generator's least.
    assert trace(tmp_path, address="fd00::2") == [
        (0, 180),
        (1, 1380),
        (1_000_001, 18),
        (3_000_000_007, 580),
    ]


def test_it_lasts_as_long_as_the_capture_unless_it_is_said(tmp_path: Path) -> None:
    write(tmp_path / "x.pcap", payloads((0, 100), (42_000_000_000, 100)))
    whole = plan(tmp_path).scenario.measurements[0].traffic
    assert whole is not None
    assert whole.duration == 42_000_000_001
    cut = plan(tmp_path, ", duration: 5 s")
    assert cut.scenario.measurements[0].tool.expected == 5_000_000_000
    assert "measurements[0].traffic.capture: 1 frames are after its duration, 5 s" in cut.notes


@pytest.mark.parametrize(("speed", "at"), [("4", 750), ("0.1", 30_000), ("3", 1000)])
def test_a_speed_scales_the_times(tmp_path: Path, speed: str, at: int) -> None:
    write(tmp_path / "x.pcap", payloads((0, 100), (3000, 100)))
    assert trace(tmp_path, f", speed: {speed}") == [(0, 100), (at, 100)]


@pytest.mark.parametrize("address", ["192.0.2.7", '"02:00:00:00:00:07"'])
def test_one_direction_keeps_its_place_in_the_capture(tmp_path: Path, address: str) -> None:
    there = [(START, ethernet(udp_packet(bytes(100)))), (START + 900, ethernet(udp_packet(bytes(100))))]
    back = ethernet(udp_packet(bytes(50), OTHER, b"\xc0\0\2\1"))
    back = back[:6] + bytes.fromhex("020000000007") + back[12:]
    write(tmp_path / "x.pcap", [there[0], (START + 500, back), there[1]])
    assert trace(tmp_path, f", only_from: {address}") == [(500, 50)]
    assert [at for at, _ in trace(tmp_path, ", only_from: 192.0.2.1")] == [0, 900]


def test_frames_that_an_offload_joined_are_sent_in_parts(tmp_path: Path) -> None:
    # 3000 octets of TCP payload behind headers of 66: parts of 1448, 1448 and 104 octets of it.
    write(tmp_path / "x.pcap", [(START, bytes(80))], length=3066)
    assert trace(tmp_path) == [(0, 1472), (0, 1472), (0, 128)]
    assert any("1 frames are longer than 1514 octets" in note for note in plan(tmp_path).notes)
    assert trace(tmp_path, ", split: 9014 B") == [(0, 3024)]


def test_frames_out_of_order_are_sorted_and_noted(tmp_path: Path) -> None:
    write(tmp_path / "x.pcap", payloads((500, 100), (0, 200), (900, 300)))
    assert trace(tmp_path) == [(0, 200), (500, 100), (900, 300)]
    assert any("1 frames are earlier than the one above" in note for note in plan(tmp_path).notes)


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (101, b""),
        (113, bytes(14) + b"\x08\0"),
        (276, b"\x08\0" + bytes(18)),
        (0, b"\2\0\0\0"),
    ],
)
def test_other_link_types_have_the_length_of_an_ethernet(
    tmp_path: Path, link_type: int, header: bytes
) -> None:
    packet = udp_packet(bytes(300))
    write(tmp_path / "x.pcap", [(START, header + packet)], link_type)
    assert trace(tmp_path, ", only_from: 192.0.2.1") == [(0, 300)]
