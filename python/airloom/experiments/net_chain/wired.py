"""NET's wired chain: routers, 100 Mbit/s full duplex, static routes; one run and its ideal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search
from airloom.results import RunReader
from airloom.scenario.model import Measurement as Wanted
from airloom.scenario.model import Scenario
from airloom.scenario.topology import builders

RATE = 100_000_000
"""Rate of NET's links in bit/s."""
SEGMENT, SEGMENT_ON_WIRE = 1448, 1538
ECHO_ON_WIRE = 122
"""Octets of an echo with 56 octets of data: 98 in the frame, 4 check sequence, 8 preamble, 12 gap."""
RTT = "rtt_max_after_first"
"""The first echo waits for ARP on every link, which the ideal excludes."""
DELAY = 1_000_000
"""Propagation delay of each link in ns, in the second measurement of RTT."""
TOLERANCE = 0.02
IDEAL_THROUGHPUT = RATE * SEGMENT / SEGMENT_ON_WIRE


def ideal_rtt(nodes: int, delay: int) -> float:
    """Returns the RTT of an echo over a chain in ns: serialization and propagation, both ways."""
    return 2 * (nodes - 1) * (ECHO_ON_WIRE * 8e9 / RATE + delay)


@dataclass(frozen=True, slots=True)
class Point:
    """Figures of one chain; times in ns, throughput in bit/s."""

    nodes: int
    rtt: float
    rtt_delayed: float | None
    forward: float
    backward: float
    valid: bool

    def carries_tcp(self) -> bool:
        """True if both flows are within tolerance of the ideal and the run is not ``invalid``."""
        flows = (self.forward, self.backward)
        return self.valid and all(abs(flow / IDEAL_THROUGHPUT - 1) <= TOLERANCE for flow in flows)

    def time_excess(self) -> float:
        """Returns the share by which the largest RTT exceeds the ideal with 1 ms links."""
        return (self.rtt_delayed or 0.0) / ideal_rtt(self.nodes, DELAY) - 1


def measure(folder: Path, nodes: int, kind: str, seconds: int, progress: Callable[[str], None]) -> Point:
    """Measures RTT and TCP both ways over a chain; with 1 ms links too where the kind has delay."""
    progress(f"{nodes} nodes, {kind}")
    tools = [
        Wanted(name="rtt", ping={"from": "n1", "to": f"n{nodes}", "count": 50, "interval": "20 ms"}),
        Wanted(name="forward", iperf3=capacity_search.flow("n1", f"n{nodes}", seconds)),
        Wanted(name="backward", iperf3=capacity_search.flow(f"n{nodes}", "n1", seconds)),
    ]
    plain = _run(folder, f"{kind}-{nodes:03}", kind, nodes, {}, tools)
    delayed = None
    if kind != "native":
        delayed = _run(folder, f"{kind}-{nodes:03}-delayed", kind, nodes, {"delay": "1 ms"}, tools[:1])
    return Point(
        nodes,
        capacity_search.value(plain, "rtt", RTT),
        capacity_search.value(delayed, "rtt", RTT) if delayed else None,
        capacity_search.steady(plain, "forward"),
        capacity_search.steady(plain, "backward"),
        capacity_search.believable((plain, delayed)),
    )


def _run(
    folder: Path, name: str, kind: str, nodes: int, link: dict[str, Any], tools: list[Wanted]
) -> RunReader:
    scenario = Scenario(
        name=f"net-wired-chain-{name}",
        kind=kind,
        topology=builders.chain(nodes, rate="100 Mbit/s", queue={"packets": 200}, **link),
        measurements=tools,
    )
    return capacity_search.point(folder, name, scenario)
