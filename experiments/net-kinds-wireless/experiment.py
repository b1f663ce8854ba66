"""NET over all kinds of nodes, ad hoc: ring search, TCP both ways, and the first chain that deviates.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from airloom.experiments import capacity_search, usable_kinds
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import ideal
from airloom.experiments.net_chain.kinds import Series, both_ways, compare, deviation_figure, line
from airloom.experiments.net_chain.wireless import Chain
from airloom.report.figures import Figure, Line
from airloom.results import Result
from airloom.scenario.model import Measurement as Wanted
from airloom.units.figures import Quantity

LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56)
QUICK_LADDER, SMOKE_LADDER = (2, 4), (2,)


@dataclass(frozen=True, slots=True)
class Point:
    """What one chain gave; times in ns, throughput in bit/s."""

    nodes: int
    rtt: float
    """Of the first echo, which waits for the search."""
    forward: float
    backward: float
    valid: bool


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ()
) -> Result:
    """Searches each kind's first deviation, flow by flow; kinds that were not asked for are tried first."""
    fails: dict[str, str] = {}
    if not kinds:
        # The ideal radio is made of links with the engine's loss and a bridge in each node.
        kinds, fails = usable_kinds.kinds(folder, progress, extent, without=("native",))
    seconds = extent.choose(full=8, quick=2, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        for kind, why in fails.items():
            campaign.note(f"kind {kind} is left out: {why}")
        found = {
            kind: both_ways(
                campaign,
                kind,
                lambda nodes, kind=kind: _measure(folder, nodes, kind, seconds, progress),
                ladder,
                ideal.THROUGHPUT,
                halve=extent is Extent.FULL,
            )
            for kind in kinds
        }
        for kind, series in found.items():
            _claims(campaign, kind, series)
        compare(campaign, found, ladder[-1])
        campaign.draw(_round_trips(found))
        campaign.draw(deviation_figure("tcp", found, ideal.THROUGHPUT))
        return campaign.finish()


def _measure(folder: Path, nodes: int, kind: str, seconds: int, progress: Callable[[str], None]) -> Point:
    progress(f"{nodes} nodes, {kind}")
    one = Chain("ideal", "aodv", nodes, kind)
    last = f"n{nodes}"
    reader = capacity_search.point(
        folder,
        one.name,
        one.scenario(
            [
                Wanted(name="rtt", ping={"from": "n1", "to": last, "count": 1}),
                Wanted(name="forward", iperf3=capacity_search.flow("n1", last, seconds)),
                Wanted(name="backward", iperf3=capacity_search.flow(last, "n1", seconds)),
            ]
        ),
    )
    return Point(
        nodes,
        capacity_search.value(reader, "rtt", "rtt_max"),
        capacity_search.steady(reader, "forward"),
        capacity_search.steady(reader, "backward"),
        capacity_search.believable([reader]),
    )


def _claims(campaign: Campaign, kind: str, series: Series) -> None:
    above = [point.rtt - ideal.first_rtt(nodes - 1) for nodes, point in series.valid.items()]
    worst = Quantity.of(max(above), "ns") if above else None
    campaign.claim(
        f"steps-{kind}",
        f"{kind}: the first echo waits for the rings of the search, and little more.",
        "above <= 100 ms",
        says="rtt-step",
        shape="above <= 300 ms",
        above=worst,
    )
    ten = [
        point.rtt / ideal.first_rtt(nodes - 1)
        for nodes, point in series.valid.items()
        if nodes in range(5, 11)
    ]
    if kind == "netns":
        campaign.claim(
            "rtt-netns", "Virtual routing keeps to the ideal round-trip time up to 10 nodes.",
            "ratio <= 1.1", says="rtt-net", shape="ratio <= 1.5", ratio=max(ten, default=None),
        )  # fmt: skip


def _round_trips(found: dict[str, Series]) -> Figure:
    lengths = sorted({nodes for series in found.values() for nodes in series.points})
    x = tuple(float(nodes) for nodes in lengths)
    expected = tuple(ideal.first_rtt(nodes - 1) / 1e6 for nodes in lengths)
    lines = [Line(label="ideal", role="ideal", x=x, y=expected)]
    lines += [line(kind, series, lambda point: point.rtt) for kind, series in found.items()]
    return Figure(
        name="rtt",
        title="Round-trip time of the first echo: the ring search",
        x_label="nodes in the chain",
        y_label="round-trip time",
        unit="ms",
        lines=tuple(lines),
        caption="Ideal radio of 11 Mbit/s, full duplex, no collisions.",
    )
