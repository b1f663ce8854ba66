"""NET's chains in virtual time: longer than the machine carries in wall time, and what that costs.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.found import each
from airloom.experiments.net_chain import virtual
from airloom.experiments.net_chain.kinds import FORWARD, TOLERANCE
from airloom.experiments.net_chain.virtual import AODV, BABEL, LABELS, WIRED, Series
from airloom.experiments.repetitions import Repetitions
from airloom.report.figures import Figure, Line
from airloom.results import Result

LADDERS = {WIRED: (2, 10, 30, 100), AODV: (2, 5, 10, 20), BABEL: (2, 20)}
"""Nodes of the chains. AODV searches at most 35 hops (NET_DIAMETER, RFC 3561, 10)."""
QUICK_LADDERS = {WIRED: (2, 5), AODV: (2, 4), BABEL: (2, 4)}
SMOKE_LADDERS = {WIRED: (2,), AODV: (2,), BABEL: (2,)}
EXACT = 0.005
"""Largest deviation of TCP from its ideal in virtual time, as a share."""
CLOCK = 3
"""Largest deviation of a round-trip time from its ideal in us: ping reads its clock and prints whole us."""

TIMER = 5
"""Largest deviation of the first echo in ms: each of up to five rings ends up to 1 ms late."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures chains of growing length; finished ones are kept when it is run again."""
    ladders = extent.choose(full=LADDERS, quick=QUICK_LADDERS, smoke=SMOKE_LADDERS)
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml",)) as campaign:
        cases = [virtual.case(chain, nodes) for chain, lengths in ladders.items() for nodes in lengths]
        # Short chains of all kinds first: they fail soon if anything is missing.
        cases.sort(key=lambda one: one.labels["nodes"])
        # Repetitions would be the same to the octet.
        campaign.measure(cases, virtual.read, Repetitions.fixed(1, FORWARD))
        series = {chain: Series(chain, tuple(lengths), campaign.found) for chain, lengths in ladders.items()}
        _claims(campaign, series)
        for figure in _figures(series):
            campaign.draw(figure)
        return campaign.finish()


def _claims(campaign: Campaign, series: dict[str, Series]) -> None:
    for chain, one in series.items():
        shares = one.by_length(virtual.SHARE)
        campaign.claim(
            f"tcp-{chain}", f"TCP over the chain ({LABELS[chain]}) has its ideal at every length.",
            each(shares, f"within {100 * EXACT:g} % of 1"), says="linear" if chain == WIRED else "adhoc",
            shape=each(shares, f"within {100 * TOLERANCE:g} % of 1"), **shares,
        )  # fmt: skip
    above = series[WIRED].by_length(virtual.ABOVE)
    campaign.claim(
        "rtt", f"The largest round-trip time over routers is within {CLOCK} us of the ideal at every length: "
        "what ping's clock readings take, and its last digit.",
        " and ".join(f"abs({name}) <= {CLOCK} us" for name in above), says="linear", **above,
    )  # fmt: skip
    searched = series[AODV].by_length(virtual.SEARCHED)
    campaign.claim(
        "search", "AODV's first echo waits for the rings of its search and for nothing else: it is within "
        f"{TIMER} ms of the ideal at every length, as the daemon's timer has whole ms.",
        " and ".join(f"abs({name}) <= {TIMER} ms" for name in searched), says="search",
        shape=each(searched, "<= 100 ms"), **searched,
    )  # fmt: skip
    for id, chain, said in (("wired", WIRED, "wall-wired"), ("adhoc", AODV, "wall-adhoc")):
        limit = campaign.paper[said].x
        campaign.claim(
            f"beyond-{id}", f"Virtual time carries chains ({LABELS[chain]}) faithfully past the {limit:g} "
            f"nodes at which those in wall time deviate.",
            f"largest > {limit:g}", says=said, largest=series[chain].longest(TOLERANCE),
        )  # fmt: skip
    wired = series[WIRED]
    if len(wired.lengths) > 1:
        campaign.claim(
            "price", "What grows with the chain is the time that the machine takes for a virtual second.",
            "long > short", says="time", short=wired.value(virtual.PRICE, wired.lengths[0]),
            long=wired.value(virtual.PRICE, wired.lengths[-1]),
        )  # fmt: skip


def _figures(series: dict[str, Series]) -> list[Figure]:
    lengths = sorted({nodes for one in series.values() for nodes in one.lengths})
    wired = series[WIRED].lengths

    def lines(name: str, scale: float, chains: tuple[str, ...] = (WIRED, AODV, BABEL)) -> tuple[Line, ...]:
        return tuple(
            series[chain].found.line(
                f"{LABELS[chain]}, in virtual time", "measured", name, "nodes", series[chain].lengths, scale,
                chain=chain,
            )
            for chain in chains
        )  # fmt: skip

    return [
        Figure(
            name="tcp",
            title="TCP throughput of one flow over the chain, as a share of its ideal",
            x_label="nodes in the chain",
            y_label="throughput / ideal",
            unit="%",
            lines=(
                Line(label="ideal", role="ideal", x=tuple(map(float, lengths)), y=(100.0,) * len(lengths)),
                *lines(virtual.SHARE, 0.01),
            ),
            tolerance=TOLERANCE,
            caption="Ideals: 94.15 Mbit/s over routers, 10.52 Mbit/s ad hoc. "
            "Wall time: the published pages of the experiments with these chains.",
        ),
        Figure(
            name="rtt",
            title="Largest ICMP round-trip time over routers",
            x_label="nodes in the chain",
            y_label="round-trip time",
            unit="ms",
            lines=(
                Line(
                    label="ideal", role="ideal", x=tuple(map(float, wired)),
                    y=tuple(virtual.ideal_rtt(WIRED, nodes) / 1e6 for nodes in wired),
                ),
                *lines(virtual.LARGEST, 1e6, (WIRED,)),
            ),
            caption="Links without propagation delay: the ideal is 19.52 us a hop.",
        ),
        Figure(
            name="price",
            title="What a virtual second costs",
            x_label="nodes in the chain",
            y_label="wall time / virtual time",
            lines=lines(virtual.PRICE, 1.0),
            log_x=True,
            log_y=True,
            caption="Of the whole run, with the start of programs, on this page's machine and at its load.",
        ),
    ]  # fmt: skip
