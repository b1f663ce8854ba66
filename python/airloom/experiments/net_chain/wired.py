"""NET's wired chain: routers, 100 Mbit/s full duplex, static routes; its runs and their ideal."""

from __future__ import annotations

from typing import Any

from airloom.experiments import capacity_search
from airloom.experiments.campaign import Case
from airloom.experiments.found import Figures, Sample
from airloom.experiments.net_chain import kinds
from airloom.experiments.net_chain.kinds import Series
from airloom.experiments.polling import POLLING
from airloom.results import RunReader
from airloom.scenario.model import Measurement as Wanted
from airloom.scenario.model import Scenario
from airloom.scenario.topology import builders

RATE = 100_000_000
"""Rate of NET's links in bit/s."""
SEGMENT, SEGMENT_ON_WIRE = 1448, 1538
ECHO_ON_WIRE = 122
"""Octets of an echo with 56 octets of data: 98 in the frame, 4 check sequence, 8 preamble, 12 gap."""
RTT = "rtt_max"
DELAY = 1_000_000
"""Propagation delay of each link in ns, in the second measurement of RTT."""
LARGEST, DELAYED, SHARE = "rtt.rtt_max", "rtt-delayed.rtt_max", "rtt-delayed.share"
"""Figures: largest RTT, the same with delay, and that as a share of its ideal."""
IDEAL_THROUGHPUT = RATE * SEGMENT / SEGMENT_ON_WIRE


def ideal_rtt(nodes: int, delay: int) -> float:
    """Returns the RTT of an echo over a chain in ns: serialization and propagation, both ways."""
    return 2 * (nodes - 1) * (ECHO_ON_WIRE * 8e9 / RATE + delay)


def case(nodes: int, kind: str, seconds: int) -> Case:
    """Returns the chain that measures RTT, then TCP both ways."""
    tools = [
        *_echoes(nodes),
        Wanted(name="forward", iperf3=capacity_search.flow("n1", f"n{nodes}", seconds)),
        Wanted(name="backward", iperf3=capacity_search.flow(f"n{nodes}", "n1", seconds)),
    ]
    return _case(f"{kind}-{nodes:03}", nodes, kind, {}, tools, 1 + 2 * seconds)


def delayed(nodes: int, kind: str) -> Case:
    """Returns the chain with 1 ms on each link, which measures RTT; not of kind ``native``."""
    return _case(f"{kind}-{nodes:03}-delayed", nodes, kind, {"delay": "1 ms"}, _echoes(nodes), 1)


def read(_: Case, reader: RunReader) -> Figures:
    """Returns the figures of :func:`case`."""
    return {LARGEST: (capacity_search.value(reader, "rtt", RTT), "ns"), **kinds.tcp_figures(reader)}


def read_delayed(of: Case, reader: RunReader) -> Figures:
    """Returns the figures of :func:`delayed`."""
    largest = capacity_search.value(reader, "rtt", RTT)
    return {DELAYED: (largest, "ns"), SHARE: (largest / ideal_rtt(of.labels["nodes"], DELAY), "1")}


def growth(series: Series, name: str, delay: int) -> tuple[dict[str, Sample | None], float]:
    """Returns how a round-trip time grows from the shortest to the longest chain with a valid run.

    The measured times of both are named ``first`` and ``last``, for claims. The second value is what
    the ideal adds between them in ms, with ``delay`` ns on each link. With fewer than two such chains
    the times are None, and 0 is added.
    """
    if len(series.valid) < 2:
        return {"first": None, "last": None}, 0.0
    short, long = series.valid[0], series.valid[-1]
    ends = {"first": series.sample(name, short), "last": series.sample(name, long)}
    return ends, (ideal_rtt(long, delay) - ideal_rtt(short, delay)) / 1e6


def _echoes(nodes: int) -> list[Wanted]:
    """Returns a first echo, which waits for ARP on every link, as the ideal excludes, and 50 after it.

    On long chains the first echo waits for several intervals of the others; these would wait with it.
    """
    ends = {"from": "n1", "to": f"n{nodes}"}
    return [
        Wanted(name="arp", ping={**ends, "count": 1}),
        Wanted(name="rtt", ping={**ends, "count": 50, "interval": "20 ms"}),
    ]


def _case(
    name: str, nodes: int, kind: str, link: dict[str, Any], tools: list[Wanted], seconds: float
) -> Case:
    scenario = Scenario(
        name=f"net-wired-chain-{name}",
        kind=kind,
        engine=POLLING,
        topology=builders.chain(nodes, rate="100 Mbit/s", queue={"packets": 200}, **link),
        measurements=tools,
    )
    return Case(name, {"kind": kind, "nodes": nodes}, scenario, seconds)
