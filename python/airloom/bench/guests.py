"""User Mode Linux guests: time to the first program, and memory."""

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
"""The smallest usable machine: with less, the host's own programs do not fit in memory."""
FIRST, ALL, MEMORY = 1.5, 20.0, 40e6
"""Promises: seconds, seconds, octets."""


def run(progress: Progress) -> list[BenchResult]:
    """Starts one guest several times, then many at once."""
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
    """Returns seconds until all guests have run a program, and memory of each in octets."""
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
    """Returns the proportional set size (PSS) of a guest's machine in octets.

    Several processes of the guest kernel share one address space, which counts once; each program
    in the guest is a separate process (proc_pid_smaps_rollup, ``proc(5)``).
    """
    spaces: set[str] = set()
    for pid in node.processes():
        with contextlib.suppress(OSError):  # the process may have ended
            spaces.add(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\n")[2])
    return sum(float(_pss(text)) * 1024 for text in spaces)


def _pss(text: str) -> str:
    return next((line.split()[1] for line in text.splitlines() if line.startswith("Pss:")), "0")
