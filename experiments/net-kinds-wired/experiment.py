"""NET over all kinds of nodes, wired: round-trip time, TCP both ways, and the first chain that deviates.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import usable_kinds
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import kinds as chains
from airloom.experiments.net_chain import wired
from airloom.experiments.net_chain.kinds import Series
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
    seconds = extent.choose(full=5, quick=2, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    rule = chains.repetitions(extent)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        for kind, why in fails.items():
            campaign.note(f"kind {kind} is left out: {why}")
        whole = [wired.case(nodes, kind, seconds) for kind in kinds for nodes in ladder]
        campaign.announce(whole, rule, search=True)
        found = {
            kind: chains.both_ways(
                campaign,
                {"kind": kind},
                lambda nodes, kind=kind: wired.case(nodes, kind, seconds),
                wired.read,
                rule,
                ladder,
                wired.IDEAL_THROUGHPUT,
                halve=extent is Extent.FULL,
            )
            for kind in kinds
        }
        for kind, series in found.items():
            _claims(campaign, kind, series)
        chains.compare(campaign, found, ladder[-1])
        campaign.draw(_round_trips(found))
        campaign.draw(chains.deviation_figure("tcp", found, wired.IDEAL_THROUGHPUT))
        return campaign.finish()


def _claims(campaign: Campaign, kind: str, series: Series) -> None:
    ends, grown = wired.growth(series, wired.LARGEST, 0)
    if kind in ("netns", "native", "container"):
        campaign.claim(
            f"rtt-{kind}",
            f"{kind}: the round-trip time grows no faster than the links' arithmetic.",
            f"last - first <= {grown:.5f} ms",
            says="rtt-net",
            **ends,
        )
        whole = wired.ideal_rtt(series.valid[-1], 0) / 1e6 if series.valid else 0.0
        campaign.claim(
            f"below-{kind}",
            f"{kind}: the round-trip time of the longest chain lies below the links' arithmetic.",
            f"last <= {whole:.5f} ms",
            says="rtt-net",
            last=ends["last"],
        )
    else:
        campaign.claim(
            f"rtt-{kind}",
            f"{kind}: the round-trip time grows faster than the links' arithmetic.",
            f"last - first > {grown:.5f} ms",
            says="rtt-vm",
            **ends,
        )
    campaign.claim(
        f"cpu-{kind}", f"{kind}: where it first deviates the processors, or that of the engine, are busy.",
        "busy >= 90 %",
        says="cpu", shape="busy >= 70 %", floods=True, busy=series.busy_at_deviation,
    )  # fmt: skip


def _round_trips(found: dict[str, Series]) -> Figure:
    lengths = sorted({nodes for series in found.values() for nodes in series.lengths})
    x = tuple(float(nodes) for nodes in lengths)
    lines = [
        Line(label="ideal", role="ideal", x=x, y=tuple(wired.ideal_rtt(nodes, 0) / 1e6 for nodes in lengths))
    ]
    lines += [chains.line(kind, series, wired.LARGEST, 1e6) for kind, series in found.items()]
    return Figure(
        name="rtt",
        title="Largest ICMP round-trip time over the chain",
        x_label="nodes in the chain",
        y_label="round-trip time",
        unit="ms",
        lines=tuple(lines),
        log_y=True,
    )
