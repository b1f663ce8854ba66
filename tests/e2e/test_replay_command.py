"""``airloom replay``: a capture in a node, with its own times and addresses."""

from __future__ import annotations

import itertools
import statistics
import struct
import sys
from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.host.pcap import Captured, frames
from airloom.measure.pcap_sender import load, send
from helpers.pcap_files import write

GAPS = [0, 5, 1, 20, 3, 40, 10, 2] * 5
"""Milliseconds before each frame."""


def capture(path: Path) -> list[float]:
    """Writes a pcap of frames between foreign addresses; returns their times in seconds."""
    times = [at / 1000 for at in itertools.accumulate(GAPS)]
    octets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, at in enumerate(times):
        payload = struct.pack("!HHHHI", 4000, 4001, 12, 0, number)
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 32, number, 0, 64, 17, 0, b"\xc0\0\2\1", b"\xc0\0\2\2")
        frame = bytes.fromhex("020000000002020000000001") + b"\x08\0" + header + payload
        micros = round((1_000_000 + at) * 1e6)
        octets += struct.pack("<IIII", micros // 10**6, micros % 10**6, len(frame), len(frame)) + frame
    path.write_bytes(octets)
    return times


def test_no_frame_is_sent_early_and_short_ones_are_filled_up() -> None:
    out: list[bytes] = []
    short = [Captured("", 10**18 + at * 10**6, b"ab", 4, "") for at in (0, 3, 9)]
    sent = send(short, out.append, speed=3, loops=2)
    assert out == [b"ab\0\0"] * 6
    assert (sent.frames, sent.octets, sent.padded) == (6, 24, 6)
    assert min(sent.late) >= 0


def test_a_capture_without_frames_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    with pytest.raises(RunError, match="no frame"):
        load(tmp_path / "x.pcap")


@pytest.mark.world
@pytest.mark.measures
def test_frames_cross_a_link_with_the_gaps_of_the_capture(shell) -> None:
    times = capture(shell.folder / "recorded.pcap")
    run = f"{sys.executable} -m airloom replay recorded.pcap eth0"
    (shell.folder / "replay.yaml").write_text(
        "name: replay\nnodes: {a: , b: }\n"
        "links: [{name: wire, ends: [a, b], rate: 100 Mbit/s, delay: 5 ms}]\n"
        f"programs: [{{name: play, node: a, folder: ., run: {run}}}]\n"
    )
    done = shell.run("run", "replay.yaml", "--out", "out", "--pcap")
    assert done.returncode == 0, done.stderr
    assert f"{len(times)} frames sent" in (shell.folder / "out" / "nodes" / "a" / "play.log").read_text()
    ports: dict[str, list[int]] = {}
    for file in (shell.folder / "out").rglob("*.pcap*"):
        for one in frames(file):
            if bytes([192, 0, 2, 1, 192, 0, 2, 2]) in one.octets:
                ports.setdefault(f"{one.port} {one.direction}", []).append(one.at)
    assert ports
    for at in ports.values():
        assert len(at) == len(times)
        wrong = [abs((here - at[0]) / 1e9 - there) for here, there in zip(at, times, strict=True)]
        assert statistics.median(wrong) < 1e-3


def test_a_capture_of_another_link_type_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.pcap", [(10**18, bytes(60))], link_type=127)
    with pytest.raises(RunError, match=r"link type 127, IEEE 802.11 with radiotap.*\[replay.link-type\]"):
        load(tmp_path / "x.pcap")
