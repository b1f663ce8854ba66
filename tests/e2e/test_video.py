"""The video of experiments: streamed or downloaded, recorded, judged; over the loopback, without a node."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.experiments import video
from helpers.nodes import still

pytestmark = [
    pytest.mark.measures,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        shutil.which("ffmpeg") is None,
        reason="needs ffmpeg: apt-get install -y --no-install-recommends ffmpeg",
    ),
]

FOLDER = Path(video.__file__).parent
SEVEN = 7 * video.TS_PACKET
"""Octets of seven packets of an MPEG transport stream."""


@pytest.fixture
def port() -> Iterator[int]:
    """An even port that no other test takes: the next one, for RTCP, is held until the test ends."""
    for number in range(20_000, 32_768, 2):  # no program gets these unless it asks for them
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtcp:
            try:
                rtcp.bind(("127.0.0.1", number + 1))
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    with socket.socket(socket.AF_INET, kind) as trial:
                        trial.bind(("", number))
            except OSError:
                continue
            yield number
            return
    raise OSError("no port is free")


def heard(log: Path) -> None:
    """Waits until a program listens."""
    deadline = time.monotonic() + 30
    while "listening" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def recording(port: int, log: Path, *more: str) -> subprocess.Popen[bytes]:
    """A recorder that listens."""
    with log.open("w") as out:
        words = [sys.executable, "-u", str(FOLDER / "recorder.py"), str(port), *more]
        started = subprocess.Popen(words, stdout=out)
    heard(log)
    return started


@pytest.mark.skipif(os.geteuid() != 0, reason="to watch what leaves a node needs root")
def test_a_viewer_of_a_stream_sees_it_after_the_delay_of_its_packets(tmp_path: Path, port: int) -> None:
    log, left = tmp_path / "viewer.log", tmp_path / "sent.log"
    packet = video.packet_of(4352)
    recorders = [recording(port, log), recording(port, left, "sent")]
    try:
        subprocess.run(video.stream("127.0.0.1", port, 1.0, 3, packet), timeout=60, check=True)
        still(log.read_text)
        still(left.read_text)
    finally:
        for one in recorders:
            one.terminate()
            one.wait(10)
    came, sent = video.packets(log), video.packets(left)
    assert max(map(len, came.payload)) == packet - video.HEADER, "packets fill the MTU"
    assert list(sent.sequence - sent.sequence[0]) == list(came.sequence - came.sequence[0])
    delays = video.delays(sent, came)
    assert delays.size == came.at.size
    assert 0 <= delays.min() < 1e6
    began = int(sent.at[0])
    shown, seen = video.live(came, tmp_path, began, 3)
    assert shown.startup == pytest.approx(video.BUFFERED, abs=0.05)
    assert (shown.stalls, seen.ssim) == (0, pytest.approx(1, abs=0.02))

    # A second of the stream is late: the picture stands still, and looks worse meanwhile.
    stamps = (came.stamps - came.stamps[0]) / video.CLOCK
    came.at[(stamps > 1) & (stamps < 2)] += 10**9
    frozen, worse = video.live(came, tmp_path, began, 3)
    assert frozen.stalls >= 1
    assert frozen.stalled == pytest.approx(1, abs=0.3)
    assert worse.ssim < seen.ssim - 0.01


def test_a_download_is_whole_and_its_player_stalls_when_it_is_slow(tmp_path: Path, port: int) -> None:
    log, ready = tmp_path / "viewer.log", tmp_path / "server.log"
    with ready.open("w") as out:
        server = subprocess.Popen(video.serve(str(FOLDER / "server.py"), port, 1.0, 4), stdout=out)
    try:
        heard(ready)
        with log.open("w") as out:
            words = [sys.executable, str(FOLDER / "client.py"), "127.0.0.1", str(port)]
            subprocess.run(words, stdout=out, timeout=60, check=True)
    finally:
        server.terminate()
        server.wait(10)
    shown, seen, rate = video.downloaded(log)
    assert (shown.stalls, shown.stalled) == (0, 0)
    assert shown.startup < 2
    assert seen.ssim > 0.95
    assert rate > 1e6

    # The same octets evenly over 12 s: a player of 4 s of video waits for 1 s of them, and again.
    rows = [line.split() for line in log.read_text().splitlines()]
    octets = b"".join(base64.b64decode(row[2]) for row in rows if row[0] == "chunk")
    asked = int(next(row[1] for row in rows if row[0] == "asked"))
    slow = [f"asked {asked}"]
    for start in range(0, len(octets), SEVEN):
        arrived = asked + 12 * 10**9 * min(start + SEVEN, len(octets)) // len(octets)
        slow.append(f"chunk {arrived} {base64.b64encode(octets[start : start + SEVEN]).decode()}")
    log.write_text("\n".join(slow))
    waiting, _, rate = video.downloaded(log)
    assert waiting.startup == pytest.approx(3, abs=1)
    assert waiting.stalls >= 1
    assert waiting.startup + waiting.stalled == pytest.approx(12 - 4 + 1, abs=1.5)


def test_what_is_lost_is_seen_in_rate_loss_and_quality(tmp_path: Path, port: int) -> None:
    log = tmp_path / "client.log"
    recorder = recording(port, log)
    try:
        subprocess.run(video.stream("127.0.0.1", port, 1.0, 3), timeout=60, check=True)
        still(log.read_text)  # the last packet has arrived
    finally:
        recorder.terminate()
        recorder.wait(10)
    whole = video.received(log)
    assert whole.lost == 0
    assert whole.rate == pytest.approx(1.1e6, rel=0.25)
    assert whole.psnr > 30
    assert whole.ssim > 0.95
    assert 0 < whole.jitter < 50e6

    lines = log.read_text().splitlines(keepends=True)
    broken = tmp_path / "broken" / "client.log"
    broken.parent.mkdir()
    broken.write_text("".join(line for number, line in enumerate(lines) if number % 20 or number < 20))
    some = video.received(broken)
    assert some.lost == pytest.approx(whole.packets / 20, abs=3)
    assert some.psnr < whole.psnr - 1
    assert some.ssim < whole.ssim
