"""NET over all kinds of nodes, wired: round-trip time, TCP both ways, and the first chain that deviates.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import usable_kinds
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import wired
from airloom.experiments.net_chain.kinds import Series, both_ways, compare, deviation_figure, line
from airloom.report.figures import Figure, Line
from airloom.results import Result

LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112)
QUICK_LADDER, SMOKE_LADDER = (2, 4), (2,)


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ()
) -> Result:
    """Searches each kind's first deviation, flow by flow; kinds that were not asked for are tried first."""
    fails: dict[str, str] = {}
    if not kinds:
        kinds, fails = usable_kinds.kinds(folder, progress, extent)
    seconds = extent.choose(full=8, quick=2, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        for kind, why in fails.items():
            campaign.note(f"kind {kind} is left out: {why}")
        found = {
            kind: both_ways(
                campaign,
                kind,
                lambda nodes, kind=kind: wired.measure(folder, nodes, kind, seconds, progress),
                ladder,
                wired.IDEAL_THROUGHPUT,
                halve=extent is Extent.FULL,
            )
            for kind in kinds
        }
        for series in found.values():
            _claims(campaign, series)
        compare(campaign, found, ladder[-1])
        campaign.draw(_round_trips(found))
        campaign.draw(deviation_figure("tcp", found, wired.IDEAL_THROUGHPUT))
        return campaign.finish()


def _claims(campaign: Campaign, series: Series) -> None:
    kind = series.kind
    slope = None
    points = series.valid
    if len(points) > 1:
        first, last = points[min(points)], points[max(points)]
        slope = (last.rtt - first.rtt) / (wired.ideal_rtt(last.nodes, 0) - wired.ideal_rtt(first.nodes, 0))
    if kind in ("netns", "native", "container"):
        campaign.claim(
            f"rtt-{kind}",
            f"{kind}: the round-trip time grows no faster than the links' arithmetic.",
            "slope <= 1",
            says="rtt-net",
            shape="slope <= 10",
            slope=slope,
        )
    else:
        campaign.claim(
            f"rtt-{kind}",
            f"{kind}: the round-trip time grows faster than the links' arithmetic.",
            "slope > 1",
            says="rtt-vm",
            slope=slope,
        )
    campaign.claim(
        f"cpu-{kind}", f"{kind}: where it first deviates the processors are busy.",
        "busy >= 90 %", says="cpu", shape="busy >= 70 %", busy=series.busy_at_deviation,
    )  # fmt: skip


def _round_trips(found: dict[str, Series]) -> Figure:
    lengths = sorted({nodes for series in found.values() for nodes in series.points})
    x = tuple(float(nodes) for nodes in lengths)
    lines = [
        Line(label="ideal", role="ideal", x=x, y=tuple(wired.ideal_rtt(nodes, 0) / 1e6 for nodes in lengths))
    ]
    lines += [line(kind, series, lambda point: point.rtt) for kind, series in found.items()]
    return Figure(
        name="rtt",
        title="Largest ICMP round-trip time over the chain",
        x_label="nodes in the chain",
        y_label="round-trip time",
        unit="ms",
        lines=tuple(lines),
        log_y=True,
    )
