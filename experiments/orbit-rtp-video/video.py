"""Video over RTP by ffmpeg: the program that streams it, and what a recorded stream says.

The picture is ffmpeg's own test source, the same every time, so the quality of what was received can be held
against what was meant without a file: PSNR and SSIM by ffmpeg's filters, frame by frame by presentation time.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airloom.errors import HostError, RunError
from airloom.measure.flow import jitter_rfc3550

CLOCK = 90_000
"""Units of the RTP timestamp in a second: RFC 2250."""
SOURCE = "testsrc2=size=640x360:rate=25"
PACKET = 1328
"""Octets of an RTP packet: its header and seven packets of MPEG-TS."""


def need_ffmpeg() -> None:
    """Refuses to begin without ffmpeg."""
    if shutil.which("ffmpeg") is None:
        raise HostError(
            "host.ffmpeg", "ffmpeg is not installed", cure="apt-get install -y --no-install-recommends ffmpeg"
        )


def stream(to: str, port: int, rate: float, seconds: int) -> list[str]:
    """The command that streams H.264 in MPEG-TS over RTP; ``rate`` in Mbit/s."""
    bits = str(round(rate * 1e6))
    buffer = str(round(rate * 1e6 / 4))
    picture = ["-re", "-f", "lavfi", "-i", SOURCE, "-t", str(seconds), "-pix_fmt", "yuv420p"]
    coder = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-threads", "1"]
    # Times begin at 0, so that a frame of the stream names its frame of the source.
    times = ["-muxdelay", "0", "-muxpreload", "0"]
    limit = ["-b:v", bits, "-maxrate", bits, "-bufsize", buffer]
    target = f"rtp://{to}:{port}?pkt_size={PACKET}"
    quiet = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"]
    return [*quiet, *picture, *coder, *limit, *times, "-f", "rtp_mpegts", target]


@dataclass(frozen=True, slots=True)
class Received:
    """What came of one stream."""

    rate: float
    """bit/s of payload."""
    jitter: float
    """Largest interarrival jitter (RFC 3550) from the second second on: ns."""
    jitter_mean: float
    lost: int
    packets: int
    psnr: float
    """dB, mean over all frames; of what is lost in coding too."""
    ssim: float


def received(log: Path) -> Received:
    """Reads a recorder's output and decodes the stream in it."""
    rows = [
        line.split() for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("packet ")
    ]
    if len(rows) < 10:
        raise RunError("experiment.unmeasured", f"{len(rows)} packets of the video arrived", where=str(log))
    arrived = np.array([int(row[1]) for row in rows], np.int64)
    sequence = np.unwrap(np.array([int(row[2]) for row in rows], np.float64), period=1 << 16).astype(np.int64)
    stamps = np.unwrap(np.array([int(row[3]) for row in rows], np.float64), period=1 << 32)
    payload = [base64.b64decode(row[4]) for row in rows]
    transits = (arrived - arrived[0]) - (stamps - stamps[0]) * (1e9 / CLOCK)
    jitter = jitter_rfc3550(transits)
    settled = jitter[arrived[1:] - arrived[0] >= 1_000_000_000]
    path = log.with_name("received.ts")
    path.write_bytes(b"".join(payload[index] for index in np.argsort(sequence, kind="stable")))
    psnr, ssim = quality(path)
    return Received(
        rate=8e9 * sum(map(len, payload[1:])) / float(arrived[-1] - arrived[0]),
        jitter=float(settled.max()),
        jitter_mean=float(settled.mean()),
        lost=int(sequence.max() - sequence.min() + 1 - np.unique(sequence).size),
        packets=len(rows),
        psnr=psnr,
        ssim=ssim,
    )


def quality(path: Path) -> tuple[float, float]:
    """PSNR in dB and SSIM of a recorded stream against the source."""
    graph = (
        "[0:v]settb=AVTB,split[a][b];[1:v]format=yuv420p,settb=AVTB,split[c][d];"
        "[a][c]psnr=shortest=1;[b][d]ssim=shortest=1"
    )
    files = ["-i", str(path), "-f", "lavfi", "-i", SOURCE]
    done = subprocess.run(
        [
            "ffmpeg",
            "-nostdin",
            "-hide_banner",
            "-nostats",
            "-copyts",
            *files,
            "-lavfi",
            graph,
            "-f",
            "null",
            "-",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    psnr = re.search(r"PSNR .*average:([0-9.]+)", done.stderr)
    ssim = re.search(r"SSIM .*All:([0-9.]+)", done.stderr)
    if psnr is None or ssim is None:
        raise RunError("experiment.video", "ffmpeg cannot decode what was received", where=str(path))
    return float(psnr[1]), float(ssim[1])
