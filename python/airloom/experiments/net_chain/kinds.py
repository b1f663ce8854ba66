"""Search for the first chain that deviates from the ideal, for NET's experiments.

A chain grows until TCP deviates from the ideal, separately for each direction; bisection then finds
the border. Each length is one point of a campaign: it is repeated until the interval of the slower
flow is narrow enough. The search follows the means. What claims may use is less: a length is known to
be faithful, or to deviate, only if the whole intervals of its valid runs say so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airloom.experiments import capacity_search
from airloom.experiments.campaign import Campaign, Case, Read
from airloom.experiments.extent import Extent
from airloom.experiments.found import Bounded, Found, Labels, Sample
from airloom.experiments.repetitions import LEAST, Repetitions
from airloom.report.figures import Figure, Line
from airloom.results import RunReader
from airloom.stats import mean

TOLERANCE = 0.02
"""Largest deviation from the ideal of a faithful flow, as a share."""
MOST = 6
"""Most runs of a chain."""
FURTHER = 2
"""Most chains tried beyond one whose interval allows both, until one is known to deviate."""
FORWARD, BACKWARD, SLOWER = "forward.throughput", "backward.throughput", "slower.throughput"
HOST, ENGINE, BUSY = "host.busy", "engine.busy", "busiest.busy"
"""Shares in use, medians over the run: of this machine's processors, of the one processor that the
engine's thread can use, and the larger of both, which limits the chain."""


def repetitions(extent: Extent) -> Repetitions:
    """Returns how often a chain is run: the interval reaches from the ideal half way to the tolerance."""
    return extent.repetitions(SLOWER, within=TOLERANCE / 2, most=MOST)


def tcp_figures(reader: RunReader) -> dict[str, tuple[float, str]]:
    """Returns both flows of a chain, the slower of them, and how busy the processors were."""
    flows = [capacity_search.steady(reader, name) for name in ("forward", "backward")]
    host, engine = (_median(reader, *which) for which in (("host", "cpu"), ("engine", "busy")))
    return {
        FORWARD: (flows[0], "bit/s"),
        BACKWARD: (flows[1], "bit/s"),
        SLOWER: (min(flows), "bit/s"),
        HOST: (host, "1"),
        ENGINE: (engine, "1"),
        BUSY: (max(host, engine), "1"),
    }


def _median(reader: RunReader, measurement: str, metric: str) -> float:
    """The median sample, which the run's first and last seconds don't move; 0 without samples."""
    rows = reader.samples(measurement, metric)
    return float(rows.value.median()) if len(rows) else 0.0


@dataclass(slots=True)
class Series:
    """Chains that differ in their number of nodes alone."""

    labels: Labels
    """What their figures have in common."""
    ideal: float
    """TCP throughput without limits of the machine in bit/s."""
    found: Found
    tried: list[int] = field(default_factory=list)

    @property
    def lengths(self) -> list[int]:
        """Returns the numbers of nodes of the chains that gave figures."""
        return [nodes for nodes in sorted(self.tried) if self.sample(SLOWER, nodes) is not None]

    @property
    def valid(self) -> list[int]:
        """Returns the numbers of nodes of the chains with a run that is not ``invalid``."""
        return [nodes for nodes in self.lengths if (found := self.sample(SLOWER, nodes)) and found.valid]

    def by_length(self, name: str) -> dict[str, Sample | None]:
        """Returns a figure of every chain with a valid run, under its name in a claim: ``n13``."""
        return {f"n{nodes}": self.sample(name, nodes) for nodes in self.valid}

    def sample(self, name: str, nodes: int) -> Sample | None:
        """Returns a figure of a chain, run by run; None if no run gave it."""
        return self.found.sample(name, nodes=nodes, **self.labels)

    @property
    def overloading(self) -> list[int]:
        """Returns the lengths beyond the longest faithful one that deviate or have an ``invalid`` run."""
        longest = self.longest(SLOWER)
        if longest is None:
            return []
        beyond = [nodes for nodes in self.lengths[1:] if nodes > longest.low]
        return [nodes for nodes in beyond if not self._undisturbed(nodes)]

    def _undisturbed(self, nodes: int) -> bool:
        sample = self.sample(SLOWER, nodes)
        return sample is not None and sample.valid == sample.every and self.near(SLOWER, nodes)

    def near(self, flow: str, nodes: int) -> bool:
        """Whether the mean over the valid runs is within the tolerance; False without a valid run."""
        sample = self.sample(flow, nodes)
        if sample is None or not sample.valid:
            return False
        return abs(mean(sample.valid).value / self.ideal - 1) <= TOLERANCE

    def faithful(self, flow: str, nodes: int) -> bool | None:
        """Whether the interval is within the tolerance, or without; None if it allows both.

        A chain that never ran, and one of which each of several runs is ``invalid``, is not faithful:
        this machine cannot carry it.
        """
        sample = self.sample(flow, nodes)
        if sample is None or (not sample.valid and len(sample.every) >= LEAST):
            return False
        _, interval = sample.judged()
        low, high = self.ideal * (1 - TOLERANCE), self.ideal * (1 + TOLERANCE)
        if low <= interval.low and interval.high <= high:
            return True
        return False if interval.high < low or interval.low > high else None

    def longest(self, flow: str) -> Bounded | None:
        """Returns the length up to which a flow is faithful, as far as runs show it; None unmeasured."""
        if not self.lengths:
            return None
        known = {nodes: self.faithful(flow, nodes) for nodes in sorted(self.tried)}
        return bounded(known, self._why(flow, known))

    def deviation(self, flow: str) -> Bounded | None:
        """Returns the number of nodes of the shortest chain that deviates; None unmeasured."""
        longest = self.longest(flow)
        return longest and Bounded(longest.low + 1, longest.high + 1, longest.why)

    @property
    def busy_at_deviation(self) -> Sample | None:
        """Returns ``BUSY`` of the shortest chain of which a flow deviates; None if none does.

        The search loads the machine on purpose, so the verdict of that run does not matter.
        """
        bad = [n for n in self.lengths if not all(self.near(flow, n) for flow in (FORWARD, BACKWARD))]
        return self.sample(BUSY, bad[0]) if bad else None

    def _why(self, flow: str, known: Mapping[int, bool | None]) -> str:
        for nodes, faithful in known.items():
            if faithful is None:
                sample = self.sample(flow, nodes)
                reason = sample.judged()[1].why if sample is not None else ""
                return f"{nodes} nodes: {reason or 'the interval allows both'}"
        return ""


def bounded(known: Mapping[int, bool | None], why: str = "") -> Bounded:
    """Returns the longest faithful chain, from whether chains are faithful by their length; None is open.

    It is at least the length up to which all are, and shorter than the first that is not. One node
    counts as faithful.
    """
    largest, beyond = 1, None
    for nodes, faithful in sorted(known.items()):
        if faithful is False:
            beyond = nodes
            break
    for nodes, faithful in sorted(known.items()):
        if not faithful:
            break
        largest = nodes
    if beyond is None:
        end = max(known, default=1)
        return Bounded(float(largest), why=why or f"no valid run shows a deviation up to {end} nodes")
    gap = f"between {largest} and {beyond} nodes nothing was tried"
    return Bounded(float(largest), float(beyond - 1), why or gap)


def both_ways(
    campaign: Campaign,
    labels: Labels,
    case: Callable[[int], Case],
    read: Read,
    rule: Repetitions,
    ladder: Sequence[int],
    ideal: float,
    *,
    flows: Sequence[str] = (FORWARD, BACKWARD),
    halve: bool,
) -> Series:
    """Searches the first deviation of each flow; a chain is measured once for all.

    The search loads the machine beyond what it can carry, on purpose.
    """
    series = Series(labels, ideal, campaign.found)

    def near(flow: str, nodes: int) -> bool:
        if nodes not in series.tried:
            series.tried.append(nodes)
            campaign.repeat([case(nodes)], read, rule, optional=True)
        return series.near(flow, nodes)

    for flow in flows:
        capacity_search.search(ladder, functools.partial(near, flow), halve=halve)
        if halve:
            _until_known(series, flow, ladder, near)
    for nodes in series.overloading:
        campaign.floods({**labels, "nodes": nodes})
    return series


def _until_known(series: Series, flow: str, ladder: Sequence[int], near: Callable[[str, int], bool]) -> None:
    """Tries longer chains until one is known to deviate: claims about the first need an upper bound."""
    for nodes in [nodes for nodes in ladder if nodes > max(series.tried)][:FURTHER]:
        if any(series.faithful(flow, tried) is False for tried in series.tried):
            return
        near(flow, nodes)


def compare(campaign: Campaign, found: Mapping[str, Series], longest: int, *, alike: bool = False) -> None:
    """Adds claims about the order of kinds and about directions, for the measured kinds.

    ``longest`` is the end of the ladder: a kind that is good there may be good beyond. ``alike``: the
    paper does not tell the directions apart. Its n vnodes may be those of the whole chain or without the
    last one, which had a machine of its own (P-40): then the chain has n + 1 nodes.
    """
    pairs = [("qemu", "uml"), ("netns", "qemu"), ("netns", "uml")]
    for better, worse in pairs:
        if better in found and worse in found:
            campaign.claim(
                f"order-{better}-{worse}",
                f"Chains of {better} hold longer than chains of {worse} (flow 1).",
                "better > worse",
                says="order",
                better=found[better].longest(FORWARD),
                worse=found[worse].longest(FORWARD),
            )
    published = {"uml": "uml-1", "qemu": "xen-1", "netns": "net-1"}
    for kind, series in found.items():
        if kind in published:
            said = campaign.paper[published[kind]]
            # No chain is shorter than two nodes, so that none could deviate earlier.
            for nodes, id, words in (
                (int(said.x or 0), f"first-{kind}", "as published if its n is the whole chain"),
                (
                    int(said.x or 0) + 1,
                    f"first-{kind}-sink",
                    "as published if its n is without the last node",
                ),
            ):
                campaign.claim(
                    id,
                    f"Flow 1 over {kind} first deviates at {nodes} nodes, {words} (the ladder ends at "
                    f"{longest}).",
                    f"first within 25 % of {nodes}",
                    says=published[kind],
                    shape=f"first >= {nodes}" if nodes > 2 else None,
                    first=series.deviation(FORWARD),
                )
        says = "uml-2" if kind != "netns" else "net-2"
        if alike:
            campaign.claim(
                f"direction-{kind}",
                f"Both directions over {kind} hold equally long, within a node.",
                "abs(back - forth) <= 1",
                says=says,
                back=series.longest(BACKWARD),
                forth=series.longest(FORWARD),
            )
            continue
        campaign.claim(
            f"direction-{kind}",
            f"Flow 2 over {kind}, whose source is at the other end, holds longer than flow 1.",
            "back > forth",
            says=says,
            back=series.longest(BACKWARD),
            forth=series.longest(FORWARD),
        )
        if kind == "netns":
            back = campaign.paper["net-2"].x
            campaign.claim(
                f"back-{kind}",
                f"Flow 2 over {kind} first deviates at {back:g} nodes.",
                f"first within 25 % of {back:g}",
                says="net-2",
                first=series.deviation(BACKWARD),
            )
        if kind == "qemu":
            campaign.claim(
                f"count-{kind}",
                f"A machine carries 4 to 6 nodes of {kind}.",
                "largest >= 4 and largest <= 6",
                says="count",
                largest=series.longest(FORWARD),
            )


def deviation_figure(name: str, found: Mapping[str, Series], ideal: float) -> Figure:
    """Returns TCP in both directions over the length of the chain."""
    lengths = sorted({nodes for series in found.values() for nodes in series.lengths})
    x = tuple(float(nodes) for nodes in lengths)
    lines = [Line(label="ideal", role="ideal", x=x, y=tuple(ideal / 1e6 for _ in x))]
    for kind, series in found.items():
        for number, flow in enumerate((FORWARD, BACKWARD), 1):
            lines.append(line(f"{kind}, flow {number}", series, flow, 1e6, reference=kind == "native"))
    return Figure(
        name=name,
        title="TCP throughput of one flow over the chain",
        x_label="nodes in the chain",
        y_label="throughput",
        unit="Mbit/s",
        lines=tuple(lines),
        tolerance=TOLERANCE,
    )


def line(label: str, series: Series, name: str, scale: float, *, reference: bool = False) -> Line:
    """Returns a figure over the length of the chain, with its intervals."""
    role: Any = "reference" if reference else "measured"
    return series.found.line(label, role, name, "nodes", series.lengths, scale, **series.labels)
