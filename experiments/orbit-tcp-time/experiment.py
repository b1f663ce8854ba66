"""ORBIT: TCP throughput over time at 6 and 36 Mbit/s, one flow against two slices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from airloom.errors import RunError
from airloom.experiments import capacity_search, orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader

RATES = (6, 36)


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """One long TCP flow a slice, seen second by second."""
    seconds = extent.choose(full=40, quick=12, smoke=5)
    rates = extent.choose(full=RATES, quick=RATES, smoke=RATES[-1:])
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, rate, seconds) for rate in rates for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput"))
        campaign.judge(lambda: _claims(campaign, found, platforms, rates))
        for rate in rates:
            campaign.draw(_over_time(campaign, [case for case in cases if case.labels["rate"] == rate], rate))
        return campaign.finish()


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], rates: Sequence[int]) -> None:
    for one in platforms[1:]:
        campaign.claim(
            f"low-{one.name}",
            f"At 6 Mbit/s the curves of native and {one.label} run together.",
            "sliver within 1 % of native",
            says="low",
            shape="sliver within 5 % of native",
            **orbit.sides(found, "throughput", one, rate=6),
        )
        campaign.claim(
            f"middle-{one.name}",
            f"At 36 Mbit/s {one.label} are slightly lower.",
            "sliver < native and sliver >= 0.97 * native",
            says="middle",
            shape="sliver within 3 % of native",
            **orbit.sides(found, "throughput", one, rate=36),
        )
        for rate in rates:
            campaign.claim(
                f"variation-{rate}-{one.name}",
                f"At {rate} Mbit/s {one.label} do not vary more over seconds (deviation by mean).",
                "sliver <= 1.25 * native", says="variation",
                shape="sliver <= native + 2 %", **orbit.sides(found, "variation", one, rate=rate),
            )  # fmt: skip


def _case(platform: Platform, rate: int, seconds: int) -> Case:
    buffers, queue = orbit.SHORT_QUEUE
    grid = Grid(platform, rate=rate, buffers=buffers, queue=queue)
    flows = [grid.tcp(slice, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-tcp-time", flows, seconds, rate=rate)


def _series(reader: RunReader, flow: str) -> list[float]:
    """Throughput of each second but the first, in which TCP is still finding it: bit/s."""
    rows = reader.samples(flow)
    rates = rows[rows.metric == "throughput"].sort_values("t_ns")
    second = (rates.t_ns - rates.t_ns.min()) // capacity_search.SETTLING
    means = rates.groupby(second).value.mean().tolist()
    # The last second is not a whole one.
    if len(means) < 4:
        raise RunError("experiment.unmeasured", f"{flow} lasted too short", where=str(reader.folder))
    return [float(one) for one in means[1:-1]]


def _figures(_: Case, reader: RunReader) -> Figures:
    series = [_series(reader, flow) for flow in orbit.flows_of(reader)]
    variation = [float(np.std(one, ddof=1) / np.mean(one)) for one in series]
    return {
        "throughput": (float(np.mean([np.mean(one) for one in series])), "bit/s"),
        "variation": (sum(variation) / len(variation), "1"),
    }


def _over_time(campaign: Campaign, cases: Sequence[Case], rate: int) -> Figure:
    """The first repetition of each platform, second by second; of two slices the mean."""
    lines = []
    for case in cases:
        reader = campaign.reader(case)
        if reader is None:
            continue
        series = [_series(reader, flow) for flow in orbit.flows_of(reader)]
        length = min(len(one) for one in series)
        rates = np.mean([one[:length] for one in series], axis=0) / 1e6
        native = case.labels["platform"] == orbit.NATIVE.name
        lines.append(
            Line(
                label=str(case.labels["platform"]),
                role="reference" if native else "measured",
                x=tuple(float(second) for second in range(2, length + 2)),
                y=tuple(float(one) for one in rates),
            )
        )
    return Figure(
        name=f"time-{rate}",
        title=f"TCP throughput over time at {rate} Mbit/s",
        x_label="time, s",
        y_label="throughput",
        unit="Mbit/s",
        lines=tuple(lines),
    )
