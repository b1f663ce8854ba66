"""Video of ffmpeg's test source over RTP and over HTTP: programs for nodes, and what was received.

The picture is ffmpeg's own test source, the same every time, so the quality of what was received can be
held against what was meant without a file: PSNR and SSIM by ffmpeg's filters, frame by frame by presentation
time; VMAF too where ffmpeg was built with it. It is H.264 in MPEG-TS.

The programs of this folder run in nodes of any kind, which need only Python and, to send, ffmpeg:
``recorder.py`` records RTP, ``server.py`` and ``client.py`` are progressive download over HTTP.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloom.errors import HostError, RunError
from airloom.experiments.video import playout
from airloom.experiments.video.playout import Playout
from airloom.host import programs
from airloom.measure.flow import jitter_rfc3550

CLOCK = 90_000
"""Units of the RTP timestamp in a second: RFC 2250."""
RATE = 25
"""Frames of the picture in a second."""
SOURCE = f"testsrc2=size=640x360:rate={RATE}"
HEADER, TS_PACKET = 12, 188
"""Octets of an RTP header, and of a packet of MPEG-TS."""
UDP_AND_IPV4 = 28
PACKET = HEADER + 7 * TS_PACKET
"""Octets of an RTP packet in an Ethernet frame."""
BUFFERED = 0.2
"""Seconds for which a receiver of RTP holds a packet back: the delay that interactive video bears."""
AHEAD = 1.0
"""Seconds of video that a player of a download has before it starts, and before it goes on."""


def program(name: str) -> str:
    """The text of a program of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def need_ffmpeg() -> None:
    """Refuses to begin without ffmpeg."""
    if programs.find("ffmpeg") is None or programs.find("ffprobe") is None:
        raise HostError(
            "host.ffmpeg", "ffmpeg is not installed", cure="apt-get install -y --no-install-recommends ffmpeg"
        )


@functools.cache
def has_vmaf() -> bool:
    """Whether the installed ffmpeg measures VMAF (it was built with libvmaf)."""
    done = subprocess.run(
        ["ffmpeg", "-hide_banner", "-filters"], capture_output=True, text=True, timeout=60, check=False
    )
    return re.search(r"\blibvmaf\b", done.stdout) is not None


def packet_of(mtu: int) -> int:
    """Octets of the largest RTP packet of whole TS packets that an IPv4 packet of ``mtu`` octets carries."""
    return HEADER + (mtu - UDP_AND_IPV4 - HEADER) // TS_PACKET * TS_PACKET


def encode(rate: float, seconds: float, *, paced: bool) -> list[str]:
    """The command, without its output, that makes H.264 of ``rate`` Mbit/s; ``paced`` in real time."""
    bits = str(round(rate * 1e6))
    buffer = str(round(rate * 1e6 / 4))
    picture = ["-f", "lavfi", "-i", SOURCE, "-t", str(seconds), "-pix_fmt", "yuv420p"]
    coder = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-threads", "1"]
    # Times begin at 0, so that a frame of the stream names its frame of the source.
    times = ["-muxdelay", "0", "-muxpreload", "0"]
    limit = ["-b:v", bits, "-maxrate", bits, "-bufsize", buffer]
    quiet = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"]
    return [*quiet, *(["-re"] if paced else []), *picture, *coder, *limit, *times]


def stream(to: str, port: int, rate: float, seconds: int, packet: int = PACKET) -> list[str]:
    """The command that streams over RTP; ``rate`` in Mbit/s, ``packet`` in octets."""
    target = f"rtp://{to}:{port}?pkt_size={packet}"
    return [*encode(rate, seconds, paced=True), "-f", "rtp_mpegts", target]


def serve(path: str, port: int, rate: float, seconds: int) -> list[str]:
    """The command that makes the video and serves it; ``path`` is that of ``server.py`` in the node."""
    return ["python3", "-u", path, str(port), *encode(rate, seconds, paced=False), "-f", "mpegts", "-"]


@dataclass(frozen=True, slots=True)
class Quality:
    """What a viewer sees, against the source."""

    psnr: float
    """dB, mean over all frames; of what is lost in coding too."""
    ssim: float
    vmaf: float | None = None
    """0 to 100; None if ffmpeg does not measure it."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came of one stream over RTP."""

    rate: float
    """bit/s of payload."""
    jitter: float
    """Largest interarrival jitter (RFC 3550) from the second second on: ns."""
    jitter_mean: float
    lost: int
    packets: int
    psnr: float
    """Of the frames that came."""
    ssim: float


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """RTP packets of a recorder's output, in order of arrival."""

    at: npt.NDArray[np.int64]
    """ns of the kernel's CLOCK_REALTIME."""
    sequence: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.float64]
    """Units of CLOCK."""
    payload: list[bytes]
    """Empty where the recorder stood at the sender."""

    def write(self, path: Path, kept: npt.NDArray[np.bool_] | None = None) -> Path:
        """Writes the payload in the sender's order."""
        order = np.argsort(self.sequence, kind="stable")
        chosen = [index for index in order if kept is None or kept[index]]
        path.write_bytes(b"".join(self.payload[index] for index in chosen))
        return path


def packets(log: Path) -> Packets:
    """Reads a recorder's output; raises :class:`RunError` if hardly any packet came."""
    rows = [
        line.split() for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("packet ")
    ]
    if len(rows) < 10:
        raise RunError("experiment.unmeasured", f"{len(rows)} packets of the video arrived", where=str(log))
    return Packets(
        at=np.array([int(row[1]) for row in rows], np.int64),
        sequence=np.unwrap(np.array([int(row[2]) for row in rows], np.float64), period=1 << 16).astype(
            np.int64
        ),
        stamps=np.unwrap(np.array([int(row[3]) for row in rows], np.float64), period=1 << 32),
        payload=[base64.b64decode(row[4]) if len(row) > 4 else b"" for row in rows],
    )


def received(log: Path) -> Received:
    """Reads a recorder's output and decodes the stream in it."""
    came = packets(log)
    transits = (came.at - came.at[0]) - (came.stamps - came.stamps[0]) * (1e9 / CLOCK)
    jitter = jitter_rfc3550(transits)
    settled = jitter[came.at[1:] - came.at[0] >= 1_000_000_000]
    seen = quality(came.write(log.with_name("received.ts")))
    return Received(
        rate=8e9 * sum(map(len, came.payload[1:])) / float(came.at[-1] - came.at[0]),
        jitter=float(settled.max()),
        jitter_mean=float(settled.mean()),
        lost=int(came.sequence.max() - came.sequence.min() + 1 - np.unique(came.sequence).size),
        packets=came.at.size,
        psnr=seen.psnr,
        ssim=seen.ssim,
    )


def delays(sent: Packets, came: Packets) -> npt.NDArray[np.int64]:
    """One-way delay of each packet that came: ns. Both recorders read one clock."""
    first = dict(zip(sent.sequence % (1 << 16), sent.at, strict=True))
    pairs = zip(came.sequence % (1 << 16), came.at, strict=True)
    return np.array([at - first[number] for number, at in pairs if number in first], np.int64)


def live(came: Packets, place: Path, began: int, seconds: float) -> tuple[Playout, Quality]:
    """What a viewer of RTP sees who holds each packet back for BUFFERED seconds after the first one's time.

    Later packets are lost. ``began`` is when the stream was started, in ns. Pictures that do not come
    freeze the one before.
    """
    due = came.at[0] + (came.stamps - came.stamps[0]) * (1e9 / CLOCK) + BUFFERED * 1e9
    path = came.write(place / "played.ts", came.at <= due)
    start = (int(came.at[0]) - began) / 1e9 + BUFFERED
    shown = playout.live([one.at for one in frames(path)], start, 1 / RATE, seconds)
    return shown, quality(path, displayed=True)


def downloaded(log: Path) -> tuple[Playout, Quality, float]:
    """What a viewer of a download sees, and its rate in bit/s; of the output of ``client.py``."""
    rows = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    chunks = [(int(row[1]), base64.b64decode(row[2])) for row in rows if row[:1] == ["chunk"]]
    asked = [int(row[1]) for row in rows if row[:1] == ["asked"]]
    if not asked or not chunks:
        raise RunError("experiment.unmeasured", "nothing of the video was downloaded", where=str(log))
    path = log.with_name("downloaded.ts")
    path.write_bytes(b"".join(octets for _, octets in chunks))
    ends = np.cumsum([len(octets) for _, octets in chunks])
    arrivals = []
    found = frames(path)
    # A frame is there when the next one begins; the last one when all is there.
    for end in [*(one.position for one in found[1:]), int(ends[-1])]:
        arrivals.append((chunks[int(np.searchsorted(ends, end))][0] - asked[0]) / 1e9)
    shown = playout.download(arrivals, [one.at for one in found], 1 / RATE, AHEAD)
    rate = 8e9 * float(ends[-1]) / (chunks[-1][0] - asked[0])
    return shown, quality(path, displayed=True), rate


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture in a file of MPEG-TS."""

    at: float
    """Presentation time: s."""
    position: int
    """Its first octet in the file."""


def frames(path: Path) -> list[Frame]:
    """The pictures that ffmpeg decodes, in their order of presentation."""
    words = ["-select_streams", "v", "-show_entries", "frame=pts_time,pkt_pos", "-of", "json"]
    done = subprocess.run(
        ["ffprobe", "-v", "quiet", *words, str(path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    rows: Sequence[dict[str, Any]] = json.loads(done.stdout or "{}").get("frames", [])
    found = [Frame(float(row["pts_time"]), int(row["pkt_pos"])) for row in rows if "pts_time" in row]
    if not found:
        raise RunError("experiment.video", "ffmpeg cannot decode what was received", where=str(path))
    return sorted(found, key=lambda one: one.at)


def quality(path: Path, *, displayed: bool = False) -> Quality:
    """Quality of a recorded stream against the source.

    Of the frames in it, or as ``displayed``: at every frame of the source, with the last one before it if
    it is missing.
    """
    measures = ["psnr", "ssim", *(["libvmaf"] if has_vmaf() else [])]
    taken = [f"[r{number}]" for number in range(len(measures))]
    meant = [f"[m{number}]" for number in range(len(measures))]
    graph = [
        f"[0:v]settb=AVTB,split={len(measures)}{''.join(taken)}",
        f"[1:v]format=yuv420p,settb=AVTB,split={len(measures)}{''.join(meant)}",
    ]
    for measure, one, other in zip(measures, taken, meant, strict=True):
        # PSNR and SSIM are symmetric, so the source may lead; the end of what was received freezes.
        if displayed and measure != "libvmaf":
            graph.append(f"{other}{one}{measure}=eof_action=repeat:repeatlast=1")
        else:
            graph.append(f"{one}{other}{measure}=shortest=1")
    ends = ["-t", f"{frames(path)[-1].at + 1 / RATE}"] if displayed else []
    files = ["-i", str(path), "-f", "lavfi", *ends, "-i", SOURCE]
    done = subprocess.run(
        ["ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-copyts", *files, "-lavfi", ";".join(graph),
         "-f", "null", "-"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return read_quality(done.stderr, path)


def read_quality(said: str, path: Path) -> Quality:
    """Reads what ffmpeg's filters say at their end."""
    psnr = re.search(r"PSNR .*average:([0-9.]+|inf)", said)
    ssim = re.search(r"SSIM .*All:([0-9.]+)", said)
    vmaf = re.search(r"VMAF score: ([0-9.]+)", said)
    if psnr is None or ssim is None:
        raise RunError("experiment.video", "ffmpeg cannot decode what was received", where=str(path))
    return Quality(float(psnr[1]), float(ssim[1]), float(vmaf[1]) if vmaf else None)
