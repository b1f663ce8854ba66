"""ORBIT: four clients send to one server, in one star and in two at once on the same nodes.

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
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

CLIENTS = 4
TURN = 100
MOST = orbit.LOADS[-1]


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the load of all clients of a star together."""
    loads = extent.choose(full=orbit.LOADS, quick=(10, MOST), smoke=(10,))
    seconds = extent.choose(full=11, quick=4, smoke=2)
    platforms = orbit.platforms(kinds, turns=(TURN,), theirs=extent)
    platforms += [Platform(kind, 2, client_nodes=CLIENTS // 2) for kind in kinds]
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, load, seconds) for load in loads for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput"))
        campaign.judge(lambda: _claims(campaign, found, platforms, [load for load in loads if load <= 30]))
        for figure in _drawn(found, platforms, loads):
            campaign.draw(figure)
        return campaign.finish()


def _case(platform: Platform, load: int, seconds: int) -> Case:
    grid = Grid(platform, clients=CLIENTS)
    flows = [
        grid.flow(slice, load / CLIENTS, seconds, client=client)
        for slice in platform.flows
        for client in range(1, CLIENTS + 1)
    ]
    return orbit.case(grid, "orbit-star", flows, seconds, load=load)


def _figures(_: Case, reader: RunReader) -> Figures:
    flows = sorted({one.name for one in reader.result.measurements})
    stars = {flow.partition("-")[0] for flow in flows}
    carried = sum(capacity_search.value(reader, flow, "throughput_steady") for flow in flows)
    return {
        "throughput": (carried / len(stars), "bit/s"),
        "delay": (orbit.value(reader, flows, "delay_steady_mean"), "ns"),
        "jitter": (orbit.value(reader, flows, "jitter_steady_mean"), "ns"),
    }


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], low: Sequence[int]) -> None:
    campaign.claim(
        "dcf", "One star of four clients saturates at what DCF gives four contenders: 22.3 Mbit/s.",
        "native within 3 % of 22.3 Mbit/s", says="dcf", shape="native within 6 % of 22.3 Mbit/s",
        native=found.sample("throughput", platform="native", load=MOST),
    )  # fmt: skip
    for platform in platforms[1:]:
        _against_native(campaign, found, platform, low)


def _against_native(campaign: Campaign, found: Found, platform: Platform, low: Sequence[int]) -> None:
    who, label = platform.name, platform.label
    for load in low:
        campaign.claim(
            f"low-{load}-{who}",
            f"At {load} Mbit/s stars of {label} lose under 5 %.",
            "sliver >= 0.95 * native",
            says="low",
            **orbit.sides(found, "throughput", platform, load=load),
        )
    campaign.claim(
        f"high-{who}",
        f"At saturation stars of {label} lose at most 10 %.",
        "sliver >= 0.9 * native",
        says="high",
        **orbit.sides(found, "throughput", platform, load=MOST),
    )
    campaign.claim(
        f"other-{who}",
        f"At saturation stars of {label} lose 3.9 %.",
        "1 - sliver / native within 25 % of 3.9 %",
        says="other",
        **orbit.sides(found, "throughput", platform, load=MOST),
    )
    campaign.claim(
        f"delay-{who}",
        f"What stars of {label} add to the delay grows with the load: 29 to 200 ms.",
        "low - native.low within 50 % of 29 ms and high - native.high within 50 % of 200 ms",
        says="delay-high",
        shape="high - native.high > low - native.low and low > native.low",
        **_ends(found, "delay", platform, low[0]),
    )
    campaign.claim(
        f"jitter-{who}", f"What stars of {label} add to the jitter is nearly constant: 0.5 to 0.7 ms.",
        "low - native.low within 20 % of 0.6 ms and high - native.high within 20 % of 0.6 ms",
        says="jitter",
        shape="low > native.low and high - native.high within 50 % of (low - native.low)",
        **_ends(found, "jitter", platform, low[0]),
    )  # fmt: skip


def _ends(found: Found, name: str, platform: Platform, least: int) -> dict[str, object]:
    low = orbit.sides(found, name, platform, load=least)
    high = orbit.sides(found, name, platform, load=MOST)
    return {
        "low": low["sliver"],
        "native.low": low["native"],
        "high": high["sliver"],
        "native.high": high["native"],
    }


def _drawn(found: Found, platforms: Sequence[Platform], loads: Sequence[int]) -> list[Figure]:
    drawn = [
        orbit.figure(
            found, platforms, name, f"Star of {CLIENTS} clients: {title}", name, "load", loads,
            x_label="load of all clients of a star, Mbit/s", y_label=name, unit=unit, scale=scale,
        )
        for name, title, unit, scale in (
            ("throughput", "throughput of a star", "Mbit/s", 1e6),
            ("delay", "one-way delay", "ms", 1e6),
            ("jitter", "jitter", "ms", 1e6),
        )
    ]  # fmt: skip
    return [*drawn, orbit.increase_figure(found, platforms, "delay", loads, {"": {}})]
