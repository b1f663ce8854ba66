"""Accuracy of a link's rate: the mean, and the fastest 10 ms, from the first frame on."""

from __future__ import annotations

import numpy as np

from airloom.bench import BenchResult, Progress
from airloom.bench.labs import ETHERNET, HEADERS, flow, pair, up
from airloom.measure.flow import FlowReading
from airloom.runs import evidence

RATES = (1, 10, 100, 1000)
"""Link rates in Mbit/s."""
FRAMES = (64, 1518, 4370, 7999)
"""Frame sizes in octets, including the frame check sequence."""
WINDOW = 10_000_000
"""Window length in ns."""
QUEUE = 1000
"""Queue length of the link in frames, as of an Ethernet card: it bridges the milliseconds in which
the source has no processor, so that the link never idles."""
HOST_FRAMES = 150_000
"""Maximum frames/s of a source on this machine; a rate that needs more is skipped."""


def run(progress: Progress) -> list[BenchResult]:
    """The source is slightly faster than the link; the receiving kernel records arrival times."""
    results = []
    for rate in RATES:
        for frame in FRAMES:
            wire = frame - 4 + ETHERNET
            per_second = rate * 1e6 / 8 / wire
            what = f"{rate} Mbit/s, frames of {frame} B"
            if per_second > HOST_FRAMES:
                progress(f"{what}: left out, {per_second:,.0f} frames/s are more than the source can send")
                continue
            progress(what)
            reading, paused = _saturate(rate, frame, 1.03 * per_second)
            span = int(reading.departures[-1] - reading.departures[0])
            if (reading.departures.size - 1) * 1e9 / span < 1.01 * per_second:
                progress(f"{what}: left out, the source could not fill the link")
                continue
            limit = rate * 1e6
            mean, running = (_mean(reading, wire, less) / limit for less in (0, paused))
            fastest = _fastest(reading, wire, limit)
            results += [
                BenchResult(
                    f"mean rate on the wire: {what}", "bit/s", mean * limit, "the link's rate", limit,
                    mean, "within 0.2 % of it", abs(mean - 1) <= 0.002,
                ),
                BenchResult(
                    f"the same, less {paused / 1e6:.1f} ms for which the link paused: {what}", "bit/s",
                    running * limit, "the link's rate", limit,
                    running, "within 0.2 % of it", abs(running - 1) <= 0.002,
                ),
                BenchResult(
                    f"fastest 10 ms, one frame taken off: {what}", "bit/s", fastest * limit,
                    "the link's rate", limit, fastest, "at most 1 % above it", fastest <= 1.01,
                ),
            ]  # fmt: skip
    return results


def _saturate(rate: int, frame: int, per_second: float) -> tuple[FlowReading, int]:
    """Returns the flow, and the link's idle time in ns due to stalls of the machine."""
    payload = frame - 4 - HEADERS
    with up(pair(rate=f"{rate} Mbit/s", mtu=9216, queue={"packets": QUEUE})) as lab:
        reading = flow(
            lab, "h1", "h2", size=f"{payload} B", interval=f"{round(1e9 / per_second)} ns", duration="4 s"
        )
        return reading, evidence.paused(lab.ledger()).get("h1-h2 forward", 0)


def _mean(reading: FlowReading, wire: int, less: int) -> float:
    """Returns the link's rate in bit/s from the first arrival to the last, minus ``less`` ns.

    Packets dropped at the receiver's full socket buffer have passed the link and count.
    """
    span = int(reading.arrived_at[-1] - reading.arrived_at[0]) - less
    return (reading.arrived_at.size - 1 + reading.host_lost) * wire * 8e9 / span


def _fastest(reading: FlowReading, wire: int, rate: float) -> float:
    """Returns the maximum of all 10 ms windows, minus one frame, relative to the link rate."""
    times = np.asarray(reading.arrived_at)
    ends = np.searchsorted(times, times + WINDOW, side="left")
    most = int((ends - np.arange(times.size)).max())
    return (most - 1) * wire * 8 / (rate * WINDOW / 1e9)
