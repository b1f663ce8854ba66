"""What a large report costs to open: a sweep of a hundred points with sixty-four flows, in Chromium."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from airloom import report
from airloom.bench import BenchResult
from airloom.bench.browser import Browser
from airloom.results import Ledger, Measurement, RunWriter, SweepWriter, Verdict
from airloom.results.sweep import whole

POINTS, FLOWS, SAMPLES = 100, 64, 40
TIMES = 5
"""How often the page is opened; the figures are medians."""


def run(progress: Callable[[str], None]) -> list[BenchResult]:
    """Writes made-up runs and their report, and opens it."""
    with Browser() as browser, tempfile.TemporaryDirectory(prefix="airloom-bench-") as place:
        progress("writing the runs")
        folder = large_sweep(Path(place, "sweep"))
        page = report.write([folder], progress=lambda what, share: progress(what))
        progress("opening the page")
        opened = [browser.open(page) for _ in range(TIMES)]
        size = page.stat().st_size
    loaded = statistics.median(one.loaded for one in opened)
    return [
        BenchResult(
            "report of 100 points and 64 flows: until loaded", "s", loaded,
            promise="within 2 s", holds=loaded < 2,
        ),
        BenchResult("the same: until painted", "s", statistics.median(one.painted for one in opened)),
        BenchResult("the same: main thread", "s", statistics.median(one.busy for one in opened)),
        BenchResult("the same: elements", "1", opened[0].elements),
        BenchResult("the same: size", "octets", size, promise="below 5 MB", holds=size < 5_000_000),
    ]  # fmt: skip


def large_sweep(folder: Path, *, points: int = POINTS, flows: int = FLOWS, repetitions: int = 1) -> Path:
    """Returns a finished sweep of a rate, with this many flows that run at once.

    A :class:`SweepWriter` writes the whole result after each run, which is quadratic in the points; here
    it is written once.
    """
    rates = [f"{number + 1} Mbit/s" for number in range(points)]
    names = [f"flow{number:02d}" for number in range(flows)]
    text = "name: large\nmeasurements:\n" + "".join(
        f"  - {{name: {name}, iperf3: {{from: a, to: b}}}}\n" for name in names
    )
    swept = {"links[bottleneck].rate": rates}
    writer = SweepWriter(
        folder, scenario="large", seed=1, sweep=swept, repetitions=repetitions, scenario_text=text
    )
    found = {}
    random = np.random.default_rng(1)
    t = np.arange(SAMPLES) * 100_000_000
    for number, point in enumerate(writer.index.points):
        rate = 1e6 * (1 + rates.index(point.values["links[bottleneck].rate"])) / flows
        with RunWriter(
            folder / point.folder, scenario="large", seed=number, kinds=["netns"], point=point.values,
            repetition=point.repetition,
        ) as one:  # fmt: skip
            figures = []
            for place, name in enumerate(names):
                shares = rate * random.gamma(20, 0.05, SAMPLES) * (0.5 + place / flows)
                one.record(name, "throughput", "bit/s", t, shares, node="b")
                one.record(name, "rtt", "ns", t, 2e7 * random.gamma(20, 0.05, SAMPLES), node="a")
                for metric, unit, value in (
                    ("throughput", "bit/s", float(shares.mean())),
                    ("offered", "bit/s", float(shares.mean())),
                    ("retransmits", "packets", float(random.integers(0, 90))),
                    ("rtt_mean", "ns", 2e7 * float(random.gamma(20, 0.05))),
                    ("rtt_max", "ns", 5e7 * float(random.gamma(20, 0.05))),
                ):
                    figures.append(Measurement(name=name, metric=metric, unit=unit, mean=value))
            one.measured(*figures)
            found[point.folder] = one.finish(Verdict(status="valid"), Ledger())
    done = tuple(point.model_copy(update={"state": "finished"}) for point in writer.index.points)
    index = writer.index.model_copy(update={"points": done})
    (folder / "sweep.json").write_text(index.to_json())
    (folder / "result.json").write_text(whole(index, found).to_json())
    writer.close()
    return folder
