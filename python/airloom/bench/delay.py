"""Accuracy of delays: 1,000 packets/s one way over links of 0.1 to 100 ms."""

from __future__ import annotations

import numpy as np

from airloom import _engine
from airloom.bench import BenchResult, Progress
from airloom.bench.labs import flow, pair, up

DELAYS = ("100 us", "1 ms", "10 ms", "100 ms")
NANOS = (100_000, 1_000_000, 10_000_000, 100_000_000)
MEDIAN, HIGH = 60_000, 250_000
"""Limits in ns."""


def run(progress: Progress) -> list[BenchResult]:
    """Measures wall-clock errors of the one-way delay, beside a bare veth pair; in memory: 0."""
    progress("a bare veth pair")
    with up(pair("native")) as lab:
        bare = flow(lab, "h1", "h2", size="100 B", interval="1 ms", duration="3 s").delays
    results = []
    for text, nanos in zip(DELAYS, NANOS, strict=True):
        progress(text)
        with up(pair(delay=text)) as lab:
            lab["h1"].run("ping -c 2 h2", check=True)  # resolves addresses first
            errors = flow(lab, "h1", "h2", size="100 B", interval="1 ms", duration="5 s").delays - nanos
        for name, share, most in (("median", 50, MEDIAN), ("99th percentile", 99, HIGH)):
            value, peer = float(np.percentile(errors, share)), float(np.percentile(bare, share))
            results.append(
                BenchResult(
                    f"error of {text}, {name}", "ns", value, "delay of a bare veth pair", peer, value / peer,
                    f"at most {most // 1000} us", abs(value) <= most,
                )
            )  # fmt: skip
        error = _in_memory(nanos) - nanos
        results.append(
            BenchResult(f"error of {text}, engine in memory", "ns", error, promise="0", holds=error == 0)
        )
    return results


def _in_memory(delay: int) -> int:
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("a-b", "a", "b", {"delay_ns": delay}, {})
    engine.offer("a", 5_000, bytes(60))
    ((_, arrived, _),) = engine.step(5_000 + 2 * delay)
    return arrived - 5_000
