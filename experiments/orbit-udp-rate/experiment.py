"""ORBIT: UDP saturation throughput at every channel rate of 802.11a, one flow against two slices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.results import Result, RunReader

MOST = orbit.RATES[-1]
TOLERANCE = 0.005
"""Of the claims at low rates; the interval of a point is as narrow."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the channel rate with more offered than it can carry."""
    rates = extent.choose(full=orbit.RATES, quick=(6, 36, 54), smoke=(54,))
    seconds = extent.choose(full=11, quick=3, smoke=2)
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, rate, seconds) for rate in rates for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput", within=TOLERANCE))
        campaign.judge(lambda: _claims(campaign, found, platforms, rates))
        campaign.draw(
            orbit.figure(
                found, platforms, "throughput", "UDP saturation throughput", "throughput", "rate", rates,
                x_label="channel rate, Mbit/s", y_label="throughput", unit="Mbit/s", scale=1e6,
                ideal={rate: orbit.saturation(rate=rate) / 1e6 for rate in rates},
            )
        )  # fmt: skip
        campaign.draw(orbit.loss_figure(found, platforms, rates))
        return campaign.finish()


def _case(platform: Platform, rate: int, seconds: int) -> Case:
    grid = Grid(platform, rate=rate)
    load = 1.3 * orbit.saturation(rate=rate) / 1e6
    flows = [grid.flow(slice, load, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-udp-rate", flows, seconds, rate=rate)


def _figures(_: Case, reader: RunReader) -> Figures:
    return {"throughput": (orbit.value(reader, orbit.flows_of(reader), "throughput_steady"), "bit/s")}


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], rates: Sequence[int]) -> None:
    for rate in rates:
        dcf = orbit.saturation(rate=rate) / 1e6
        campaign.claim(
            f"dcf-{rate}", f"Native, a channel of {rate} Mbit/s carries DCF's {dcf:.2f} Mbit/s.",
            f"native within 3 % of {dcf:.4f} Mbit/s", says="dcf",
            native=found.sample("throughput", platform="native", rate=rate),
        )  # fmt: skip
    for platform in platforms[1:]:
        _against_native(campaign, found, platform, rates)


def _against_native(campaign: Campaign, found: Found, platform: Platform, rates: Sequence[int]) -> None:
    for rate in [rate for rate in rates if rate <= 36]:
        campaign.claim(
            f"low-{rate}-{platform.name}", f"At {rate} Mbit/s {platform.label} differ by under 0.5 %.",
            "sliver within 0.5 % of native", says="low", shape="sliver within 2 % of native",
            **orbit.sides(found, "throughput", platform, rate=rate),
        )  # fmt: skip
    high = orbit.sides(found, "throughput", platform, rate=MOST)
    low = orbit.sides(found, "throughput", platform, rate=rates[0])
    campaign.claim(
        f"high-{platform.name}", f"At 54 Mbit/s {platform.label} lose up to 10.2 %, most of all rates.",
        "1 - sliver / native >= 0.05 and 1 - sliver / native <= 0.15", says="high",
        shape="1 - sliver / native > 0.005 + 1 - low.sliver / low.native",
        **high, **{f"low.{who}": value for who, value in low.items()},
    )  # fmt: skip
