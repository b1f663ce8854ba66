"""ORBIT: how one and two guests that send as fast as they can share one processor.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.errors import RunError
from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

TOLERANCE = 0.05
"""Of claims about shares; the interval of a point is as narrow."""
BEYOND = 250
"""Mbit/s of 64 octets: more than a sender can make, so that it never rests."""
PIN = """
import os, sys, time
while True:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\\0")
            if words[0].endswith(b"airloom-traffic") and b"send" in words[1:2]:
                for task in os.listdir(f"/proc/{name}/task"):
                    os.sched_setaffinity(int(task), {int(sys.argv[1])})
        except OSError:
            pass
    time.sleep(0.2)
"""
"""Keeps a node's sender on one processor of the hosting kernel."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Measures the shares of processor of the sending slivers, with one slice and with two."""
    orbit.check_kinds(kinds)
    seconds = extent.choose(full=20, quick=5, smoke=3)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        cases = [_case(Platform(kind, guests), seconds) for kind in kinds for guests in (1, 2)]
        found = campaign.measure(cases, _figures, extent.repetitions("first", within=TOLERANCE))
        for kind in kinds:
            one = {"kind": kind, "guests": 1}
            two = {"kind": kind, "guests": 2}
            campaign.claim(
                f"one-{kind}",
                f"One busy sliver of {kind} takes all of the processor that it may have.",
                "share >= 95 %",
                says="one",
                floods=True,
                shape="ready >= 95 %",
                share=found.sample("first", **one),
                ready=found.sample("ready-first", **one),
            )
            campaign.claim(
                f"equal-{kind}",
                f"Two busy slivers of {kind} split one processor equally.",
                "abs(first / (first + second) - 50 %) <= 5 %",
                says="two-first",
                floods=True,
                shape="abs(first / (first + second) - 50 %) <= 10 %",
                first=found.sample("first", **two),
                second=found.sample("second", **two),
            )
            campaign.claim(
                f"sum-{kind}", f"Together two slivers of {kind} take one processor.",
                "first + second >= 95 % and first + second <= 110 %", says="sum", floods=True,
                shape="first + second >= 80 % and first + second <= 125 %",
                first=found.sample("first", **two), second=found.sample("second", **two),
            )  # fmt: skip
        campaign.draw(
            Figure(
                name="shares",
                title="Shares of one processor that sending slivers take",
                x_label="slivers that send",
                y_label="share of a processor",
                unit="%",
                lines=tuple(
                    found.line(f"{kind}, {which}", "measured", which, "guests", (1, 2), 0.01, kind=kind)
                    for kind in kinds
                    for which in ("first", "second")
                ),
            )
        )
        return campaign.finish()


def _case(platform: Platform, seconds: int) -> Case:
    processor = max(os.sched_getaffinity(0))
    machines = platform.kind not in ("netns", "container")
    grid = Grid(platform, processor=processor if machines else None)
    flows = [grid.flow(slice, BEYOND, seconds, payload=64) for slice in platform.flows]
    pins = [
        {
            "node": f"n1-{slice}",
            "name": f"pin-{slice}",
            "run": ["python3", "-c", PIN, str(processor)],
            "until_end": True,
        }
        for slice in platform.flows
        if not machines
    ]
    words = f"{platform.kind}-{platform.slices}"
    scenario = grid.scenario(f"orbit-cpu-{words}", flows, pins)
    labels = {"kind": platform.kind, "guests": platform.slices}
    return Case(words, labels, scenario, orbit.WARM_UP + seconds)


def _figures(case: Case, reader: RunReader) -> Figures:
    found = {}
    for name, slice in zip(("first", "second"), orbit.flows_of(reader), strict=False):
        used = _steady(reader, "cpu", f"n1-{slice}", case.seconds)
        found[name] = (used, "1")
        # Ran or waited to run: what it would have taken of a machine with nothing else to do.
        found[f"ready-{name}"] = (used + _steady(reader, "wait", f"n1-{slice}", case.seconds), "1")
    return found


def _steady(reader: RunReader, metric: str, node: str, seconds: float) -> float:
    """Mean share of a processor, from a second after the flow began to the last interval before its end."""
    rows = reader.samples("node", metric, node)
    begin, end = (orbit.WARM_UP + 1) * 1_000_000_000, seconds * 1e9
    shares = rows[(rows.t_ns > begin) & (rows.t_ns <= end)].value
    if shares.empty:
        raise RunError("experiment.unmeasured", "no processor time was counted", where=str(reader.folder))
    return float(shares.mean())
