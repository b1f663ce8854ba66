"""Fabricated runs for tests of results and reports; no value was measured."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from airloom.results import (
    Claim,
    Details,
    LatenessMicros,
    Ledger,
    Measurement,
    RunWriter,
    SweepWriter,
    Verdict,
)
from airloom.results.details import Bin, Happening, NodeUse, ProgramEnd, Topology, Vertex, Wire

SCENARIO = """\
name: fabricated-chain
description: Invented figures for tests; nothing was measured.
topology:
  generator: chain
  nodes: {nodes}
  link: {{rate: 100 Mbit/s, delay: 1 ms}}
measurements:
  - name: rtt
    ping: {{from: n1, to: n{nodes}, count: 200, interval: 50 ms}}
  - name: goodput
    iperf3: {{from: n1, to: n{nodes}, duration: 10 s}}
"""

DEGRADED = Verdict(
    status="degraded",
    reasons=(
        "the engine delivered frames late: one of 100 by more than 1.62 ms (limit 1 ms); worst at 3.2 s "
        "towards n4:eth0 by 11.3 ms",
    ),
    codes=("delivery.late",),
    notes=("super-frames are carried whole on link n1-n2: the timing of a segment is off by up to 5.3 ms",),
)


def chain(nodes: int) -> Topology:
    """Returns a chain of routers between two hosts."""
    names = [f"n{number}" for number in range(1, nodes + 1)]
    return Topology(
        vertices=tuple(
            Vertex(name=name, kind="host" if name in (names[0], names[-1]) else "router") for name in names
        ),
        wires=tuple(
            Wire(name=f"{a}-{b}", a=a, b=b, rate_bit_s=100_000_000, delay_ns=1_000_000)
            for a, b in itertools.pairwise(names)
        ),
    )


def details(nodes: int) -> Details:
    """Returns details as of a run of a chain."""
    edges = np.geomspace(1_000, 20_000_000, 36).astype(int)
    counts = (40_000 * np.exp(-((np.log10(edges[:-1]) - 4.5) ** 2) / 0.25)).astype(int)
    links = {
        f"n{number}-n{number + 1}": {
            "forward": {
                "left": 84_000,
                "queue_highest": 200,
                "marked": 3,
                "dropped": {"queue-full": 37 if number == 1 else 0},
            },
            "backward": {"left": 42_011, "dropped": {}},
        }
        for number in range(1, nodes)
    }
    return Details(
        versions={"airloom": "0.1.0", "python": "3.11.2", "iperf3": "3.12", "kernel": "6.18.0"},
        machine={"processor": "invented", "processors": 2, "memory_octets": 25_769_803_776},
        limits={
            "lateness, 99 %": "1 ms",
            "lateness, largest": "20 ms",
            "CPU pressure": "20 %",
            "steal": "5 %",
        },
        engine={
            "offered": 126_060,
            "copies": 0,
            "delivered": 126_011,
            "in_flight": 0,
            "dropped": {"queue-full": 37, "random-loss": 12},
            "links": links,
        },
        lateness=tuple(
            Bin(from_ns=int(a), to_ns=int(b), count=int(n))
            for a, b, n in zip(edges, edges[1:], counts, strict=False)
        ),
        nodes=tuple(
            NodeUse(
                node=f"n{number}",
                user_s=0.8 if number in (1, nodes) else 0.01 * number,
                system_s=1.9 if number in (1, nodes) else 0.4,
                wait_s=0.05 * number,
            )
            for number in range(1, nodes + 1)
        ),
        programs=(
            ProgramEnd(node="n1", name="ping", command=f"ping -c 200 -i 0.05 n{nodes}", exit=0),
            ProgramEnd(node="n1", name="iperf3", command=f"iperf3 -c n{nodes} -t 10 -J", exit=0),
            ProgramEnd(node=f"n{nodes}", name="server", command="iperf3 -s", signal="SIGTERM"),
            ProgramEnd(node="n2", name="babeld", command="babeld eth0 eth1", exit=1, expected=False),
        ),
        happenings=(Happening(t_ns=4_000_000_000, what="link n1-n2 down"),),
        topology=chain(nodes),
    )


def fill(
    writer: RunWriter, nodes: int, *, packets: int = 20_000, seed: int = 1, only: Collection[str] = ()
) -> None:
    """Records values as of ping, iperf3 and the traffic generator; ``only``: of these measurements."""

    def record(measurement: str, *columns: Any, **node: str) -> None:
        if not only or measurement in only:
            writer.record(measurement, *columns, **node)

    random = np.random.default_rng(seed)
    second = 1_000_000_000
    ideal = 2_000_000.0 * (nodes - 1)
    rtt = ideal + 90_000 + random.gamma(2.0, 20_000.0, 200)
    record("rtt", "rtt", "ns", np.arange(200) * 50_000_000, rtt, node="n1")
    t = np.arange(100) * (second // 10)
    rate = 94.9e6 * (1 - np.exp(-(t / second) / 0.15)) + random.normal(0, 3e5, 100)
    rate[40:44] *= np.array([0.55, 0.3, 0.6, 0.9])
    record("goodput", "throughput", "bit/s", t, np.maximum(rate, 0), node=f"n{nodes}")
    at = np.sort(random.integers(0, 10 * second, packets))
    wave = np.sin(at / second) * 30_000
    delay = ideal / 2 + 45_000 + wave + random.gamma(1.5, 18_000.0, packets)
    record("flow", "delay", "ns", at, delay, node=f"n{nodes}")
    record("flow", "jitter_rfc3550", "ns", t, 20_000 + random.gamma(2, 3_000.0, 100), node=f"n{nodes}")
    record("flow", "loss", "1", t, (random.random(100) < 0.06) * 0.01, node=f"n{nodes}")
    beat = np.arange(50) * (second // 5)
    record("host", "cpu_pressure", "1", beat, random.beta(2, 14, 50))
    record("host", "steal", "1", beat, random.beta(1, 90, 50))
    record("engine", "busy", "1", beat, 0.35 + random.normal(0, 0.03, 50))
    measured = (
        Measurement(name="rtt", metric="rtt_min", unit="ns", mean=float(rtt.min()), n=200),
        Measurement(
            name="rtt",
            metric="rtt_avg",
            unit="ns",
            mean=float(rtt.mean()),
            ci95=float(1.97 * rtt.std(ddof=1) / 200**0.5),
            n=200,
        ),
        Measurement(name="rtt", metric="rtt_max", unit="ns", mean=float(rtt.max()), n=200),
        Measurement(name="rtt", metric="loss", unit="1", mean=0.0, n=200),
        Measurement(
            name="goodput", metric="throughput", unit="bit/s", mean=float(rate[5:].mean()), ci95=4.1e5, n=95
        ),
        Measurement(name="goodput", metric="retransmits", unit="packets", mean=37.0),
        Measurement(name="flow", metric="delay_p50", unit="ns", mean=float(np.median(delay)), n=packets),
        Measurement(
            name="flow", metric="delay_p99", unit="ns", mean=float(np.quantile(delay, 0.99)), n=packets
        ),
        Measurement(name="flow", metric="jitter_rfc3550", unit="ns", mean=26_000.0, n=packets),
        Measurement(name="flow", metric="loss", unit="1", mean=0.0006, n=packets),
    )
    writer.measured(*(one for one in measured if not only or one.name in only))


LEDGER = Ledger(
    delivered=126_011,
    dropped={"queue-full": 37, "random-loss": 12},
    lateness_us=LatenessMicros(p50=31.6, p99=412.0, p999=1620.0, max=11_300.0),
)

CLAIMS = (
    Claim(
        id="net-tcp",
        statement="One TCP flow keeps the rate of the links",
        source="NET, figure 5",
        expected="goodput.throughput >= 94 Mbit/s",
        measured="goodput.throughput = 94.1 Mbit/s",
        outcome="holds",
        why="94.1 Mbit/s is 100 kbit/s above 94 Mbit/s",
    ),
    Claim(
        id="net-rtt",
        statement="The largest round-trip time stays within 2 % of the ideal",
        source="NET, figure 4",
        expected="rtt.rtt_max <= ideal * 1.02",
        measured="rtt.rtt_max = 6.31 ms, ideal = 6 ms",
        outcome="fails",
        why="6.31 ms is 190 us above 6.12 ms",
    ),
)


def run(
    folder: Path,
    *,
    nodes: int = 4,
    verdict: Verdict = DEGRADED,
    packets: int = 20_000,
    seed: int = 1,
    only: Collection[str] = (),
) -> Path:
    """Returns a finished run of a chain; ``only``: with these measurements, to draw fewer figures."""
    with RunWriter(
        folder,
        scenario="fabricated-chain",
        seed=seed,
        kinds=["netns"],
        scenario_text=SCENARIO.format(nodes=nodes),
    ) as writer:
        fill(writer, nodes, packets=packets, seed=seed, only=only)
        for name, lines in (("ping", 200), ("iperf3", 3)):
            text = "".join(
                f"64 octets from n{nodes}: icmp_seq={line} \x1b[1mok\x1b[0m <&>\n" for line in range(lines)
            )
            writer.log_path("n1", name).write_text(text)
        writer.finish(verdict, LEDGER, claims=CLAIMS, details=details(nodes))
    _at_a_fixed_time(folder)
    return folder


def _at_a_fixed_time(folder: Path) -> None:
    path = folder / "result.json"
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"started": "2026-01-02T03:04:05.678Z", "wall_seconds": 12.5}))


def sweep(folder: Path, *, values: tuple[int, ...] = (2, 3, 5, 8, 13, 20), repetitions: int = 3) -> Path:
    """Returns a finished sweep over the length of a chain."""
    writer = SweepWriter(
        folder,
        scenario="fabricated-chain",
        seed=1,
        sweep={"topology.nodes": values},
        repetitions=repetitions,
        scenario_text=SCENARIO.format(nodes=4),
    )
    for number, point in enumerate(writer.unfinished()):
        nodes = point.values["topology.nodes"]
        with writer.run(point, kinds=["netns"], seed=number) as one:
            fill(one, nodes, packets=200, seed=number)
            verdict = DEGRADED if nodes == 20 and point.repetition == 0 else Verdict(status="valid")
            one.finish(verdict, LEDGER, details=details(nodes))
    writer.finish(CLAIMS)
    return folder
