"""TCP over many router hops of 100 Mbit/s, and its cost relative to the kernel's own links."""

from __future__ import annotations

from airloom.bench import BenchResult, Progress
from airloom.bench.labs import busy_seconds, chain, tcp, up
from airloom.scenario.model import Scenario

SECONDS = 10
LEAST = 94e6


def run(progress: Progress) -> list[BenchResult]:
    """20 hops with every segment timed, 50 with whole super-segments; beside kernel chains."""
    results = []
    for hops, segments in ((20, "timed"), (50, "carried")):
        progress(f"{hops} hops, segments {segments}")
        ours, ours_cost = _measure(chain(hops + 1, rate="100 Mbit/s", segments=segments))
        progress(f"{hops} hops of veth pairs and HTB")
        kernel, kernel_cost = _measure(chain(hops + 1, "native", rate="100 Mbit/s"))
        what = f"{hops} hops of 100 Mbit/s, segments {segments}"
        results += [
            BenchResult(
                f"TCP goodput over {what}", "bit/s", ours, "veth pairs and HTB", kernel, ours / kernel,
                "at least 94 Mbit/s", ours >= LEAST,
            ),
            BenchResult(
                f"processors busy with {what}", "1", ours_cost, "veth pairs and HTB", kernel_cost,
                ours_cost / kernel_cost,
            ),
        ]  # fmt: skip
    return results


def _measure(scenario: Scenario) -> tuple[float, float]:
    """Returns goodput in bit/s, and the number of busy processors of the machine meanwhile."""
    with up(scenario) as lab:
        nodes = lab.nodes
        before = busy_seconds()
        goodput = tcp(lab, nodes[0], nodes[-1], SECONDS)
        return goodput, (busy_seconds() - before) / SECONDS
