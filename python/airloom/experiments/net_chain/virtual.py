"""NET's chains in virtual time: runs, figures and ideals.

The links are those of :mod:`~airloom.experiments.net_chain.wired` and of the ideal radio of
:mod:`~airloom.experiments.net_chain.wireless`. Each node is a guest of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airloom.errors import RunError
from airloom.experiments import capacity_search
from airloom.experiments.campaign import Case
from airloom.experiments.found import Bounded, Figures, Found
from airloom.experiments.net_chain import ideal, wired
from airloom.experiments.net_chain.kinds import FORWARD, bounded
from airloom.experiments.net_chain.wireless import Chain
from airloom.results import RunReader
from airloom.scenario.model import Engine, Scenario
from airloom.scenario.model import Measurement as Wanted
from airloom.scenario.model.base import BUILT
from airloom.scenario.topology import builders
from airloom.units.figures import Quantity

SHARE, LARGEST, FIRST = "forward.share", "rtt.rtt_max", "first.rtt_max"
"""Figures: TCP as a share of its ideal; largest RTT with known routes; RTT of the first echo."""
ABOVE, SEARCHED = "rtt.above", "first.above"
"""How far these two are above their ideals, in ns."""
PRICE, EACH = "run.price", "run.frame"
"""Wall seconds for a virtual second; wall time in ns for a frame that a link delivered."""
WIRED, AODV, BABEL = "wired", "aodv", "babel"
"""The three chains: static routes; the ideal radio with AODV that forwards in user space; with Babel."""
LABELS = {WIRED: "wired", AODV: "ad hoc, AODV", BABEL: "ad hoc, Babel"}
IDEAL = {WIRED: wired.IDEAL_THROUGHPUT, AODV: ideal.THROUGHPUT, BABEL: ideal.THROUGHPUT}
"""TCP throughput of each chain in bit/s."""
LENGTH = {WIRED: 250, AODV: 500, BABEL: 500}
"""Length of the TCP flow in ms: each of its frames costs the machine the same time on every link."""

SETTLING = 100_000_000
"""Time in ns after the first arrival that TCP has to fill the path: seven round trips of 100 nodes."""


@dataclass(frozen=True, slots=True)
class Series:
    """The lengths of one chain."""

    chain: str
    lengths: tuple[int, ...]
    found: Found

    def value(self, name: str, nodes: int) -> Quantity | None:
        """Returns a figure of a length; None if no run gave it.

        It has no interval: another run of the same seed has the same value.
        """
        sample = self.found.sample(name, chain=self.chain, nodes=nodes)
        return None if sample is None or not sample.valid else sample.judged()[0]

    def by_length(self, name: str) -> dict[str, Quantity | None]:
        """Returns a figure of every length, under its name in a claim: ``n13``."""
        return {f"n{nodes}": self.value(name, nodes) for nodes in self.lengths}

    def longest(self, tolerance: float) -> Bounded | None:
        """Returns the length up to which TCP is within a tolerance of its ideal; None unmeasured."""
        shares = {nodes: self.value(SHARE, nodes) for nodes in self.lengths}
        if not any(shares.values()):
            return None
        return bounded(
            {nodes: one is not None and abs(one.value - 1) <= tolerance for nodes, one in shares.items()}
        )


def case(chain: str, nodes: int) -> Case:
    """Returns a chain that measures round-trip times, then TCP from its first node to its last."""
    last = f"n{nodes}"
    tools = [
        # The first echo waits for ARP on every link, and for routes if they are searched on demand.
        Wanted(name="first", ping={"from": "n1", "to": last, "count": 1}),
        Wanted(name="rtt", ping={"from": "n1", "to": last, "count": 20, "interval": "20 ms"}),
        Wanted(
            name="forward",
            traffic={
                "from": "n1",
                "to": last,
                "protocol": "tcp",
                "size": f"{wired.SEGMENT} B",
                "duration": f"{LENGTH[chain]} ms",
            },
        ),
    ]
    if chain == WIRED:
        described: dict[str, Any] = {
            "topology": builders.chain(nodes, rate=f"{wired.RATE} bit/s", queue={"packets": 200})
        }
        ready = 0.0
    else:
        one = Chain("ideal", "aodv" if chain == AODV else "babel", nodes, "uml")
        described = {
            key: value for key, value in one.scenario(tools) if key not in ("name", "time", "engine", "guest")
        }
        ready = one.ready_after
    described |= {"name": f"net-virtual-time-{chain}-{nodes:03}", "time": "virtual", "engine": Engine()}
    scenario = Scenario(**{**described, "guest": {"kernel": BUILT}, "measurements": tools})
    return Case(f"{chain}-{nodes:03}", {"chain": chain, "nodes": nodes}, scenario, ready + 3)


def ideal_rtt(chain: str, nodes: int) -> float:
    """Returns the RTT of an echo over a chain with known routes in ns."""
    if chain == WIRED:
        return wired.ideal_rtt(nodes, 0)
    return (nodes - 1) * 2 * ideal.ECHO * 8e9 / ideal.RATE


def ideal_first(chain: str, nodes: int) -> float | None:
    """Returns the RTT of the first echo with AODV's search in ns; None for other chains."""
    return ideal.first_rtt(nodes - 1) if chain == AODV else None


def read(of: Case, reader: RunReader) -> Figures:
    """Returns the figures of :func:`case`."""
    chain, nodes = of.labels["chain"], of.labels["nodes"]
    largest = capacity_search.value(reader, "rtt", "rtt_max")
    throughput = _settled(reader)
    result = reader.result
    found = {
        FORWARD: (throughput, "bit/s"),
        SHARE: (throughput / IDEAL[chain], "1"),
        LARGEST: (largest, "ns"),
        ABOVE: (largest - ideal_rtt(chain, nodes), "ns"),
        EACH: (result.wall_seconds * 1e9 / result.ledger.delivered, "ns"),
    }
    if result.virtual_seconds:
        found[PRICE] = (result.wall_seconds / result.virtual_seconds, "1")
    if (searched := ideal_first(chain, nodes)) is not None:
        first = capacity_search.value(reader, "first", "rtt_max")
        found |= {FIRST: (first, "ns"), SEARCHED: (first - searched, "ns")}
    return found


def _settled(reader: RunReader) -> float:
    """Returns the throughput of the flow in bit/s from the end of its start-up on."""
    arrivals = reader.samples("forward", "delay").t_ns
    arrivals = arrivals[arrivals >= arrivals.min() + SETTLING]
    if len(arrivals) < 2:
        raise RunError("experiment.unmeasured", "forward lasted too short", where=str(reader.folder))
    return float((len(arrivals) - 1) * wired.SEGMENT * 8e9 / (arrivals.max() - arrivals.min()))
