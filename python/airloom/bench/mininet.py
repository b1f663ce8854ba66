"""Comparison with Mininet and Linux bridges: a row of 100 switches, TCP over many, memory a host.

Both run the same script on Mininet's API (``on_mininet.py``), one after the other.
"""

from __future__ import annotations

import statistics

from airloom.bench import BenchResult, Progress
from airloom.bench.peers.installed_mininet import on_airloom, on_mininet, required

HOSTS = 100
TIME_SHARE, MEMORY_SHARE = 0.2, 0.5
"""Maximum time and memory relative to Mininet's."""
SWITCHES = ((16, 1.1), (64, 3.0))
"""Number of switches in a row, and the promised multiple of Mininet's throughput."""
SECONDS = 4
ROUNDS = 3
PEER = "Mininet with Linux bridges"


def run(progress: Progress) -> list[BenchResult]:
    """Measures both sides alternately; medians of three."""
    required()
    ups: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for number in range(ROUNDS):
        progress(f"{HOSTS} hosts and switches in a row, round {number + 1} of {ROUNDS}")
        ups["ours"].append(on_airloom("standing", HOSTS))
        ups["theirs"].append(on_mininet("standing", HOSTS))
    if not all(one["answered"] for side in ups.values() for one in side):
        raise RuntimeError("the last host of the row did not answer")

    def median(side: str, *words: str) -> float:
        return statistics.median(sum(one[word] for word in words) for one in ups[side])

    ours, theirs = median("ours", "up", "down"), median("theirs", "up", "down")
    light, heavy = median("ours", "octets_a_host"), median("theirs", "octets_a_host")
    # The kernel's reclaim of other memory meanwhile can make a difference negative: it tells nothing then.
    measured = min(light, heavy) > 0
    results = [
        BenchResult(
            f"linear,{HOSTS} built, started and stopped", "s", ours, PEER, theirs, ours / theirs,
            "at most a fifth of it", ours <= TIME_SHARE * theirs,
        ),
        BenchResult(
            f"memory a host, of {HOSTS}, with its switch", "B", light, PEER, heavy,
            light / heavy if measured else None,
            "at most half of it" if measured else None, light <= MEMORY_SHARE * heavy if measured else None,
        ),
    ]  # fmt: skip
    for switches, least in SWITCHES:
        rates: dict[str, list[float]] = {"ours": [], "theirs": []}
        for number in range(ROUNDS):
            progress(f"TCP over {switches} switches, round {number + 1} of {ROUNDS}")
            rates["ours"].append(on_airloom("tcp", switches, SECONDS)["bits_a_second"])
            rates["theirs"].append(on_mininet("tcp", switches, SECONDS)["bits_a_second"])
        fast, slow = statistics.median(rates["ours"]), statistics.median(rates["theirs"])
        results.append(
            BenchResult(
                f"TCP over {switches} switches", "bit/s", fast, PEER, slow, fast / slow,
                f"at least {least:g} times it", fast >= least * slow,
            )
        )  # fmt: skip
    return results
