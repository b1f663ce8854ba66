"""The grid manager's search: 400 nodes, 50 standing reservations, and how long an answer takes.

The standing reservations share all channels by slots. One of the requests can be granted, one is
impossible at its time and has to wait for the end of others, and one is impossible at any time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from airloom.bench import BenchResult, Progress
from airloom.grid import require

STANDING = 50
TRIES = 5
BOUND_S = 2.0
HOUR = 3600
INVENTORY = """\
name: bench
medium: {propagation: {model: log-distance, exponent: 3.0, reference: 1 m, loss: 46.7 dB}}
channels: [36, 40, 44, 48, 52, 56, 60, 64, 149, 153, 157, 161]
power: 18 dBm
slots: {frame: 10}
grid: {rows: 20, columns: 20, spacing: 1 m, radios: [wlan0, wlan1]}
"""


def run(progress: Progress) -> list[BenchResult]:
    """Measures the longest of several searches of each sort."""
    require()
    from airloom.grid.admission import Answer, Ask, Held, find, nearest
    from airloom.grid.inventory import checked
    from airloom.grid.isolation import Isolation
    from airloom.scenario.source import Source

    isolation = Isolation(checked(Source.of_text(INVENTORY)))
    dice = random.Random(1)
    held: list[Held] = []
    progress(f"{STANDING} standing reservations")
    while len(held) < STANDING:
        start = dice.choice([0, 0, HOUR])
        ask = Ask(
            start, start + 2 * HOUR, f"s{len(held)}", count=dice.randint(2, 8), slots=2,
            power_dbm=dice.choice([18.0, 0.0, -40.0]),
        )  # fmt: skip
        answer = find(isolation, ask, held)
        if answer.grant is not None:
            held.append(Held(str(len(held)), ask.slice, ask.start, ask.end, answer.grant))

    def longest(search: Callable[[], Answer], status: str) -> tuple[float, bool]:
        times, right = [], True
        for _ in range(TRIES):
            begun = time.perf_counter()
            right = search().status == status and right
            times.append(time.perf_counter() - begun)
        return max(times), right

    whole = Ask(HOUR, 2 * HOUR, "new", count=20, power_dbm=18.0)
    every = Ask(HOUR, 2 * HOUR, "new", count=400, radios=2, channel_count=12, power_dbm=18.0)
    far = 24 * HOUR
    searches: dict[str, tuple[Callable[[], Answer], str]] = {
        "eight nodes with a slot: granted": (
            lambda: find(isolation, Ask(HOUR, 2 * HOUR, "new", count=8, slots=1), held),
            "granted",
        ),
        "twenty nodes with a whole channel: proven impossible": (
            lambda: find(isolation, whole, held),
            "impossible",
        ),
        "... the nearest possible time": (lambda: nearest(isolation, whole, held, 0, far)[1], "granted"),
        "the whole testbed within three hours: proven impossible": (
            lambda: nearest(isolation, every, held, 0, HOUR)[1],
            "impossible",
        ),
    }
    results = []
    for name, (search, status) in searches.items():
        progress(name)
        took, right = longest(search, status)
        results.append(
            BenchResult(
                name, "s", took, "the bound", BOUND_S, took / BOUND_S, "answers in less than 2 s",
                right and took < BOUND_S,
            )
        )  # fmt: skip
    return results
