"""Flows read from captures: both formats, both byte orders, and hostile octets."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom import _engine
from airloom.errors import RunError
from airloom.measure import captures
from airloom.measure.flow import bandwidth, fastest

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def packet(sequence: int, *, flow: int = 1, kind: int = 0, six: bool = False, vlan: bool = False) -> bytes:
    """A frame of the generator over UDP; lengths and checksums are not looked at."""
    payload = struct.pack(">HBBHIQ", 0xA17A, 1, kind, flow, sequence, 0)
    if six:
        network, ether = bytes(6) + bytes([17, 64]) + bytes(32), b"\x86\xdd"
    else:
        network, ether = bytes([0x45]) + bytes(8) + bytes([17]) + bytes(10), b"\x08\x00"
    tag = b"\x81\x00\x00\x05" if vlan else b""
    return B + A + tag + ether + network + bytes(8) + payload


def pcap(path: Path, frames: list[tuple[int, bytes]], order: str = "<", magic: int = 0xA1B23C4D) -> Path:
    unit = 1 if magic == 0xA1B23C4D else 1000
    content = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, 1)
    for at, octets in frames:
        seconds, rest = divmod(at, 10**9)
        content += struct.pack(order + "IIII", seconds, rest // unit, len(octets), len(octets)) + octets
    path.write_bytes(content)
    return path


def test_a_flow_of_the_engines_own_capture_has_exact_times(tmp_path: Path) -> None:
    engine = _engine.Engine(1)
    for name in ("h1:eth0", "h2:eth0"):
        engine.add_memory_port(name)
    engine.connect("h1-h2", "h1:eth0", "h2:eth0", {"rate": {"bits-per-second": 10**7}}, {})
    path = tmp_path / "run.pcapng"
    engine.capture(path, None)
    for number in range(5):
        engine.offer("h1:eth0", 1000 * number, packet(number).ljust(1514, b"\0"))
    engine.step(10**9)
    engine.stop()
    reading = captures.flow(path, path, sender_port="h1:eth0", receiver_port="h2:eth0")
    assert (reading.sent, reading.received, reading.duplicates, reading.reordered) == (5, 5, 0, 0)
    assert set(np.diff(reading.arrived_at)) == {1_230_400}, "1538 octets at 10 Mbit/s"
    assert set(reading.jitter) == {1_229_400}
    assert set(reading.arrival_octets) == {1518}
    assert fastest(reading.arrived_at, reading.arrival_octets) == pytest.approx(1518 * 8e9 / 1_230_400)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_files_of_other_tools_are_read(tmp_path: Path, order: str, magic: int) -> None:
    sent = [(10**9 + 1000 * n, packet(n, six=n % 2 == 0, vlan=n == 3)) for n in range(4)]
    came = [(at + 500_000, octets) for at, octets in sent]
    noise = [(10**9, b"\0" * 40), (10**9, packet(9, flow=2)), (10**9, packet(4, kind=1))]
    left = pcap(tmp_path / "a.pcap", [*sent, *noise], order, magic)
    right = pcap(tmp_path / "b.pcap", [came[1], came[0], came[0], *noise, came[3]], order, magic)
    reading = captures.flow(left, right)
    assert (reading.sent, reading.received, reading.lost) == (4, 3, 1)
    assert (reading.duplicates, reading.reordered) == (1, 1)
    assert set(reading.delays) == {500_000}


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot read the capture.*\[measure.capture.missing\]"):
        captures.sightings(tmp_path / "none")
    bad = tmp_path / "bad"
    bad.write_bytes(b"hello, world")
    with pytest.raises(RunError, match=r"begins neither as pcapng nor as pcap \[measure.capture.damaged\]"):
        captures.sightings(bad)
    empty = pcap(tmp_path / "empty.pcap", [(0, bytes(60))])
    with pytest.raises(RunError, match=r"no packet of airloom-traffic.*\[measure.capture.empty\]"):
        captures.flow(empty, empty)


@given(st.data())
def test_hostile_octets_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    starts = [
        struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1),
        b"\x0a\x0d\x0d\x0a" + struct.pack("<IIHHqI", 28, 0x1A2B3C4D, 1, 0, -1, 28)
        + struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20),
        b"",
    ]  # fmt: skip
    blocks = st.builds(
        lambda kind, body: (
            struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
        ),
        st.sampled_from([1, 6, 0x0A0D0D0A, 7]),
        st.binary(max_size=64).map(lambda body: body[: len(body) // 4 * 4]),
    )
    rest = data.draw(st.one_of(st.binary(max_size=200), st.lists(blocks, max_size=4).map(b"".join)))
    path = tmp_path_factory.mktemp("hostile") / "x"
    path.write_bytes(data.draw(st.sampled_from(starts)) + rest)
    with contextlib.suppress(RunError):
        list(captures.frames(path))


def test_windows_of_packets() -> None:
    times = np.array([0, 10, 20, 25, 45], np.int64)
    octets = np.array([7, 10, 10, 10, 10], np.int64)
    assert bandwidth(times, octets).tolist() == [8e9, 8e9, 16e9, 4e9]
    assert bandwidth(times, octets, 2).tolist() == pytest.approx([8e9, 160e9 / 15, 160e9 / 25])
    assert fastest(times, octets) == 16e9
    assert fastest(times, octets, 2) == pytest.approx(160e9 / 15)
    assert bandwidth(times, octets, 5).size == 0


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(60, 1500)), min_size=3, max_size=40),
    st.integers(1, 5),
)
def test_no_longer_window_is_faster_than_the_fastest(gaps: list[tuple[int, int]], packets: int) -> None:
    times = np.cumsum([gap for gap, _ in gaps])
    octets = np.array([size for _, size in gaps])
    found = fastest(times, octets, packets)
    for k in range(packets, len(gaps)):
        assert bandwidth(times, octets, k).max(initial=0.0) <= found * (1 + 1e-12)
