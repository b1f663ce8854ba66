"""ORBIT: real video over RTP at several bit rates: what arrives, its jitter, its quality by PSNR and SSIM.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from airloom.experiments import orbit, video
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.results import Result, RunReader

CHANNEL = 6
"""Mbit/s."""
PORT = 5004
RECORDER = "/opt/recorder.py"
TOLERANCE = 0.15
"""Half of what claims about jitter allow; the interval of a point is as narrow."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Streams to every slice's client at several bit rates."""
    video.need_ffmpeg()
    rates = extent.choose(full=(0.3, 0.5, 1, 2, 3, 4, 5), quick=(0.5, 3), smoke=(0.5,))
    seconds = extent.choose(full=15, quick=6, smoke=3)
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, rate, seconds) for rate in rates for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("jitter-mean", within=TOLERANCE))
        middle, most = rates[len(rates) // 2], rates[-1]
        asked = extent.choose(full=(middle, most), quick=(most,), smoke=(most,))

        def claims() -> None:
            for rate in asked:
                campaign.claim(
                    f"native-{rate}", f"Native jitter of {rate} Mbit/s of video stays under 0.3 ms.",
                    "native <= 0.3 ms", says="native",
                    native=found.sample("jitter-mean", platform="native", rate=rate),
                )  # fmt: skip
            for platform in platforms[1:]:
                _claims(campaign, found, platform, rates)

        campaign.judge(claims)
        for name, title, y_label, unit, scale in (
            ("jitter", "Jitter of video (RFC 3550, largest after the first second)", "jitter", "ms", 1e6),
            ("received", "Received bit rate", "bit rate", "Mbit/s", 1e6),
            ("psnr", "Quality of what was received", "PSNR", "dB", 1.0),
            ("ssim", "Quality of what was received", "SSIM", "", 1.0),
        ):
            campaign.draw(
                orbit.figure(
                    found, platforms, name, title, name, "rate", rates, x_label="video, Mbit/s",
                    y_label=y_label, unit=unit, scale=scale, caption=f"Channel of {CHANNEL} Mbit/s.",
                )
            )  # fmt: skip
        return campaign.finish()


def _case(platform: Platform, rate: float, seconds: int) -> Case:
    grid = Grid(platform, rate=CHANNEL)
    recorder = video.program("recorder.py")
    programs: list[dict[str, Any]] = []
    for slice in platform.flows:
        client, server = f"n2-{slice}", f"n1-{slice}"
        programs.append(
            {
                "node": client,
                "name": f"client-{slice}",
                "run": ["python3", "-u", RECORDER, str(PORT)],
                "until_end": True,
                "ready": {"log": "listening", "within": "30 s"},
            }
        )
        programs.append(
            {
                "node": server,
                "name": f"server-{slice}",
                "run": video.stream(client, PORT, rate, seconds),
                "at": f"{orbit.WARM_UP} s",
                "after": [f"client-{slice}"],
            }
        )
    files = {RECORDER: recorder}
    return orbit.case(grid, "orbit-rtp-video", [], seconds, programs, files, rate=rate)


def _figures(_: Case, reader: RunReader) -> Figures:
    logs = [reader.folder / "nodes" / f"n2-{slice}" / f"client-{slice}.log" for slice in orbit.SLICES]
    streams = [video.received(log) for log in logs if log.exists()]

    def mean(name: str) -> float:
        return float(sum(getattr(one, name) for one in streams) / len(streams))

    return {
        "received": (mean("rate"), "bit/s"),
        "jitter": (mean("jitter"), "ns"),
        "jitter-mean": (mean("jitter_mean"), "ns"),
        "lost": (mean("lost"), "packets"),
        "psnr": (mean("psnr"), "1"),
        "ssim": (mean("ssim"), "1"),
    }


def _claims(campaign: Campaign, found: Found, platform: Platform, rates: Sequence[float]) -> None:
    who, label = platform.name, platform.label
    for rate in rates:
        campaign.claim(
            f"rate-{rate}-{who}", f"Video of {rate} Mbit/s arrives at the same bit rate over {label}.",
            "sliver within 2 % of native", says="rate", shape="sliver within 10 % of native",
            **orbit.sides(found, "received", platform, rate=rate),
        )  # fmt: skip
    most = rates[-1]
    jitter = orbit.sides(found, "jitter-mean", platform, rate=most)
    campaign.claim(
        f"ratio-{who}",
        f"Jitter of {most} Mbit/s of video is about ten times native over {label}.",
        "sliver / native >= 5 and sliver / native <= 20",
        says="ratio",
        shape="sliver / native >= 1.5",
        **jitter,
    )
    campaign.claim(
        f"low-{who}",
        f"Jitter of the slowest video over {label} is 2.8 ms, and native under 0.3 ms.",
        "sliver within 30 % of 2.8 ms and native <= 0.3 ms",
        says="jitter-low",
        **orbit.sides(found, "jitter-mean", platform, rate=rates[0]),
    )
    campaign.claim(
        f"high-{who}",
        f"Jitter of the fastest video over {label} is 4 ms, and native under 0.3 ms.",
        "sliver within 30 % of 4 ms and native <= 0.3 ms",
        says="jitter-high",
        **jitter,
    )
    campaign.claim(
        f"conclusion-{who}", f"Jitter over {label} is 4 to 6 ms, and native under 0.3 ms.",
        "low >= 4 ms and sliver <= 6 ms and native <= 0.3 ms", says="conclusion",
        low=found.sample("jitter-mean", platform=who, rate=rates[0]), **jitter,
    )  # fmt: skip
    campaign.claim(
        f"need-{who}",
        f"On one hop the jitter of {label} stays under the 50 ms that applications bear.",
        "sliver <= 50 ms",
        says="need",
        sliver=found.sample("jitter", platform=who, rate=most),
    )
    campaign.claim(
        f"quality-{who}", f"What {label} deliver is as good as native's: within 1 dB of PSNR.",
        "sliver >= native - 1", says="rate", **orbit.sides(found, "psnr", platform, rate=most),
    )  # fmt: skip
