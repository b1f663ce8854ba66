"""Capacity of each node kind: packets/s beside the native stack, and a radio's rate."""

from __future__ import annotations

import tempfile
from pathlib import Path

from airloom.bench import BenchResult, Progress
from airloom.bench.calibrate import ceiling
from airloom.bench.grid import LOSS
from airloom.bench.labs import alternating
from airloom.errors import HostError
from airloom.experiments import capacity_search, usable_kinds
from airloom.scenario.model import Scenario

REFERENCE = "native"
"""The reference of the other kinds; its nodes have no radios."""
ROUNDS = 3
SECONDS = 6
RADIO = 0.98
"""Required share of the ``netns`` throughput for the radio's flow."""
KEEP = ("uml",)
"""Kinds that promise it; software emulation of a whole machine does not."""


def run(progress: Progress) -> list[BenchResult]:
    """Measures each kind's ceiling and ratio to native, and a saturated flow at 54 Mbit/s."""
    results: list[BenchResult] = []
    base = None
    for kind in usable_kinds.every():
        if kind == REFERENCE:
            continue
        try:
            found = _of(kind, progress)
        except HostError as error:
            progress(f"{kind} is left out: {error.message}")
            continue
        own, native, radio = found
        base = radio if base is None else base
        keeps = kind in KEEP
        results += [
            BenchResult(
                f"{kind}: 64-octet frames, at most 1 % lost", "packets/s", own,
                REFERENCE, native, own / native,
            ),
            BenchResult(
                f"{kind}: a UDP flow at 54 Mbit/s, 1470 octets", "bit/s", radio, "netns", base, radio / base,
                "at least 98 %" if keeps else None, radio >= RADIO * base if keeps else None,
            ),
        ]  # fmt: skip
    return results


def _of(kind: str, progress: Progress) -> tuple[float, float, float]:
    progress(f"{kind}: a saturated radio")
    radio = goodput(kind)
    progress(f"{kind}: the ceiling, in turns with the native one")
    own, native = alternating(ROUNDS, lambda: ceiling(kind, 1), lambda: ceiling(REFERENCE, 1))
    return own, native, radio


def goodput(kind: str) -> float:
    """Returns the payload in bit/s of a saturated flow on a channel at 54 Mbit/s, two nodes."""
    radio = {"radios": {"wlan0": {"channel": 36}}}
    load = {"from": "a", "to": "b", "rate": "40 Mbit/s", "size": "1470 B", "duration": f"{SECONDS} s"}
    scenario = Scenario.model_validate(
        {
            "name": f"bench-radio-{kind}",
            "kind": kind,
            "media": {"air": {"propagation": LOSS, "radio": {"phy": "802.11a", "rate": "54 Mbit/s"}}},
            "nodes": {"a": {**radio, "position": ["0 m", "0 m"]}, "b": {**radio, "position": ["1 m", "0 m"]}},
            "measurements": [{"name": "flow", "traffic": load}],
        }
    )
    with tempfile.TemporaryDirectory(prefix="airloom-bench-") as folder:
        return capacity_search.value(
            capacity_search.point(Path(folder), "radio", scenario), "flow", "throughput_steady"
        )
