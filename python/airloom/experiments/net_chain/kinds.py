"""First deviation of each node kind from the ideal, for NET's two comparisons of kinds.

The chain grows until TCP deviates from the ideal, separately for each direction; bisection then
finds the border. For a direction without deviation, the largest length is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from airloom.errors import HostError, RunError
from airloom.experiments import capacity_search
from airloom.experiments.campaign import Campaign
from airloom.experiments.found import Bounded
from airloom.report.figures import Figure, Line, Role
from airloom.results import RunReader
from airloom.runs.single import Interrupted

TOLERANCE = 0.02


class Point(Protocol):
    """Figures of one chain in ns and bit/s."""

    nodes: int
    rtt: float
    forward: float
    backward: float
    valid: bool


@dataclass(slots=True)
class Series:
    """Chains of one kind."""

    kind: str
    points: dict[int, Any] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)
    """Direction: the longest chain that is good."""
    deviation: dict[str, int] = field(default_factory=dict)
    """Direction: the shortest chain tried that is not; missing if all were good."""
    beyond: dict[str, int] = field(default_factory=dict)
    """Direction: the shortest chain whose run shows a deviation; an ``invalid`` run shows none."""
    busy: dict[int, float] = field(default_factory=dict)
    """Mean share of this machine's processors in use, by length."""

    @property
    def valid(self) -> dict[int, Any]:
        """Returns the chains whose runs are not ``invalid``, which claims may use."""
        return {nodes: point for nodes, point in self.points.items() if point.valid}

    def longest(self, direction: str) -> Bounded | None:
        """Returns the length up to which a flow is good, as far as the search knows; None unmeasured."""
        return bounded(self.largest[direction], self.beyond.get(direction)) if self.points else None

    @property
    def busy_at_deviation(self) -> float | None:
        """Returns ``busy`` at the first deviation of any direction; None if no chain deviates.

        The search loads the machine on purpose, so the verdict of that run does not matter.
        """
        return self.busy.get(min(self.deviation.values())) if self.deviation else None


def bounded(largest: int, beyond: int | None) -> Bounded:
    """Returns the longest good chain: at least ``largest``, and shorter than ``beyond``, which deviates."""
    if beyond is None:
        return Bounded(float(largest), why=f"no valid run shows a deviation up to {largest} nodes")
    # A longer chain may have been good by chance; the search went up to the first that was not.
    high = float(max(largest, beyond - 1))
    return Bounded(float(largest), high, why=f"between {largest} and {beyond} nodes nothing was tried")


def both_ways(
    campaign: Campaign,
    kind: str,
    measure: Callable[[int], Point],
    ladder: Sequence[int],
    ideal: float,
    *,
    halve: bool,
) -> Series:
    """Searches the first deviation of both flows; one run measures a chain for both."""
    series = Series(kind)
    failed: set[int] = set()

    def good(nodes: int, direction: str) -> bool:
        if nodes not in series.points and nodes not in failed:
            try:
                series.points[nodes] = measure(nodes)
            except Interrupted:
                raise
            except (RunError, HostError) as error:
                # A chain that this kind cannot bring up counts as unfaithful.
                failed.add(nodes)
                campaign.note(f"{nodes} nodes of kind {kind}: {error}")
        if nodes in failed:
            return False
        point = series.points[nodes]
        flow = point.forward if direction == "forward" else point.backward
        return bool(point.valid and abs(flow / ideal - 1) <= TOLERANCE)

    for direction in ("forward", "backward"):
        tried: dict[int, bool] = {}

        def one(nodes: int, direction: str = direction, tried: dict[int, bool] = tried) -> bool:
            tried[nodes] = good(nodes, direction)
            return tried[nodes]

        series.largest[direction] = capacity_search.search(ladder, one, halve=halve)
        bad = [nodes for nodes, fine in tried.items() if not fine]
        if bad:
            series.deviation[direction] = min(bad)
        shown = [nodes for nodes in bad if nodes in failed or series.points[nodes].valid]
        if shown:
            series.beyond[direction] = min(shown)
    for reader in capacity_search.readers(campaign.folder):
        nodes = _chain(reader, kind)
        if nodes is not None:
            series.busy[nodes] = _busy(reader)
    for nodes, point in series.points.items():
        labels = {"kind": kind, "nodes": nodes}
        campaign.found.add(
            labels,
            {
                "rtt_max": (point.rtt, "ns"),
                "forward": (point.forward, "bit/s"),
                "backward": (point.backward, "bit/s"),
                "busy": (series.busy.get(nodes, 0.0), "1"),
            },
        )
    for direction, largest in series.largest.items() if series.points else ():
        campaign.found.add({"kind": kind, "direction": direction}, {"largest": (float(largest), "nodes")})
    return series


def _chain(reader: RunReader, kind: str) -> int | None:
    """Returns the number of nodes of a run's chain, if it has this kind and measured TCP."""
    measured = {one.name for one in reader.result.measurements}
    if reader.result.kinds != (kind,) or "forward" not in measured:
        return None
    return len(reader.details.topology.vertices)


def _busy(reader: RunReader) -> float:
    rows = reader.samples("host", "cpu")
    return float(rows.value.mean()) if len(rows) else 0.0


def compare(campaign: Campaign, found: Mapping[str, Series], longest: int) -> None:
    """Adds claims about the order of kinds and about directions, for the measured kinds.

    ``longest`` is the end of the ladder: a kind that is good there may be good beyond.
    """

    pairs = [("qemu", "uml"), ("netns", "qemu"), ("netns", "uml")]
    for better, worse in pairs:
        if better in found and worse in found:
            campaign.claim(
                f"order-{better}-{worse}",
                f"Chains of {better} hold longer than chains of {worse} (flow 1).",
                "better > worse",
                says="order",
                better=found[better].longest("forward"),
                worse=found[worse].longest("forward"),
            )
    published = {"uml": "uml-1", "qemu": "xen-1", "netns": "net-1"}
    for kind in found:
        if kind in published:
            said = campaign.paper[published[kind]]
            # Two nodes are the shortest chain: whether it is good has to be seen.
            good = max(2.0, (said.x or 1) - 1)
            campaign.claim(
                f"first-{kind}",
                f"Flow 1 over {kind} first deviates no earlier than published ({said.x:g}; {longest} tried).",
                f"largest >= {good:g}",
                says=published[kind],
                largest=found[kind].longest("forward"),
            )
        campaign.claim(
            f"direction-{kind}",
            f"Flow 2 over {kind}, whose source is at the other end, holds at least as long as flow 1.",
            "back >= forth",
            says="uml-2" if kind != "netns" else "net-2",
            back=found[kind].longest("backward"),
            forth=found[kind].longest("forward"),
        )


def line(label: str, series: Series, value: Callable[[Any], float]) -> Line:
    """Returns a figure of a kind's chains over their length, in millions of its unit."""
    own = sorted(series.points)
    role: Role = "reference" if series.kind == "native" else "measured"
    return capacity_search.line(label, role, own, [value(series.points[nodes]) for nodes in own], 1e6)


def deviation_figure(name: str, found: Mapping[str, Series], ideal: float) -> Figure:
    """Returns TCP in both directions over the length of the chain."""
    lengths = sorted({nodes for series in found.values() for nodes in series.points})
    x = tuple(float(nodes) for nodes in lengths)
    lines = [Line(label="ideal", role="ideal", x=x, y=tuple(ideal / 1e6 for _ in x))]
    for kind, series in found.items():
        lines.append(line(f"{kind}, flow 1", series, lambda point: point.forward))
        lines.append(line(f"{kind}, flow 2", series, lambda point: point.backward))
    return Figure(
        name=name,
        title="TCP throughput of one flow over the chain",
        x_label="nodes in the chain",
        y_label="throughput",
        unit="Mbit/s",
        lines=tuple(lines),
        tolerance=TOLERANCE,
    )
