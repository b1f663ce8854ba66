"""NET's wireless chain: ring search, round-trip time and TCP over ad hoc routing, against the ideal.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search
from airloom.experiments import paper as published
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import ideal
from airloom.experiments.net_chain.kinds import bounded
from airloom.experiments.net_chain.wireless import Chain
from airloom.report import figures
from airloom.report.figures import Figure
from airloom.results import Measurement, Result, RunWriter, claims
from airloom.scenario.model import Measurement as Wanted
from airloom.units.figures import Quantity

TOLERANCE = 0.02
STAIRS, SMOKE_STAIRS = 13, 4
"""Nodes in the chain whose first echoes show the ring search."""
LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 36)
"""As far as AODV looks: 35 hops (NET_DIAMETER, RFC 3561, 10)."""
QUICK_LADDER, SMOKE_LADDER = (2, 5, 9), (2,)
AIR, QUICK_AIR, SMOKE_AIR = (2, 3, 4, 5, 7, 10), (2, 4), (2,)
"""Chains that share one channel."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one chain gave; times in ns, throughput in bit/s."""

    nodes: int
    first: float
    rtt: float
    forward: float
    backward: float
    valid: bool

    def carries_tcp(self) -> bool:
        """Both flows within the tolerance of the ideal radio's limit, in a run that may be believed."""
        flows = (self.forward, self.backward)
        return self.valid and all(abs(flow / ideal.THROUGHPUT - 1) <= TOLERANCE for flow in flows)


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures the staircase, then chains of growing length; finished ones are kept when it is run again."""
    seconds = extent.choose(full=8, quick=3, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    steps = extent.choose(full=STAIRS, quick=STAIRS, smoke=SMOKE_STAIRS)
    aodv: dict[int, Point] = {}

    def measure(kind: str, routing: str, nodes: int) -> Point:
        progress(f"{nodes} nodes, {kind}, {routing}")
        return _measure(folder, Chain(kind, routing, nodes), seconds)

    def carries(nodes: int) -> bool:
        if nodes not in aodv:
            aodv[nodes] = measure("ideal", "aodv", nodes)
        return aodv[nodes].carries_tcp()

    with RunWriter(folder, scenario="net-wireless-chain", seed=1, kinds=("netns",), replace=True) as writer:
        progress(f"the ring search over {steps} nodes")
        stairs, search_valid = _staircase(folder, steps)
        largest = capacity_search.search(ladder, carries, halve=extent is Extent.FULL)
        found = {("ideal", "aodv"): [aodv[nodes] for nodes in sorted(aodv)]}
        air = extent.choose(full=AIR, quick=QUICK_AIR, smoke=SMOKE_AIR)
        found["802.11b", "aodv"] = [measure("802.11b", "aodv", n) for n in air]
        if shutil.which("babeld"):
            reached = tuple(n for n in LADDER if n <= max(aodv))
            lengths = extent.choose(full=reached, quick=QUICK_LADDER[1:], smoke=SMOKE_LADDER)
            found["ideal", "babel"] = [measure("ideal", "babel", n) for n in lengths]
        for (kind, routing), points in found.items():
            writer.measured(*(one for point in points for one in _figures(point, kind, routing)))
        writer.measured(
            *(
                Measurement(
                    name="search", metric="rtt_first", unit="ns", mean=rtt, labels={"hops": str(hops)}
                )
                for hops, rtt in stairs.items()
            )
        )
        figures.save(folder, _drawn(stairs, found))
        limit = None if extent is Extent.FULL else ladder[-1]
        believed = stairs if search_valid else {}
        return writer.finish(*capacity_search.whole(folder), claims=_claims(believed, found, largest, limit))


def _staircase(folder: Path, nodes: int) -> tuple[dict[int, float], bool]:
    """Hops: the first round-trip time to a node so far away that nobody has looked for yet, in ns.

    And whether the run may be believed.

    One chain for all: what earlier searches left in the tables is routes to other nodes, and they shorten
    no search but for their own destination.
    """
    hops = range(1, nodes)
    wanted = [
        Wanted(name=f"h{far}", ping={"from": "n1", "to": f"n{far + 1}", "count": 2, "interval": "50 ms"})
        for far in hops
    ]
    one = Chain("ideal", "aodv", nodes)
    reader = capacity_search.point(folder, f"{one.name}-search", one.scenario(wanted, tag="-search"))
    found = {far: capacity_search.value(reader, f"h{far}", "rtt_first") for far in hops}
    return found, capacity_search.believable([reader])


def _measure(folder: Path, one: Any, seconds: int) -> Point:
    last = f"n{one.nodes}"
    reader = capacity_search.point(
        folder,
        one.name,
        one.scenario(
            [
                # So few and so far apart that none is sent while the first still waits for its route.
                Wanted(name="rtt", ping={"from": "n1", "to": last, "count": 1}),
                Wanted(name="after", ping={"from": "n1", "to": last, "count": 30, "interval": "20 ms"}),
                Wanted(name="forward", iperf3=capacity_search.flow("n1", last, seconds)),
                Wanted(name="backward", iperf3=capacity_search.flow(last, "n1", seconds)),
            ]
        ),
    )
    return Point(
        one.nodes,
        capacity_search.value(reader, "rtt", "rtt_max"),
        capacity_search.value(reader, "after", "rtt_max"),
        capacity_search.steady(reader, "forward"),
        capacity_search.steady(reader, "backward"),
        capacity_search.believable([reader]),
    )


def _figures(point: Point, kind: str, routing: str) -> list[Measurement]:
    labels = {"nodes": str(point.nodes), "radio": kind, "routing": routing}
    values = [
        ("rtt", "rtt_max", "ns", point.first),
        ("after", "rtt_max", "ns", point.rtt),
        ("forward", "throughput", "bit/s", point.forward),
        ("backward", "throughput", "bit/s", point.backward),
    ]
    return [
        Measurement(name=name, metric=metric, unit=unit, mean=value, labels=labels)
        for name, metric, unit, value in values
    ]


def _paper() -> published.Paper:
    return published.read(Path(__file__).with_name("paper.csv"))


def _drawn(stairs: dict[int, float], found: dict[tuple[str, str], list[Point]]) -> list[Figure]:
    hops = list(stairs)
    searched = [
        capacity_search.line("ideal", "ideal", hops, [ideal.first_rtt(far) for far in hops], 1e6),
        capacity_search.line("Airloom, one chain", "measured", hops, list(stairs.values()), 1e6),
    ]
    for (kind, routing), points in found.items():
        if kind == "ideal":
            far = [point.nodes - 1 for point in points]
            label = f"Airloom, {routing.upper() if routing == 'aodv' else 'Babel'}, a chain each"
            searched.append(
                capacity_search.line(label, "measured", far, [point.first for point in points], 1e6)
            )
    lengths = sorted({point.nodes for points in found.values() for point in points})
    carried = [
        capacity_search.line(
            "ideal radio's limit", "ideal", lengths, [ideal.THROUGHPUT for _ in lengths], 1e6
        )
    ]
    air = found["802.11b", "aodv"]
    for (kind, routing), points in found.items():
        n = [point.nodes for point in points]
        label = f"{kind}, {'AODV' if routing == 'aodv' else 'Babel'}"
        carried.append(
            capacity_search.line(f"{label}, flow 1", "measured", n, [point.forward for point in points], 1e6)
        )
        if (kind, routing) == ("ideal", "aodv"):
            carried.append(
                capacity_search.line(
                    f"{label}, flow 2", "measured", n, [point.backward for point in points], 1e6
                )
            )
    limits = [ideal.shared_limit(point.nodes - 1) for point in air]
    shared = [point.nodes for point in air]
    carried.append(
        capacity_search.line("802.11b, bound of the shared channel", "reference", shared, limits, 1e6)
    )
    paper = _paper()
    return [
        Figure(
            name="net-search",
            title="Largest ICMP round-trip time: the ring search",
            x_label="hops",
            y_label="round-trip time",
            unit="ms",
            lines=(*searched, *paper.lines("net-search")),
            marks=paper.marks("net-search"),
            caption="Ideal radio. The first echo waits for the search: steps of 320, 480, 640 and 800 ms.",
        ),
        Figure(
            name="net-tcp-wireless",
            title="TCP throughput of one flow over the chain",
            x_label="nodes in the chain",
            y_label="throughput",
            unit="Mbit/s",
            lines=tuple(carried),
            marks=paper.marks("net-tcp-wireless"),
            tolerance=TOLERANCE,
            caption="What shares one 802.11b channel is not held against the ideal radio's limit.",
        ),
    ]


def _claims(
    stairs: dict[int, float], found: dict[tuple[str, str], list[Point]], largest: int, limit: int | None
) -> list[Any]:
    above = [rtt - ideal.first_rtt(hops) for hops, rtt in stairs.items()]
    far = [rtt for hops, rtt in stairs.items() if hops >= 10]
    air = {point.nodes: point for point in found["802.11b", "aodv"] if point.valid}
    babel = [p.first for p in found.get(("ideal", "babel"), []) if p.valid]
    beyond = [p.nodes for p in found["ideal", "aodv"] if p.valid and not p.carries_tcp()]
    carried, interval = bounded(largest, min(beyond, default=None)).judged()
    measured = {"tcp.largest": carried}
    judge = functools.partial(claims.evaluate, intervals={"tcp.largest": interval}, unmeasured="undecided")
    if above:
        measured["search.above"] = Quantity.of(max(above), "ns")
        measured["search.below"] = Quantity.of(max(0.0, -min(above)), "ns")
    if 2 in air:
        measured["air.two"] = Quantity.of(air[2].forward, "bit/s")
    if air:
        longest = air[max(air)]
        share = longest.forward / ideal.shared_limit(longest.nodes - 1)
        measured["air.share"] = Quantity.of(share, "1")
    if babel:
        measured["babel.first"] = Quantity.of(max(babel), "ns")
    if far:
        measured["search.flat"] = Quantity.of(max(far) - min(far), "ns")
    values = claims.from_measurements((), measured)
    if limit:
        capacity_claim = judge(
            "capacity",
            f"Virtual routing carries TCP faithfully over {limit} nodes, all that was tried.",
            f"tcp.largest >= {limit}",
            values,
            source="E-NET-5",
            shape=f"tcp.largest > {limit // 2}",
        )
    else:
        said = _paper()["net"]
        capacity_claim = judge(
            "capacity", "Virtual routing carries longer chains faithfully than NET's did.",
            f"tcp.largest >= {said.x:g}", values, source=f"{said.source}: {said.says}",
            shape="tcp.largest >= 7",
        )  # fmt: skip
    low, high = (limit / 1e6 for limit in ideal.pair_limits())
    kept = [
        judge(
            "staircase",
            "The first echo waits for the rings of the search: 0, 320, 800, 1440 and 2240 ms.",
            "search.above <= 100 ms", values, source="E-NET-4, P-42", shape="search.above <= 150 ms",
        ),
        judge(
            "not-before", "No search ends before its last ring was sent.", "search.below <= 1 ms", values,
            source="P-42",
        ),
        judge(
            "linear", "From 10 hops on it is linear: the last ring reaches every node.",
            "search.flat <= 60 ms", values, source="E-NET-4: linear from 10 hops",
        ),
        capacity_claim,
        judge(
            "real-pair", "A real 802.11b pair gives about half of its 11 Mbit/s.",
            f"air.two >= {0.97 * low:.3f} Mbit/s", values, source="P-48", shape="air.two >= 4 Mbit/s",
        ),
        judge(
            "real-pair-limit", "... and never more than its frames' time on the air allows.",
            f"air.two <= {1.01 * high:.3f} Mbit/s", values, source="P-48",
        ),
        judge(
            "real-chain", "Hops that hear each other share the channel.",
            "air.share <= 1.01", values, source="P-48",
        ),
    ]  # fmt: skip
    if ("ideal", "babel") in found:
        search_free = "A protocol that keeps routes to all has no search."
        kept.append(judge("babel", search_free, "babel.first <= 100 ms", values, source="beside E-NET-4"))
    return kept
