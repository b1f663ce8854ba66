"""The video of `orbit-rtp-video`: streamed by ffmpeg, recorded, judged; over the loopback, without a node."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from airloom.experiments import registry
from helpers.nodes import still

pytestmark = [
    pytest.mark.measures,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        shutil.which("ffmpeg") is None,
        reason="needs ffmpeg: apt-get install -y --no-install-recommends ffmpeg",
    ),
]

FOLDER = registry.find("orbit-rtp-video").path.parent


def free_port() -> int:
    """Even, and the next one free too: ffmpeg speaks RTCP there."""
    for port in range(20_000, 40_000, 2):
        try:
            for number in (port, port + 1):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
                    trial.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
    raise OSError("no port is free")


def test_what_is_lost_is_seen_in_rate_loss_and_quality(tmp_path: Path) -> None:
    video: Any = registry.beside(str(FOLDER / "experiment.py"), "video")
    port, log = free_port(), tmp_path / "client.log"
    with log.open("w") as out:
        recorder = subprocess.Popen(
            [sys.executable, "-u", str(FOLDER / "recorder.py"), str(port)], stdout=out
        )
    try:
        deadline = time.monotonic() + 20
        while "listening" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
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
