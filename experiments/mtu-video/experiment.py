"""MTU study: video by RTP and by HTTP at its frame sizes: start-up, stalls, delay, jitter, PSNR and SSIM.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airloom.bench.peers import installed_mininet, mininet_scenario
from airloom.experiments import mtu, video
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Labels, Sample, each
from airloom.measure.flow import jitter_rfc3550
from airloom.report.figures import Figure, Line
from airloom.results import Result
from airloom.scenario.model import Scenario
from airloom.stats import mean

HERE, MININET = "airloom", "mininet"
RTP, HTTP = "rtp", "http"
LINK, VIDEO = 10, 4
"""Mbit/s."""
CLEAN, DELAYED, LOSSY = "clean", "delayed", "lossy"
DELAY, LOSS = 10, 1
"""Of each of the two links: ms, and % of frames in each direction."""
PATHS: dict[str, dict[str, str]] = {
    CLEAN: {},
    DELAYED: {"delay": f"{DELAY} ms"},
    LOSSY: {"delay": f"{DELAY} ms", "loss": f"{LOSS} %"},
}
SERVER, RTP_PORT, HTTP_PORT = "10.0.0.1", 5004, 8080
CLIENT = "10.0.0.2"
BEGIN = 1.0
"""Seconds from time zero to the video."""
TOLERANCE = 0.05
"""Half width of the interval of a download's rate, as a share of it."""
MOST = 6
"""Most runs of a cell."""
MININET_SECONDS, HTTP_LONGER = 6.0, 2.0
"""What a run on Mininet takes beside its video, and by what a download over a lossy path is longer."""
SAME_SSIM = 0.01
"""Difference of SSIM that a viewer does not see."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One frame size, path and transport on a network."""

    network: str
    frame: int
    path: str
    transport: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its figures."""
        return {
            "network": self.network,
            "frame": str(self.frame),
            "path": self.path,
            "transport": self.transport,
        }

    @property
    def name(self) -> str:
        """The folder of its runs."""
        return f"{self.network}-{self.transport}-{self.path}-{self.frame}"

    @property
    def packet(self) -> int:
        """Octets of an RTP packet."""
        return video.packet_of(mtu.mtu_of(self.frame))

    def scenario(self, seconds: int) -> Scenario:
        """Host, switch, host; h1 has the video, h2 the viewer."""
        programs = self._rtp(seconds) if self.transport == RTP else self._http(seconds)
        names = ("recorder.py",) if self.transport == RTP else ("server.py", "client.py")
        files = {_placed(name): video.program(name) for name in names}
        return mtu.SHAPES[0].scenario(
            f"mtu-video-{self.name}", LINK, mtu.mtu_of(self.frame), [],
            other={"nodes": {"h1": {"files": files}, "h2": {"files": files}}, "programs": programs},
            **PATHS[self.path],
        )  # fmt: skip

    def _rtp(self, seconds: int) -> list[dict[str, Any]]:
        record = ["python3", "-u", _placed("recorder.py"), str(RTP_PORT)]
        service = {"until_end": True, "ready": {"log": "listening", "within": "30 s"}}
        stream = video.stream(CLIENT, RTP_PORT, VIDEO, seconds, self.packet)
        return [
            {"node": "h2", "name": "viewer", "run": record, **service},
            {"node": "h1", "name": "sent", "run": [*record, "sent"], **service},
            # ffmpeg may report the refusal of a packet of RTCP, for which nobody listens.
            {"node": "h1", "name": "stream", "run": stream, "at": f"{BEGIN} s", "after": ["viewer", "sent"]},
        ]

    def _http(self, seconds: int) -> list[dict[str, Any]]:
        serve = video.serve(_placed("server.py"), HTTP_PORT, VIDEO, seconds)
        ready = {"log": "listening", "within": "60 s"}
        download = ["python3", _placed("client.py"), SERVER, str(HTTP_PORT)]
        return [
            {"node": "h1", "name": "server", "run": serve, "until_end": True, "ready": ready},
            {"node": "h2", "name": "viewer", "run": download, "at": f"{BEGIN} s", "after": ["server"]},
        ]

    def figures(self, folder: Path, seconds: int) -> Figures:
        """The figures of a finished run, which both networks record in the same files."""
        log = folder / "nodes" / "h2" / "viewer.log"
        if self.transport == HTTP:
            shown, seen, rate = video.downloaded(log)
            return {**_seen(shown, seen), "download": (rate, "bit/s")}
        came, sent = video.packets(log), video.packets(folder / "nodes" / "h1" / "sent.log")
        shown, seen = video.live(came, log.parent, int(sent.at[0]), seconds)
        delays = video.delays(sent, came)
        whole = self.packet + video.UDP_AND_IPV4 + mtu.HEADER_AND_CHECK
        path = mtu.SHAPES[0].hops() * mtu.on_wire(whole, LINK)
        return {
            **_seen(shown, seen),
            "rate": (8e9 * sum(map(len, came.payload[1:])) / float(came.at[-1] - came.at[0]), "bit/s"),
            "delay.mean": (float(delays.mean()), "ns"),
            "delay.of_path": (float(delays.mean()) / path, "1"),
            "delay.max": (float(delays.max()), "ns"),
            "jitter.mean": (float(jitter_rfc3550(delays).mean()), "ns"),
            "loss": (1 - np.unique(came.sequence).size / np.unique(sent.sequence).size, "1"),
        }


def _placed(name: str) -> str:
    return f"/opt/{name}"


def _seen(shown: Any, seen: Any) -> Figures:
    found = {
        "startup": (shown.startup * 1e9, "ns"),
        "stalls": (float(shown.stalls), "1"),
        "stalled": (shown.stalled * 1e9, "ns"),
        "ssim": (seen.ssim, "1"),
        # Of two equal pictures PSNR is infinite.
        "psnr": (min(seen.psnr, 100.0), "1"),
    }
    return found if seen.vmaf is None else found | {"vmaf": (seen.vmaf, "1")}


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """All cells, those of the clean path on both networks; finished runs are kept."""
    video.need_ffmpeg()
    seconds = extent.choose(full=8, quick=4, smoke=3)
    absent = installed_mininet.lacks()
    cells = [one for one in _cells(extent) if one.network == HERE or not absent]
    rule = extent.repetitions(
        "download", "ssim", within={"download": TOLERANCE, "ssim": SAME_SSIM}, most=MOST
    )
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns",)) as campaign:
        if absent:
            campaign.note(f"without Mininet: {absent}")
        if not video.has_vmaf():
            campaign.note("without VMAF: the installed ffmpeg was built without libvmaf")
        known = {_key(cell.labels): cell for cell in cells}
        campaign.measure(
            [_case(cell, seconds) for cell in cells],
            lambda case, reader: known[_key(case.labels)].figures(reader.folder, seconds),
            rule,
        )
        campaign.judge(lambda: _claims(campaign, cells))
        for figure in _figures(campaign.found, cells):
            campaign.draw(figure)
        return campaign.finish()


def _key(labels: Labels) -> tuple[str, ...]:
    return tuple(labels[name] for name in ("network", "frame", "path", "transport"))


def _cells(extent: Extent) -> Iterable[Cell]:
    frames = extent.choose(full=mtu.FRAMES, quick=mtu.FRAMES[::2], smoke=mtu.FRAMES[:1])
    paths = extent.choose(full=tuple(PATHS), quick=(CLEAN, LOSSY), smoke=(LOSSY,))
    for transport in (RTP, HTTP):
        for frame in frames:
            yield from (Cell(HERE, frame, path, transport) for path in paths)
            if extent is Extent.FULL or (frame == frames[0] and (transport == RTP or extent is Extent.QUICK)):
                yield Cell(MININET, frame, CLEAN, transport)


def _case(cell: Cell, seconds: int) -> Case:
    lasts = BEGIN + seconds * (HTTP_LONGER if (cell.transport, cell.path) == (HTTP, LOSSY) else 1)
    if cell.network == HERE:
        return Case(cell.name, cell.labels, cell.scenario(seconds), lasts)

    def measure(place: Path, scenario: Scenario) -> tuple[Figures, bool]:
        mininet_scenario.run(scenario, place)
        return cell.figures(place, seconds), True

    name, scenario = cell.name, cell.scenario(seconds)
    return Case(name, cell.labels, scenario, lasts + MININET_SECONDS, outside=measure)


def _word(cell: Cell) -> str:
    return f"{cell.network}-{cell.transport}-{cell.path}-{cell.frame}"


def _claims(campaign: Campaign, cells: Sequence[Cell]) -> None:
    def values(name: str, some: Iterable[Cell]) -> dict[str, Sample | None]:
        return {_word(cell): campaign.found.sample(name, **cell.labels) for cell in some}

    def some(network: str = HERE, path: str = "", transport: str = "") -> list[Cell]:
        return [
            cell
            for cell in cells
            if cell.network == network and path in ("", cell.path) and transport in ("", cell.transport)
        ]

    stalled = values("stalled", some(path=CLEAN))
    if stalled:
        campaign.claim(
            "smooth", "On a clean path the picture never stands still, at any frame size.",
            each(stalled, "<= 0 s"), says="quality", shape=each(stalled, "<= 0.5 s"), **stalled,
        )  # fmt: skip
    for path in (CLEAN, DELAYED):
        rtp, http = some(path=path, transport=RTP), some(path=path, transport=HTTP)
        if rtp and http:
            ours, coded = values("ssim", rtp), values("ssim", http)
            pairs = list(zip(ours, coded, strict=True))
            campaign.claim(
                f"ssim-{path}", f"On the {path} path a stream looks as good as a download: SSIM within "
                f"{SAME_SSIM}.",
                " and ".join(f"{one} >= {other} - {SAME_SSIM}" for one, other in pairs), says="quality",
                shape=" and ".join(f"{one} >= {other} - 0.05" for one, other in pairs), **ours, **coded,
            )  # fmt: skip
    for cell in some(path=LOSSY, transport=RTP):
        good = [one for one in some(path=CLEAN, transport=HTTP) if one.frame == cell.frame]
        ssim = values("ssim", [cell, *good])
        limit = _word(good[0]) if good else "0.999"
        campaign.claim(
            f"loss-{cell.frame}", f"{2 * LOSS} % of lost frames of {cell.frame} octets are seen in a stream.",
            f"{_word(cell)} < {limit} - {SAME_SSIM}", says="quality",
            shape=f"{_word(cell)} < {limit}", **ssim,
        )  # fmt: skip
    delayed = values("delay.mean", some(path=DELAYED, transport=RTP))
    if delayed:
        least = 2 * DELAY
        campaign.claim(
            "delay", f"Packets of a stream take at least the {least} ms of the links, and few more.",
            " and ".join(f"{one} >= {least} ms and {one} <= {least + 30} ms" for one in delayed),
            says="multimedia", shape=each(delayed, f">= {least} ms"), **delayed,
        )  # fmt: skip
    for network in (HERE, MININET):
        shares = values("delay.of_path", some(network, CLEAN, RTP))
        if shares and network == HERE:
            campaign.claim(
                "wire", "On a clean path packets take at least what two links take for one of full size.",
                each(shares, ">= 1"), says="multimedia", **shares,
            )  # fmt: skip
        elif shares:
            campaign.claim(
                "shaper", "On Mininet they take less: a token bucket passes a picture's packets at once.",
                each(shares, "< 1"), says="shaper", **shares,
            )  # fmt: skip
    lossy = sorted(some(path=LOSSY, transport=HTTP), key=lambda cell: cell.frame)
    if len(lossy) > 1:
        small, large = lossy[0], lossy[-1]
        stalled = values("stalled", [small, large])
        campaign.claim(
            "size", f"With loss a download stalls at frames of {small.frame} octets, and less at "
            f"{large.frame}: TCP's rate grows with its segments.",
            f"{_word(small)} > 0.5 s and {_word(large)} < 0.5 s", says="size",
            shape=f"{_word(small)} > {_word(large)}", **stalled,
        )  # fmt: skip
    for transport in (RTP, HTTP):
        there = some(MININET, transport=transport)
        sizes = {cell.frame for cell in there}
        here = [cell for cell in some(path=CLEAN, transport=transport) if cell.frame in sizes]
        if here and there:
            for name, within in (("ssim", "1 %"), ("startup", "10 %")):
                # A start-up differs by what the wire has beside frames, and by waking two programs.
                ours, theirs = values(name, here), values(name, there)
                pairs = list(zip(ours, theirs, strict=True))
                campaign.claim(
                    f"{name}-{transport}-mininet",
                    f"Video by {transport.upper()} has the same {name} on Mininet, within {within}.",
                    " and ".join(f"{one} within {within} of {other}" for one, other in pairs),
                    says="multimedia",
                    shape=" and ".join(f"{one} within 25 % of {other}" for one, other in pairs),
                    **ours, **theirs,
                )  # fmt: skip


def _figures(found: Found, cells: Sequence[Cell]) -> Iterable[Figure]:
    both, stream, download = (RTP, HTTP), (RTP,), (HTTP,)
    for name, title, unit, scale, transports in (
        ("startup", "Time to the first picture", "s", 1e9, both),
        ("stalls", "Stalls", "", 1.0, both),
        ("stalled", "Time for which the picture stands still", "s", 1e9, both),
        ("ssim", "Quality of what is seen (SSIM)", "", 1.0, both),
        ("psnr", "Quality of what is seen (PSNR)", "dB", 1.0, both),
        ("vmaf", "Quality of what is seen (VMAF)", "", 1.0, both),
        ("rate", "Rate of the stream", "Mbit/s", 1e6, stream),
        ("download", "Rate of the download", "Mbit/s", 1e6, download),
        ("delay.mean", "Mean one-way delay of packets", "ms", 1e6, stream),
        ("jitter.mean", "Mean jitter of packets (RFC 3550)", "ms", 1e6, stream),
        ("loss", "Packets lost", "%", 0.01, stream),
    ):
        for transport in transports:
            lines = list(_lines(found, cells, name, scale, transport))
            if lines:
                yield Figure(
                    name=f"{name.partition('.')[0]}-{transport}", title=f"{title}, {transport.upper()}",
                    x_label="frame, octets", y_label=name.partition(".")[0], unit=unit, lines=tuple(lines),
                    caption=f"Video of {VIDEO} Mbit/s over links of {LINK} Mbit/s.",
                )  # fmt: skip


def _lines(found: Found, cells: Sequence[Cell], name: str, scale: float, transport: str) -> Iterable[Line]:
    for network in (HERE, MININET):
        for path in PATHS:
            own = [c for c in cells if (c.network, c.path, c.transport) == (network, path, transport)]
            own.sort(key=lambda cell: cell.frame)
            values = [found.all(name, **cell.labels) for cell in own]
            means = [mean(one) if one else None for one in values]
            # Only of VMAF it is normal that no run has it.
            if own and (name != "vmaf" or any(one is not None for one in means)):
                yield Line(
                    label=f"{network}, {path}",
                    role="measured" if network == HERE else "reference",
                    x=tuple(float(cell.frame) for cell in own),
                    y=tuple(one.value / scale if one else None for one in means),
                    ci95=tuple(one.half_width / scale if one and one.n > 1 else None for one in means),
                )
