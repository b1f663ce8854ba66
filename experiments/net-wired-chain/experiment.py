"""NET's wired chain: how many routers in a row until round-trip time and TCP leave the ideal.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from airloom.experiments import capacity_search
from airloom.experiments import paper as published
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import wired
from airloom.experiments.net_chain.kinds import bounded
from airloom.report import figures
from airloom.report.figures import Figure, Line
from airloom.results import Measurement, Result, RunWriter, claims
from airloom.units.figures import Quantity

LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112)
QUICK_LADDER, SMOKE_LADDER = (2, 4, 8, 16), (2,)


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures chains of growing length; finished ones are kept when it is run again."""
    seconds = extent.choose(full=8, quick=3, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    points: dict[int, wired.Point] = {}
    natives: dict[int, wired.Point] = {}

    def measure(nodes: int) -> wired.Point:
        if nodes not in points:
            points[nodes] = wired.measure(folder, nodes, "netns", seconds, progress)
        return points[nodes]

    with RunWriter(
        folder, scenario="net-wired-chain", seed=1, kinds=("netns", "native"), replace=True
    ) as writer:
        largest = capacity_search.search(
            ladder, lambda n: measure(n).carries_tcp(), halve=extent is Extent.FULL
        )
        for nodes in sorted(points):
            natives[nodes] = wired.measure(folder, nodes, "native", seconds, progress)
        kept = [points[nodes] for nodes in sorted(points)]
        for point in kept + [natives[nodes] for nodes in sorted(natives)]:
            kind = "netns" if points.get(point.nodes) is point else "native"
            writer.measured(*_figures(point, kind))
        figures.save(folder, _drawn(kept, [natives[nodes] for nodes in sorted(natives)]))
        limit = None if extent is Extent.FULL else ladder[-1]
        return writer.finish(*capacity_search.whole(folder), claims=_claims(kept, largest, limit))


def _figures(point: wired.Point, kind: str) -> list[Measurement]:
    labels = {"nodes": str(point.nodes), "kind": kind}
    values = [
        ("rtt", wired.RTT, "ns", point.rtt),
        ("forward", "throughput", "bit/s", point.forward),
        ("backward", "throughput", "bit/s", point.backward),
    ]
    if point.rtt_delayed is not None:
        values.append(("rtt-delayed", wired.RTT, "ns", point.rtt_delayed))
    return [
        Measurement(name=name, metric=metric, unit=unit, mean=value, labels=labels)
        for name, metric, unit, value in values
    ]


def _paper() -> published.Paper:
    return published.read(Path(__file__).with_name("paper.csv"))


def _drawn(points: list[wired.Point], natives: list[wired.Point]) -> list[Figure]:
    n = [point.nodes for point in points]

    def line(label: str, role: figures.Role, values: list[float], scale: float) -> Line:
        return capacity_search.line(label, role, n, values, scale)

    return [
        Figure(
            name="net-rtt",
            title="Largest ICMP round-trip time over the chain",
            x_label="nodes in the chain",
            y_label="round-trip time",
            unit="ms",
            lines=(
                line("ideal", "ideal", [wired.ideal_rtt(p.nodes, 0) for p in points], 1e6),
                line("Airloom", "measured", [p.rtt for p in points], 1e6),
                line("veth and HTB", "reference", [p.rtt for p in natives], 1e6),
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
                line("ideal", "ideal", [wired.ideal_rtt(p.nodes, wired.DELAY) for p in points], 1e6),
                line("Airloom", "measured", [p.rtt_delayed or 0.0 for p in points], 1e6),
            ),
            tolerance=wired.TOLERANCE,
        ),
        Figure(
            name="net-tcp",
            title="TCP throughput of one flow over the chain",
            x_label="nodes in the chain",
            y_label="throughput",
            unit="Mbit/s",
            lines=(
                line("ideal", "ideal", [wired.IDEAL_THROUGHPUT for _ in points], 1e6),
                line("Airloom, flow 1", "measured", [p.forward for p in points], 1e6),
                line("Airloom, flow 2", "measured", [p.backward for p in points], 1e6),
                line("veth and HTB, flow 1", "reference", [p.forward for p in natives], 1e6),
            ),
            marks=_paper().marks("net-tcp"),
            tolerance=wired.TOLERANCE,
        ),
    ]


def _claims(points: list[wired.Point], largest: int, limit: int | None) -> list:
    valid = [p for p in points if p.valid]
    carried, interval = bounded(
        largest, min((p.nodes for p in valid if not p.carries_tcp()), default=None)
    ).judged()
    measured = {"tcp.largest": carried}
    if valid:
        measured["shortest.forward"] = Quantity.of(valid[0].forward, "bit/s")
    late = [p.time_excess() for p in valid if p.carries_tcp()]
    if late:
        measured["rtt.excess"] = Quantity.of(max(late), "1")
    values = claims.from_measurements((), measured)
    judge = functools.partial(claims.evaluate, intervals={"tcp.largest": interval}, unmeasured="undecided")
    said = _paper()["net-1"]
    limited = f" (the ladder ends at {limit})" if limit else ""
    return [
        judge(
            "flat", "The shortest chain carries TCP at the link's limit.",
            f"shortest.forward >= {0.98 * wired.IDEAL_THROUGHPUT / 1e6:.2f} Mbit/s", values, source="E-NET-2",
        ),
        judge(
            "capacity",
            f"Virtual routing carries longer chains faithfully than NET's did{limited}.",
            f"tcp.largest >= {said.x:g}", values, source=f"{said.source}: {said.says}",
            shape="tcp.largest >= 5",
        ),
        judge(
            "time", "With 1 ms links the largest round-trip time stays within 2 % of the ideal on every "
            f"chain that carries TCP{limited}.",
            "rtt.excess <= 2 %", values, source="E-NET-1: linear in the hops", shape="rtt.excess <= 10 %",
        ),
    ]  # fmt: skip
