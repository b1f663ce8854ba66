"""ORBIT: TCP throughput at every channel rate of 802.11a, one flow against two slices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import capacity_search, orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.results import Result, RunReader

TOLERANCE = 0.003
"""Of the narrowest claim; the interval of a point is as narrow."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the channel rate under one TCP flow a slice."""
    rates = extent.choose(full=orbit.RATES, quick=(6, 36, 54), smoke=(54,))
    seconds = extent.choose(full=20, quick=5, smoke=2)
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, rate, seconds) for rate in rates for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput", within=TOLERANCE))
        campaign.judge(lambda: _claims(campaign, found, platforms, rates))
        campaign.draw(
            orbit.figure(
                found, platforms, "throughput", "TCP throughput", "throughput", "rate", rates,
                x_label="channel rate, Mbit/s", y_label="throughput", unit="Mbit/s", scale=1e6,
                ideal={rate: orbit.tcp_estimate(rate) / 1e6 for rate in rates},
            )
        )  # fmt: skip
        campaign.draw(orbit.loss_figure(found, platforms, rates))
        return campaign.finish()


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], rates: Sequence[int]) -> None:
    for rate in rates:
        dcf = orbit.tcp_estimate(rate) / 1e6
        campaign.claim(
            f"dcf-{rate}", f"Native TCP on {rate} Mbit/s comes near DCF's {dcf:.2f} Mbit/s.",
            f"native within 5 % of {dcf:.4f} Mbit/s", says="estimate",
            shape=f"native within 12 % of {dcf:.4f} Mbit/s",
            native=found.sample("throughput", platform="native", rate=rate),
        )  # fmt: skip
        for one in platforms[1:]:
            both = orbit.sides(found, "throughput", one, rate=rate)
            campaign.claim(
                f"equal-{rate}-{one.name}",
                f"At {rate} Mbit/s TCP over {one.label} is as fast as native.",
                "sliver within 1 % of native",
                says="near",
                shape="sliver within 5 % of native",
                **both,
            )
            campaign.claim(
                f"drop-{rate}-{one.name}", f"At {rate} Mbit/s TCP over {one.label} differs by under 0.3 %.",
                "sliver within 0.3 % of native", says="drop", **both,
            )  # fmt: skip


def _case(platform: Platform, rate: int, seconds: int) -> Case:
    buffers, queue = orbit.SHORT_QUEUE
    grid = Grid(platform, rate=rate, buffers=buffers, queue=queue)
    flows = [grid.tcp(slice, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-tcp-rate", flows, seconds, rate=rate)


def _figures(_: Case, reader: RunReader) -> Figures:
    rates = [capacity_search.steady(reader, flow) for flow in orbit.flows_of(reader)]
    return {"throughput": (sum(rates) / len(rates), "bit/s")}
