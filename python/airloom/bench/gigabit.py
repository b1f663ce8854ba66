"""TCP at 1 and 10 Gbit/s with every segment timed, and its cost relative to the kernel's own links."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass
from typing import Any

from airloom import _engine
from airloom.bench import BenchResult, Progress
from airloom.bench.labs import busy_seconds, chain, engine_seconds, pair, tcp, up
from airloom.bench.peers import installed_mininet
from airloom.lab.lab import Lab
from airloom.runs import evidence
from airloom.scenario.model import Queue, Scenario, Topology

SECONDS = 6
SEGMENT = 1448
"""TCP payload in octets of a full frame, with time stamps."""
FRAME = 1514
"""Octets of a full frame."""
HOPS = (1, 4, 16)
GIGABIT = 930e6
"""Promised goodput in bit/s over links of 1 Gbit/s."""
MOST_BUSY = 0.9
"""Promised processors over the longest chain."""
SLOW_HOPS, SLOW = (20, 50), 94e6
"""Hops of 100 Mbit/s, and their promised goodput in bit/s."""
TEN_GIGABIT = 8e9
PORTS, AGGREGATE = 4, 6e9
"""Ports of a switch of the fat tree, and the promised goodput in bit/s of all its flows."""
ROUTERS = "the same with routers, which are nodes"
KERNEL = "veth pairs and HTB"
MEMORY = "the same links, stepped in memory"
WITHIN = 0.01
"""Promised agreement with the links in memory."""
BRIDGES = "Mininet with Linux bridges and HTB"


@dataclass(frozen=True, slots=True)
class Cost:
    """One measurement: goodput in bit/s, and the number of busy processors meanwhile."""

    goodput: float
    busy: float
    """Of the whole machine."""
    engine: float
    """Of the engine's thread."""
    stood_still: float
    """Largest share of the time in which a link stood still, because the engine was late."""

    def per_segment(self, hops: int) -> float:
        """Processor time in s of the engine's thread for one full segment on one hop."""
        return self.engine / (self.goodput / (8 * SEGMENT) * hops)


def run(progress: Progress) -> list[BenchResult]:
    """Measures each case beside the same with the kernel's own links."""
    results = []
    for hops in HOPS:
        results += _hops(progress, hops, 10**9, GIGABIT, MOST_BUSY if hops == HOPS[-1] else None)
    for hops in SLOW_HOPS:
        results += _hops(progress, hops, 10**8, SLOW, None)
    progress(f"10 Gbit/s over {KERNEL}")
    kernel = _flow(pair("native", **_link("10 Gbit/s")))
    for switches, way in ((0, "one link"), (1, "one switch")):
        progress(f"10 Gbit/s over {way}")
        ours = _flow(pair(switches=switches, **_link("10 Gbit/s")))
        results += _beside(f"{way} of 10 Gbit/s", switches + 1, ours, kernel, TEN_GIGABIT, None)
    return results + _fat_tree(progress)


def _hops(
    progress: Progress, hops: int, bits: int, least: float, most_busy: float | None
) -> list[BenchResult]:
    rate = "1 Gbit/s" if bits == 10**9 else f"{bits // 10**6} Mbit/s"
    what = f"{hops} hops of {rate}" if hops > 1 else f"1 hop of {rate}"
    progress(what)
    ours = _flow(chain(hops + 1, packets=1000, rate=rate))
    progress(f"{what}: {KERNEL}")
    kernel = _flow(chain(hops + 1, "native", packets=1000, rate=rate))
    memory = in_memory(hops, bits)
    ratio = ours.goodput / memory
    return [
        *_beside(what, hops, ours, kernel, least, most_busy),
        BenchResult(
            f"TCP goodput over {what}", "bit/s", ours.goodput, MEMORY, memory,
            ratio, f"within {WITHIN:.0%}", abs(ratio - 1) <= WITHIN,
        ),
    ]  # fmt: skip


def in_memory(hops: int, rate: int) -> float:
    """Returns TCP payload in bit/s of full frames that follow each other over a chain of links.

    The engine is stepped and its nodes are memory, so no host is ever late. ``rate`` is in bit/s.
    """
    engine = _engine.Engine(1)
    ends = ["first", *(f"s{number}" for number in range(1, hops)), "last"]
    for name in (ends[0], ends[-1]):
        engine.add_memory_port(name)
    for name in ends[1:-1]:
        engine.add_switch(name, "hub")
    link = {"rate": {"bits-per-second": rate}}
    for one, next_ in itertools.pairwise(ends):
        engine.connect(f"{one}-{next_}", one, next_, link, link)
    frames = 1000
    for _ in range(frames):
        engine.offer(ends[0], 0, bytes(FRAME))
    times = [at for _, at, _ in engine.step(10**10)]
    return (frames - 1) * SEGMENT * 8 / ((times[-1] - times[0]) / 1e9)


def _beside(
    what: str, hops: int, ours: Cost, kernel: Cost, least: float, most_busy: float | None
) -> list[BenchResult]:
    return [
        BenchResult(
            f"TCP goodput over {what}", "bit/s", ours.goodput, KERNEL, kernel.goodput,
            ours.goodput / kernel.goodput, f"at least {least / 1e6:g} Mbit/s", ours.goodput >= least,
        ),
        BenchResult(
            f"processors busy with {what}", "1", ours.busy, KERNEL, kernel.busy, ours.busy / kernel.busy,
            None if most_busy is None else f"less than {most_busy:g}",
            None if most_busy is None else ours.busy < most_busy,
        ),
        BenchResult(f"... in the engine's thread: {what}", "1", ours.engine),
        BenchResult(f"... for a segment and hop: {what}", "us", ours.per_segment(hops) * 1e6),
        BenchResult(f"a link stood still because the engine was late: {what}", "1", ours.stood_still),
    ]  # fmt: skip


def _link(rate: str) -> dict[str, Any]:
    return {"rate": rate, "queue": Queue(packets=1000)}


def _flow(scenario: Scenario) -> Cost:
    """Measures one flow from the first node to the last."""
    with up(scenario) as lab:
        nodes = lab.nodes
        begun, busy, engine, paused = time.monotonic(), busy_seconds(), engine_seconds(), _paused(lab)
        goodput = tcp(lab, nodes[0], nodes[-1], SECONDS)
        length = time.monotonic() - begun
        longest = max((one - paused.get(link, 0) for link, one in _paused(lab).items()), default=0)
        return Cost(
            goodput,
            (busy_seconds() - busy) / length,
            (engine_seconds() - engine) / length,
            longest / 1e9 / length,
        )


def _paused(lab: Lab) -> dict[str, int]:
    """Returns for how long each link stood still until now because the engine was late, in ns."""
    return evidence.paused(lab.ledger())


def _fat_tree(progress: Progress) -> list[BenchResult]:
    """TCP from each host of a fat tree to the next one, all at once."""
    what = f"a fat tree of {PORTS}-port switches, {PORTS**3 // 4} flows"
    shape = {"generator": "fat-tree", "k": PORTS, "link": _link("1 Gbit/s")}
    switched = {**shape, "switched": True, "switch": {"forwarding": "shortest-path"}}
    progress(what)
    ours = _permutation(Scenario(name="bench-fat-tree", topology=Topology.model_validate(switched)))
    progress(f"{what}: {ROUTERS}")
    routers = _permutation(Scenario(name="bench-fat-tree-routers", topology=Topology.model_validate(shape)))
    theirs = None
    if installed_mininet.python():
        progress(f"{what}: {BRIDGES}")
        found = installed_mininet.on_mininet("fat-tree", PORTS, 1000, SECONDS)
        theirs = float(found["bits_a_second"])
    else:
        progress(f"{what}: without Mininet, which is not installed ({installed_mininet.CURE})")
    return [
        BenchResult(
            f"TCP goodput over {what}", "bit/s", ours, BRIDGES if theirs else None, theirs,
            ours / theirs if theirs else None,
            f"at least {AGGREGATE / 1e9:g} Gbit/s", ours >= AGGREGATE,
        ),
        BenchResult(f"TCP goodput over {what}", "bit/s", ours, ROUTERS, routers, ours / routers),
    ]  # fmt: skip


def _permutation(scenario: Scenario) -> float:
    """Returns bit/s of all flows together, one from each host to the next, without the first second."""
    with up(scenario) as lab:
        hosts = [name for name in lab.nodes if name.startswith("n")]
        pairs = list(zip(hosts, hosts[1:] + hosts[:1], strict=True))
        servers = [lab[host].start(["iperf3", "-s", "-1"]) for host in hosts]
        time.sleep(1)
        words = ["-t", str(SECONDS + 1), "-O", "1", "-C", "cubic", "-J"]
        clients = [lab[source].start(["iperf3", "-c", lab.addresses[to], *words]) for source, to in pairs]
        for process in [*clients, *servers]:
            process.wait(60)
        rates = [json.loads(one.output)["end"]["sum_received"]["bits_per_second"] for one in clients]
        return float(sum(rates))
