"""NET over all kinds of nodes, ad hoc: ring search, TCP both ways, and the first chain that deviates.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import capacity_search, usable_kinds
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, each
from airloom.experiments.net_chain import ideal
from airloom.experiments.net_chain import kinds as chains
from airloom.experiments.net_chain.kinds import Series
from airloom.experiments.net_chain.wireless import Chain
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader
from airloom.scenario.model import Measurement as Wanted

LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56)
QUICK_LADDER, SMOKE_LADDER = (2, 4), (2,)
TEN = range(5, 11)
"""Nodes of chains with a ring search, as far as virtual routing was on the reference."""
FIRST, ABOVE, SHARE = "rtt.rtt_max", "rtt.above", "rtt.share"
"""Figures: RTT of the first echo, which waits for the search; how far above the ideal; its share of it."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ()
) -> Result:
    """Searches each kind's first deviation, flow by flow; kinds that were not asked for are tried first."""
    fails: dict[str, str] = {}
    if not kinds:
        # The ideal radio is made of links with the engine's loss and a bridge in each node.
        kinds, fails = usable_kinds.kinds(folder, progress, extent, without=("native",))
    seconds = extent.choose(full=5, quick=2, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    rule = chains.repetitions(extent)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        for kind, why in fails.items():
            campaign.note(f"kind {kind} is left out: {why}")
        campaign.announce(
            [_case(nodes, kind, seconds) for kind in kinds for nodes in ladder], rule, search=True
        )
        found = {
            kind: chains.both_ways(
                campaign,
                {"kind": kind},
                lambda nodes, kind=kind: _case(nodes, kind, seconds),
                _read,
                rule,
                ladder,
                ideal.THROUGHPUT,
                halve=extent is Extent.FULL,
            )
            for kind in kinds
        }
        for kind, series in found.items():
            _claims(campaign, kind, series)
        chains.compare(campaign, found, ladder[-1], alike=True)
        campaign.draw(_round_trips(found))
        campaign.draw(chains.deviation_figure("tcp", found, ideal.THROUGHPUT))
        return campaign.finish()


def _case(nodes: int, kind: str, seconds: int) -> Case:
    one, last = Chain("ideal", "aodv", nodes, kind), f"n{nodes}"
    scenario = one.scenario(
        [
            Wanted(name="rtt", ping={"from": "n1", "to": last, "count": 1}),
            Wanted(name="forward", iperf3=capacity_search.flow("n1", last, seconds)),
            Wanted(name="backward", iperf3=capacity_search.flow(last, "n1", seconds)),
        ]
    )
    return Case(one.name, {"kind": kind, "nodes": nodes}, scenario, one.ready_after + 2 * seconds)


def _read(of: Case, reader: RunReader) -> Figures:
    first = capacity_search.value(reader, "rtt", "rtt_max")
    above = first - ideal.first_rtt(of.labels["nodes"] - 1)
    share = first / ideal.first_rtt(of.labels["nodes"] - 1)
    return {
        FIRST: (first, "ns"),
        ABOVE: (above, "ns"),
        SHARE: (share, "1"),
        **chains.tcp_figures(reader),
    }


def _claims(campaign: Campaign, kind: str, series: Series) -> None:
    above = series.by_length(ABOVE) or {"n2": None}
    campaign.claim(
        f"steps-{kind}",
        f"{kind}: the first echo waits for the rings of the search, and little more.",
        each(above, "<= 100 ms"),
        says="rtt-step",
        shape=each(above, "<= 300 ms"),
        **above,
    )
    if kind == "netns":
        ten = {f"n{nodes}": series.sample(SHARE, nodes) for nodes in series.valid if nodes in TEN}
        ten = ten or {"n10": None}
        campaign.claim(
            "rtt-netns", "Virtual routing keeps to the ideal round-trip time up to 10 nodes.",
            each(ten, "<= 1.1"), says="rtt-net", shape=each(ten, "<= 1.5"), **ten,
        )  # fmt: skip


def _round_trips(found: dict[str, Series]) -> Figure:
    lengths = sorted({nodes for series in found.values() for nodes in series.lengths})
    x = tuple(float(nodes) for nodes in lengths)
    expected = tuple(ideal.first_rtt(nodes - 1) / 1e6 for nodes in lengths)
    lines = [Line(label="ideal", role="ideal", x=x, y=expected)]
    lines += [chains.line(kind, series, FIRST, 1e6) for kind, series in found.items()]
    return Figure(
        name="rtt",
        title="Round-trip time of the first echo: the ring search",
        x_label="nodes in the chain",
        y_label="round-trip time",
        unit="ms",
        lines=tuple(lines),
        caption="Ideal radio of 11 Mbit/s, full duplex, no collisions.",
    )
