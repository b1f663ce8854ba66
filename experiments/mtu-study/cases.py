"""The cases, their ideals, what was published of them, and what a series of packets says.

Bandwidth counts Ethernet frames with their check sequence, in Mbit/s; jitter is RFC 4689's, in ms.
"""

from __future__ import annotations

import csv
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airloom.experiments import mtu
from airloom.measure.flow import FlowReading, bandwidth, fastest
from airloom.scenario.model import Scenario

HOST_SWITCH_HOST = mtu.SHAPES[0]
WINDOW = 10
"""Frames of the windows that the table speaks of."""
INTERRUPTION = 1e6
"""ns by which two frames of a full link are further apart than they need be, if the link, its sender or the
whole machine stood still in between: what is shorter, links make up for or lose like any other time."""
UNLIMITED = 1e6
"""Times the link's rate that stand for an infinite one."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the study; rates in Mbit/s, octets of a frame with check sequence."""

    id: str
    link: int
    load: int
    frame: int
    family: str = "ipv4"

    @property
    def mtu(self) -> int:
        """Largest packet."""
        return mtu.mtu_of(self.frame)

    @property
    def ideal(self) -> float:
        """Mean bandwidth: the load, or what the wire leaves beside preamble and gap."""
        return mtu.ideal_frames(self.frame, self.link, self.load)

    @property
    def on_wire(self) -> float:
        """How long a frame takes on the link: ns."""
        return mtu.on_wire(self.frame, self.link)

    @property
    def full(self) -> float:
        """How far apart frames are on the link if it is full, which it may never be: ns."""
        return self.on_wire if self.load >= self.link else math.inf

    def scenario(self, seconds: float, **link: object) -> Scenario:
        """Host, switch, host, as in the study; its generator's load begins at once."""
        six = self.family == "ipv6"
        return HOST_SWITCH_HOST.scenario(
            f"mtu-study-{self.id.lower()}",
            self.link,
            self.mtu,
            [
                # The addresses are known before the first packet.
                {"name": "before", "ping": {"from": "h1", "to": "h2", "count": 2, "interval": "0.2 s"}},
                {"name": "flow", "traffic": self.traffic(seconds)},
            ],
            other={"addresses": {"ipv4": None, "ipv6": "fd00::/48"}} if six else None,
            **link,
        )

    def traffic(self, seconds: float) -> dict[str, str]:
        """The study's generator: frame size and rate."""
        return {
            "from": "h1",
            "to": "h2",
            "at": "1 s",
            "duration": f"{seconds} s",
            "frame": f"{self.frame} B",
            "rate": f"{self.load} Mbit/s",
            "rate_of": "frame",
        }


FRAMES = mtu.FRAMES
NINE = tuple(
    Case(f"E-MTU-{number}", link, load, frame)
    for number, (link, load, frame) in enumerate(
        ((link, load, frame) for link, load in ((10, 10), (100, 10), (100, 100)) for frame in FRAMES), 1
    )
)
STARTS = tuple(Case(f"START-{frame}", 10, 100, frame) for frame in FRAMES)
"""A sender that begins faster than the link, for START_SECONDS: what a shaper lets through at first."""
START_SECONDS = 0.3
MTUS = {"ipv4": (576, 1280, 1500, 9000), "ipv6": (1280, 1500, 9000)}
"""Beside the study's; IPv6 needs 1280."""


def sizes() -> tuple[Case, ...]:
    """Other sizes, and IPv6, on a full link of 100 Mbit/s."""
    return tuple(
        Case(f"{family}-{size}", 100, 100, size + mtu.HEADER_AND_CHECK, family)
        for family, sizes in MTUS.items()
        for size in sizes
    )


BY_ID = {case.id: case for case in (*NINE, *STARTS, *sizes())}


@dataclass(frozen=True, slots=True)
class Series:
    """What one run of a case shows: for every packet after the first a bandwidth and a jitter."""

    mean: float
    """Mbit/s from the first packet to the last."""
    running: float
    """The same less interruptions, where the link is full."""
    peak: float
    """The fastest of all windows: two packets that follow each other."""
    top: float
    """The fastest window of WINDOW frames or more."""
    low: float
    """The slowest window of WINDOW frames."""
    jitter: tuple[float, float, float]
    """Mean, most and least: ms."""
    packets: tuple[int, ...]
    """Numbers of the packets that the curves show."""
    bandwidths: tuple[float, ...]
    """Of the WINDOW frames up to each of them."""
    jitters: tuple[float, ...]
    """Mean of the same."""

    @classmethod
    def of(cls, reading: FlowReading, frame: int, full: float = math.inf) -> Series:
        """From a flow whose packets are frames of one size, on a full link one every ``full`` ns."""
        times = reading.arrived_at
        octets = np.full(times.size, frame, np.int64)
        windows = bandwidth(times, octets, WINDOW) / 1e6
        jitter = reading.jitter / 1e6
        last = times.size - 1
        span, more = float(times[-1] - times[0]), np.diff(times) - full
        shown = np.unique(np.geomspace(WINDOW, last, 120).astype(int))
        return cls(
            mean=8e3 * frame * last / span,
            running=8e3 * frame * last / (span - float(more[more > INTERRUPTION].sum())),
            peak=fastest(times, octets, 1) / 1e6,
            top=fastest(times, octets, WINDOW) / 1e6,
            low=float(windows.min()),
            jitter=(float(jitter.mean()), float(jitter.max()), float(jitter.min())),
            packets=tuple(int(one) for one in shown),
            bandwidths=tuple(float(windows[one - WINDOW]) for one in shown),
            jitters=tuple(float(jitter[one - WINDOW : one].mean()) for one in shown),
        )

    def figures(self, case: Case) -> dict[str, tuple[float, str]]:
        """The figures of one run of a case, with what claims compare: shares of link and ideal."""
        mean, most, least = self.jitter
        found = {
            "bandwidth.mean": (self.mean * 1e6, "bit/s"),
            "bandwidth.mean_uninterrupted": (self.running * 1e6, "bit/s"),
            f"bandwidth.max_{WINDOW}": (self.top * 1e6, "bit/s"),
            "bandwidth.max": (self.peak * 1e6, "bit/s"),
            f"bandwidth.min_{WINDOW}": (self.low * 1e6, "bit/s"),
            "jitter.mean": (mean * 1e6, "ns"),
            "jitter.max": (most * 1e6, "ns"),
            "jitter.min": (least * 1e6, "ns"),
            "of_link.top": (self.top / case.link, "1"),
            # Two packets with one time stamp have no finite rate.
            "of_link.peak": (min(self.peak / case.link, UNLIMITED), "1"),
            "of_ideal.mean": (self.mean / case.ideal, "1"),
            "of_ideal.mean_uninterrupted": (self.running / case.ideal, "1"),
        }
        known = published()
        for network in ("real", "mininet") if (case.id, "real") in known else ():
            cell = known[case.id, network]
            found[f"difference.bandwidth_{network}"] = ((self.mean - (cell.bandwidth[0] or 0)) * 1e6, "bit/s")
            found[f"difference.jitter_{network}"] = ((mean - (cell.jitter[0] or 0)) * 1e6, "ns")
        return {name: one for name, one in found.items() if math.isfinite(one[0])}


@dataclass(frozen=True, slots=True)
class Published:
    """A cell of the study's tables: mean, most, least; None where the paper misprints it."""

    bandwidth: tuple[float | None, ...]
    jitter: tuple[float | None, ...]


@functools.cache
def published() -> dict[tuple[str, str], Published]:
    """By case and network: ``real`` or ``mininet``."""

    def row(line: dict[str, str], what: str) -> tuple[float | None, ...]:
        return tuple(
            float(line[f"{what}_{one}"]) if line[f"{what}_{one}"] else None for one in ("mean", "max", "min")
        )

    with Path(__file__).with_name("paper.csv").open(newline="") as file:
        return {
            (line["case"], line["network"]): Published(row(line, "bandwidth"), row(line, "jitter"))
            for line in csv.DictReader(file)
        }
