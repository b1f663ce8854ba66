"""Maximum throughput of one flow: over one link, over sixteen switches, in small frames."""

from __future__ import annotations

from airloom.bench import BenchResult, Progress
from airloom.bench.labs import alternating, flood, pair, tcp, up

SECONDS = 4
ROUNDS = 3


def run(progress: Progress) -> list[BenchResult]:
    """Measures each side alternately with its peer; medians and their ratio."""
    with up(pair("native")) as native, up(pair("netns")) as one_link:
        progress("TCP over one unshaped link and over a bare veth pair")
        link, veth = alternating(
            ROUNDS, lambda: tcp(one_link, "h1", "h2", SECONDS), lambda: tcp(native, "h1", "h2", SECONDS)
        )
        progress("64-octet UDP frames over both")
        small, small_veth = alternating(
            ROUNDS,
            lambda: flood(one_link, "h1", "h2", 64, SECONDS),
            lambda: flood(native, "h1", "h2", 64, SECONDS),
        )
    with up(pair(switches=1)) as single, up(pair(switches=16)) as row:
        progress("TCP over 1 and 16 engine switches")
        sixteen, one = alternating(
            ROUNDS, lambda: tcp(row, "h1", "h2", SECONDS), lambda: tcp(single, "h1", "h2", SECONDS)
        )
    return [
        _beside("TCP over one unshaped link", "bit/s", link, "a bare veth pair", veth, 0.7),
        _beside("TCP over 16 engine switches", "bit/s", sixteen, "one engine switch", one, 0.9),
        _beside("64-octet UDP frames received", "packets/s", small, "a bare veth pair", small_veth, 0.7),
    ]


def _beside(metric: str, unit: str, value: float, peer: str, peer_value: float, least: float) -> BenchResult:
    ratio = value / peer_value
    return BenchResult(
        metric, unit, value, peer, peer_value, ratio, f"at least {least:g} of it", ratio >= least
    )
