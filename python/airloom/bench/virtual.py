"""Virtual time: how exact it is, and what it costs.

Exactness is compared with arithmetic, which has no error: a frame of S octets takes
``(S + 24) * 8 / R`` on a link of rate R (preamble, check sequence and gap) and then its delay.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import airloom
from airloom.bench import BenchResult, Progress
from airloom.nodes.kinds.uml import kernel_of, require_virtual_time
from airloom.runs.progress import Watcher
from airloom.runs.single import OneRun
from airloom.scenario.model import Scenario
from airloom.scenario.model.base import BUILT

RATE, DELAY = 10e6, 0.01
"""Of each link: bit/s, and seconds."""
GUESTS = (1, 2, 10)
TRIPS = 20
FRAME = 98 + 24
"""Octets that a ping's frame takes on a link."""
IDLE = (10, 1010)
"""Lengths of two runs without traffic, in s: their difference has no boot in it."""
FLOW = (2, 12)
"""Lengths of two UDP flows, in s."""
READING = 2e-6
"""What reading the clock may add to a round trip, in s: 256 ns each time."""
IDLE_PROMISE, FLOW_PROMISE, MESSAGES_PROMISE, TCP_PROMISE = 10_000, 10, 0.7, 3.0


class _Counting(Watcher):
    """Keeps the calendar's counters at the end of a run."""

    counts: dict[str, int]

    def up(self, run: OneRun) -> None:
        self._run = run

    def down(self) -> None:
        pacer = self._run.world.pacer
        assert pacer is not None
        self.counts = pacer.counts()


class _Done:
    """One run: its wall seconds, result, and counters."""

    def __init__(self, **parts: Any) -> None:
        scenario = Scenario(name="bench-virtual", time="virtual", guest={"kernel": BUILT}, **parts)
        watcher = _Counting()
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            result = airloom.run(scenario, out=Path(folder) / "out", watcher=watcher)
            self.wall = time.monotonic() - begun
            self.figures = {f"{one.name}.{one.metric}": one.mean or 0.0 for one in result.result.measurements}
            self.trips = [
                float(trip) / 1000
                for path in sorted((Path(folder) / "out").glob("measurements/*/client.out"))
                for trip in re.findall(r"time=([\d.]+)", path.read_text())[1:]
            ]
            self.delivered = result.result.ledger.delivered
        self.counts = watcher.counts


def run(progress: Progress) -> list[BenchResult]:
    """Measures round trips, a flow, idle time and TCP."""
    require_virtual_time(kernel_of(BUILT))
    results = []
    for count in GUESTS:
        progress(f"round trips with {count} guests")
        results.append(_round_trips(count))
    progress("idle")
    short, long = (_Done(**_pair(), duration=f"{length} s") for length in IDLE)
    ratio = (IDLE[1] - IDLE[0]) / max(1e-3, long.wall - short.wall)
    results.append(_ratio("idle, two guests", ratio, IDLE_PROMISE))
    progress("UDP at 10 Mbit/s")
    results += _flow()
    progress("TCP")
    results.append(_tcp())
    return results


def _pair() -> dict[str, Any]:
    return {"nodes": {"h1": {}, "h2": {}}, "links": [_link("h1", "h2")]}


def _link(one: str, other: str) -> dict[str, Any]:
    return {"ends": [one, other], "rate": f"{RATE:.0f} bit/s", "delay": f"{DELAY} s"}


def _round_trips(guests: int) -> BenchResult:
    """Pairs of nodes over two links and a switch; with one guest both nodes of the pair are inside it."""
    pairs = max(1, guests // 2)
    names = [f"n{number}" for number in range(2 * pairs)]
    parts: dict[str, Any] = {
        "nodes": {name: {"inside": "all"} if guests == 1 else {} for name in names},
        "switches": {"s": {}},
        "links": [_link(name, "s") for name in names],
        "measurements": [
            {"name": f"rtt{number}", "ping": {"from": one, "to": other, "count": TRIPS, "interval": "200 ms"}}
            for number, (one, other) in enumerate(zip(names[::2], names[1::2], strict=True))
        ],
    }
    if guests == 1:
        parts |= {"kind": "uml", "guests": {"all": {}}}
    done = _Done(**parts)
    exact = 4 * (FRAME * 8 / RATE + DELAY)
    # ping prints three digits.
    deviation = max(abs(trip - exact) for trip in done.trips)
    return BenchResult(
        f"virtual time: largest deviation of a round trip over two links of 10 ms, {guests} guests",
        "s",
        deviation,
        peer="arithmetic",
        peer_value=exact,
        ratio=deviation / exact,
        promise="at most what ping's own clock readings take, 2 us, and its last digit",
        holds=deviation <= READING + _digit(exact),
    )


def _digit(trip: float) -> float:
    """Half of the last digit that ping prints of a round trip in s: it has three in ms."""
    return 0.5e-3 * 10.0 ** -max(0, 3 - len(str(int(trip * 1000))))


def _flow() -> list[BenchResult]:
    short, long = (
        _Done(
            **_pair(),
            measurements=[
                {
                    "name": "flow",
                    "traffic": {
                        "from": "h1",
                        "to": "h2",
                        "rate": "9.5 Mbit/s",
                        "size": "1250 B",
                        "duration": f"{length} s",
                    },
                }
            ],
        )
        for length in FLOW
    )
    ratio = (FLOW[1] - FLOW[0]) / max(1e-3, long.wall - short.wall)
    frames = long.delivered - short.delivered
    messages = sum(long.counts[name] - short.counts[name] for name in ("messages", "kicks", "calls")) / frames
    return [
        _ratio("UDP at 9.5 Mbit/s between two guests", ratio, FLOW_PROMISE),
        BenchResult(
            "virtual time: messages between calendar and guests for each delivered frame",
            "1",
            messages,
            promise=f"at most {MESSAGES_PROMISE}",
            holds=messages <= MESSAGES_PROMISE,
        ),
        BenchResult(
            "virtual time: rate of the UDP flow, deviation",
            "1",
            abs(long.figures["flow.throughput"] / 9.5e6 - 1),
            peer="arithmetic",
            promise="at most 0.1 %",
            holds=abs(long.figures["flow.throughput"] / 9.5e6 - 1) <= 1e-3,
        ),
    ]


def _tcp() -> BenchResult:
    flow = {"name": "tcp", "iperf3": {"from": "h1", "to": "h2", "duration": "10 s", "congestion": "cubic"}}
    done = _Done(**_pair(), measurements=[flow])
    return BenchResult(
        "virtual time: iperf3 by TCP over 10 Mbit/s for 10 s, with the start of its guests",
        "s",
        done.wall,
        promise=f"at most {TCP_PROMISE:.0f} s",
        holds=done.wall <= TCP_PROMISE,
    )


def _ratio(what: str, value: float, promise: float) -> BenchResult:
    return BenchResult(
        f"virtual time: virtual seconds a wall second, {what}",
        "1",
        value,
        promise=f"at least {promise:,}",
        holds=value >= promise,
    )
