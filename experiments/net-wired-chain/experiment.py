"""NET's wired chain: how many routers in a row until round-trip time and TCP leave the ideal.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import airloom
from airloom import topology
from airloom.report import figures
from airloom.report.figures import Figure, Line, Mark
from airloom.results import Measurement, Result, RunReader, RunWriter, claims, sweep
from airloom.results.quantity import Quantity
from airloom.scenario.model import Measurement as Wanted
from airloom.scenario.model import Scenario

RATE = 100_000_000
"""bit/s, as NET's links."""
SEGMENT, SEGMENT_ON_WIRE = 1448, 1538
ECHO_ON_WIRE = 122
"""Octets of an echo with 56 octets of data: 98 in the frame, 4 check sequence, 8 preamble, 12 gap."""
DELAY = 1_000_000
"""ns; the propagation delay of each link in the second measurement of round-trip time."""
TOLERANCE = 0.02
IDEAL_THROUGHPUT = RATE * SEGMENT / SEGMENT_ON_WIRE
LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112)
QUICK_LADDER = (2, 4, 8, 16)


def ideal_rtt(nodes: int, delay: int) -> float:
    """Round-trip time of an echo over a chain, in ns: serialization and propagation, both ways."""
    return 2 * (nodes - 1) * (ECHO_ON_WIRE * 8e9 / RATE + delay)


@dataclass(frozen=True, slots=True)
class Point:
    """What one chain gave; times in ns, throughput in bit/s."""

    nodes: int
    rtt: float
    rtt_delayed: float | None
    forward: float
    backward: float
    valid: bool

    def carries_tcp(self) -> bool:
        """Both flows within the tolerance of the ideal, in a run that may be believed."""
        flows = (self.forward, self.backward)
        return self.valid and all(abs(flow / IDEAL_THROUGHPUT - 1) <= TOLERANCE for flow in flows)

    def keeps_time(self) -> bool:
        """The largest round-trip time within the tolerance of the ideal with 1 ms links."""
        ideal = ideal_rtt(self.nodes, DELAY)
        return self.valid and self.rtt_delayed is not None and self.rtt_delayed <= ideal * (1 + TOLERANCE)


def run(folder: Path, *, quick: bool, progress: Callable[[str], None]) -> Result:
    """Measures chains of growing length; finished ones are kept when it is run again."""
    seconds = 3 if quick else 8
    points: dict[int, Point] = {}
    natives: dict[int, Point] = {}

    def measure(nodes: int) -> Point:
        if nodes not in points:
            points[nodes] = _measure(folder, nodes, "netns", seconds, progress)
        return points[nodes]

    with RunWriter(
        folder, scenario="net-wired-chain", seed=1, kinds=("netns", "native"), replace=True
    ) as writer:
        largest = search(LADDER if not quick else QUICK_LADDER, lambda n: measure(n).carries_tcp(), quick)
        for nodes in sorted(points):
            natives[nodes] = _measure(folder, nodes, "native", seconds, progress)
        kept = [points[nodes] for nodes in sorted(points)]
        for point in kept + [natives[nodes] for nodes in sorted(natives)]:
            kind = "netns" if points.get(point.nodes) is point else "native"
            writer.measured(*_figures(point, kind))
        reader = [RunReader(path.parent) for path in sorted((folder / "points").glob("*/result.json"))]
        figures.save(folder, _drawn(kept, [natives[nodes] for nodes in sorted(natives)]))
        verdict = sweep.worst([(one.name, one.result.verdict) for one in reader])
        ledger = sweep.total([one.result.ledger for one in reader])
        return writer.finish(verdict, ledger, claims=_claims(kept, largest, quick))


def search(ladder: tuple[int, ...], good: Callable[[int], bool], quick: bool) -> int:
    """The largest chain that is good: up the ladder until one is not, then halving between."""
    last_good, first_bad = 1, None
    for nodes in ladder:
        if good(nodes):
            last_good = nodes
        else:
            first_bad = nodes
            break
    while first_bad is not None and not quick and first_bad - last_good > 1:
        middle = (last_good + first_bad) // 2
        if good(middle):
            last_good = middle
        else:
            first_bad = middle
    return last_good


def _measure(folder: Path, nodes: int, kind: str, seconds: int, progress: Callable[[str], None]) -> Point:
    progress(f"{nodes} nodes, {kind}")
    tools = [
        Wanted(name="rtt", ping={"from": "n1", "to": f"n{nodes}", "count": 50, "interval": "20 ms"}),
        Wanted(name="forward", iperf3=_flow("n1", f"n{nodes}", seconds)),
        Wanted(name="backward", iperf3=_flow(f"n{nodes}", "n1", seconds)),
    ]
    plain = _run(folder, f"{kind}-{nodes:03}", kind, nodes, {}, tools)
    delayed = None
    if kind == "netns":
        delayed = _run(folder, f"{kind}-{nodes:03}-delayed", kind, nodes, {"delay": "1 ms"}, tools[:1])
    return Point(
        nodes,
        _value(plain, "rtt", "rtt_max"),
        _value(delayed, "rtt", "rtt_max") if delayed else None,
        _steady(plain, "forward"),
        _steady(plain, "backward"),
        all(one.result.verdict.status != "invalid" for one in (plain, delayed) if one),
    )


def _flow(source: str, to: str, seconds: int) -> dict[str, str]:
    return {"from": source, "to": to, "duration": f"{seconds} s", "congestion": "cubic"}


def _run(
    folder: Path, name: str, kind: str, nodes: int, link: dict[str, str], tools: list[Wanted]
) -> RunReader:
    place = folder / "points" / name
    if (place / "result.json").exists() and (done := RunReader(place)).finished:
        return done
    scenario = Scenario(
        name=f"net-wired-chain-{name}",
        kind=kind,
        topology=topology.chain(nodes, rate="100 Mbit/s", queue={"packets": 200}, **link),
        measurements=tools,
    )
    return airloom.run(scenario, out=place)


def _value(reader: RunReader, name: str, metric: str) -> float:
    found = [one.mean for one in reader.result.measurements if (one.name, one.metric) == (name, metric)]
    if not found or found[0] is None:
        raise airloom.RunError(
            "experiment.unmeasured", f"{name}.{metric} is missing", where=str(reader.folder)
        )
    return found[0]


def _steady(reader: RunReader, name: str) -> float:
    """Throughput without the first second, in which TCP is still finding it."""
    rows = reader.samples(name)
    rates = rows[rows.metric == "throughput"].sort_values("t_ns").value.tolist()
    return statistics.fmean(rates[1:])


def _figures(point: Point, kind: str) -> list[Measurement]:
    labels = {"nodes": str(point.nodes), "kind": kind}
    values = [
        ("rtt", "rtt_max", "ns", point.rtt),
        ("forward", "throughput", "bit/s", point.forward),
        ("backward", "throughput", "bit/s", point.backward),
    ]
    if point.rtt_delayed is not None:
        values.append(("rtt-delayed", "rtt_max", "ns", point.rtt_delayed))
    return [
        Measurement(name=name, metric=metric, unit=unit, mean=value, labels=labels)
        for name, metric, unit, value in values
    ]


def _drawn(points: list[Point], natives: list[Point]) -> list[Figure]:
    n = tuple(float(point.nodes) for point in points)

    def line(label: str, role: figures.Role, values: list[float], scale: float) -> Line:
        return Line(label=label, role=role, x=n, y=tuple(value / scale for value in values))

    return [
        Figure(
            name="net-rtt",
            title="Largest ICMP round-trip time over the chain",
            x_label="nodes in the chain",
            y_label="round-trip time",
            unit="ms",
            lines=(
                line("ideal", "ideal", [ideal_rtt(p.nodes, 0) for p in points], 1e6),
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
                line("ideal", "ideal", [ideal_rtt(p.nodes, DELAY) for p in points], 1e6),
                line("Airloom", "measured", [p.rtt_delayed or 0.0 for p in points], 1e6),
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
                line("ideal", "ideal", [IDEAL_THROUGHPUT for _ in points], 1e6),
                line("Airloom, flow 1", "measured", [p.forward for p in points], 1e6),
                line("Airloom, flow 2", "measured", [p.backward for p in points], 1e6),
                line("veth and HTB, flow 1", "reference", [p.forward for p in natives], 1e6),
            ),
            marks=(
                Mark(x=3, label="NET: UML deviates"),
                Mark(x=5, label="NET: Xen deviates"),
                Mark(x=13, label="NET: virtual routing deviates"),
                Mark(x=50, label="NET: flow 2 deviates"),
            ),
            tolerance=TOLERANCE,
        ),
    ]


def _claims(points: list[Point], largest: int, quick: bool) -> list:
    in_time = max((p.nodes for p in points if p.keeps_time()), default=1)
    values = claims.from_measurements(
        (),
        {
            "tcp.largest": Quantity.of(largest, "1"),
            "rtt.largest": Quantity.of(in_time, "1"),
            "shortest.forward": Quantity.of(points[0].forward, "bit/s"),
        },
    )
    limited = " (the quick ladder ends at 16)" if quick else ""
    return [
        claims.evaluate(
            "flat", "The shortest chain carries TCP at the link's limit.",
            f"shortest.forward >= {0.98 * IDEAL_THROUGHPUT / 1e6:.2f} Mbit/s", values, source="E-NET-2",
        ),
        claims.evaluate(
            "capacity",
            f"Virtual routing carries longer chains faithfully than the 12 nodes that NET's did{limited}.",
            "tcp.largest >= 13", values, source="E-NET-2: first deviation at 13 vnodes",
            shape="tcp.largest >= 5",
        ),
        claims.evaluate(
            "time", f"With 1 ms links the largest round-trip time stays within 2 % of the ideal{limited}.",
            "rtt.largest >= 2", values, source="E-NET-1: linear in the hops",
        ),
    ]  # fmt: skip
