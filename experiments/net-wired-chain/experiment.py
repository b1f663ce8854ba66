"""NET's wired chain: how many routers in a row until round-trip time and TCP leave the ideal.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.found import each
from airloom.experiments.net_chain import kinds as chains
from airloom.experiments.net_chain import stepped, wired
from airloom.experiments.net_chain.kinds import BACKWARD, FORWARD, SLOWER, TOLERANCE, Series, line
from airloom.report.figures import Figure, Line
from airloom.results import Result

LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112)
QUICK_LADDER, SMOKE_LADDER = (2, 4, 8, 16), (2,)


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures chains of growing length; finished ones are kept when it is run again."""
    seconds = extent.choose(full=6, quick=3, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    rule = chains.repetitions(extent)
    echoes = extent.repetitions(wired.SHARE, within=TOLERANCE / 2, most=chains.MOST)
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns", "native")) as campaign:
        whole = [wired.case(nodes, kind, seconds) for kind in ("netns", "native") for nodes in ladder]
        campaign.announce([*whole, *(wired.delayed(n, "netns") for n in ladder)], rule, search=True)
        series = chains.both_ways(
            campaign,
            {"kind": "netns"},
            lambda nodes: wired.case(nodes, "netns", seconds),
            wired.read,
            rule,
            ladder,
            wired.IDEAL_THROUGHPUT,
            flows=(SLOWER,),
            halve=extent is Extent.FULL,
        )
        campaign.repeat(
            [wired.delayed(nodes, "netns") for nodes in series.lengths], wired.read_delayed, echoes
        )
        native = Series({"kind": "native"}, wired.IDEAL_THROUGHPUT, campaign.found, list(series.lengths))
        campaign.repeat(
            [wired.case(nodes, "native", seconds) for nodes in native.tried], wired.read, rule, optional=True
        )
        _claims(campaign, series, f" (the ladder ends at {ladder[-1]})")
        for figure in _figures(series, native):
            campaign.draw(figure)
        return campaign.finish()


def _claims(campaign: Campaign, series: Series, limited: str) -> None:
    least = (1 - TOLERANCE) * wired.IDEAL_THROUGHPUT / 1e6
    campaign.claim(
        "flat", "The shortest chain carries TCP at the link's limit.",
        f"shortest >= {least:.2f} Mbit/s", says="flat", shortest=series.sample(FORWARD, 2),
    )  # fmt: skip
    said = campaign.paper["net-1"]
    campaign.claim(
        "capacity", f"Virtual routing carries longer chains faithfully than NET's did{limited}.",
        f"largest >= {said.x:g}", says="net-1", largest=series.longest(SLOWER),
    )  # fmt: skip
    back = campaign.paper["net-2"].x
    campaign.claim(
        "back", f"Flow 2 first deviates at {back:g} nodes.", f"first within 25 % of {back:g}",
        says="net-2", first=series.deviation(BACKWARD),
    )  # fmt: skip
    shares = series.by_length(wired.SHARE) or {"n2": None}
    campaign.claim(
        "time", "With 1 ms links the largest round-trip time is within 2 % of the ideal on every chain, "
        "whether it carries TCP or not.",
        each(shares, "within 2 % of 1"), says="linear", shape=each(shares, "within 10 % of 1"), **shares,
    )  # fmt: skip
    ends, added = wired.growth(series, wired.DELAYED, wired.DELAY)
    campaign.claim(
        "hops", "With 1 ms links each further hop adds to the largest round-trip time what the links add, "
        "within 5 %: what is above the ideal of two nodes is this machine's own.",
        f"last - first within 5 % of {added:.5f} ms", says="linear",
        shape=f"last - first within 10 % of {added:.5f} ms", **ends,
    )  # fmt: skip


def _figures(series: Series, native: Series) -> list[Figure]:
    n = series.lengths
    x = tuple(float(nodes) for nodes in n)
    plain = {nodes: stepped.links(wired.case(nodes, "netns", 1).scenario) for nodes in n}
    delayed = [stepped.rtt(stepped.links(wired.delayed(nodes, "netns").scenario)) for nodes in n]

    def measured(values: list[float], scale: float) -> Line:
        """The ideal measured on the engine in memory, which is no figure of this machine."""
        return Line(label="engine in memory", role="ideal", x=x, y=tuple(v / scale for v in values))

    def ideal(values: list[float], scale: float) -> Line:
        return Line(label="ideal", role="ideal", x=x, y=tuple(value / scale for value in values))

    return [
        Figure(
            name="net-rtt",
            title="Largest ICMP round-trip time over the chain",
            x_label="nodes in the chain",
            y_label="round-trip time",
            unit="ms",
            lines=(
                ideal([wired.ideal_rtt(nodes, 0) for nodes in n], 1e6),
                measured([stepped.rtt(plain[nodes]) for nodes in n], 1e6),
                line("Airloom", series, wired.LARGEST, 1e6),
                line("veth and HTB", native, wired.LARGEST, 1e6, reference=True),
            ),
            caption="Links without propagation delay, as NET's: what is above the ideal is the host's.",
        ),
        Figure(
            name="net-rtt-delayed",
            title="The same with 1 ms of propagation on each link",
            x_label="nodes in the chain",
            y_label="round-trip time",
            unit="ms",
            lines=(
                ideal([wired.ideal_rtt(nodes, wired.DELAY) for nodes in n], 1e6),
                measured([float(rtt) for rtt in delayed], 1e6),
                line("Airloom", series, wired.DELAYED, 1e6),
            ),
            tolerance=TOLERANCE,
        ),
        Figure(
            name="net-tcp",
            title="TCP throughput of one flow over the chain",
            x_label="nodes in the chain",
            y_label="throughput",
            unit="Mbit/s",
            lines=(
                ideal([wired.IDEAL_THROUGHPUT for _ in n], 1e6),
                measured([stepped.throughput(plain[nodes]) for nodes in n], 1e6),
                line("Airloom, flow 1", series, FORWARD, 1e6),
                line("Airloom, flow 2", series, BACKWARD, 1e6),
                line("veth and HTB, flow 1", native, FORWARD, 1e6, reference=True),
            ),
            tolerance=TOLERANCE,
        ),
    ]
