"""How soon User Mode Linux guests run their first program, and what memory they take."""

from __future__ import annotations

import contextlib
import statistics
import time
from pathlib import Path

from airloom.bench import BenchResult, Progress
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kinds.uml import kernel_of
from airloom.planning.gate import check
from airloom.runs.emulation import World
from airloom.scenario.model import Scenario, Topology

ROUNDS = 7
MANY = 20
SMALLEST = "48 MiB"
"""The smallest useful machine: with less, the host's own programs find no room in it."""
FIRST, ALL, MEMORY = 1.5, 20.0, 40e6
"""What is promised: seconds, seconds, octets."""


def run(progress: Progress) -> list[BenchResult]:
    """One guest several times, then many at once."""
    kernel_of(None)
    times = []
    for number in range(ROUNDS):
        progress(f"one guest, {number + 1} of {ROUNDS}")
        times.append(_start(1)[0])
    progress(f"{MANY} guests at once")
    everyone, octets = _start(MANY)
    first = statistics.median(times)
    return [
        BenchResult(
            "uml: first program of one guest, median",
            "s",
            first,
            promise="at most 1.5 s",
            holds=first <= FIRST,
        ),
        BenchResult(
            f"uml: first program of each of {MANY} guests",
            "s",
            everyone,
            promise="at most 20 s",
            holds=everyone <= ALL,
        ),
        BenchResult(
            "uml: proportional memory of a guest",
            "B",
            octets,
            promise="at most 40 MB",
            holds=octets <= MEMORY,
        ),
    ]


def _start(count: int) -> tuple[float, float]:
    """Seconds until each of so many guests has run a program, and octets of memory that each takes."""
    scenario = Scenario.model_validate(
        {
            "name": "bench-guests",
            "kind": "uml",
            "guest": {"memory": SMALLEST},
            "topology": Topology(generator="star", nodes=count + 1, switched=True) if count > 1 else None,
            "nodes": {} if count > 1 else {"a": {}},
        }
    )
    plan = check(scenario).plans[0]
    begun = time.monotonic()
    with World(plan) as world:
        for node in world.nodes.values():
            node.exec(["true"], timeout=60)
        took = time.monotonic() - begun
        octets = [_memory(node) for node in world.nodes.values() if isinstance(node, GuestNode)]
    return took, statistics.mean(octets)


def _memory(node: GuestNode) -> float:
    """Proportional share of memory of a guest's machine: octets.

    Its kernel is one address space that several of its processes share, which counts once; programs in
    the guest are one each (proc_pid_smaps_rollup, ``proc(5)``).
    """
    spaces: set[str] = set()
    for pid in node.processes():
        with contextlib.suppress(OSError):  # it may just have ended
            spaces.add(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\n")[2])
    return sum(float(_pss(text)) * 1024 for text in spaces)


def _pss(text: str) -> str:
    return next((line.split()[1] for line in text.splitlines() if line.startswith("Pss:")), "0")
