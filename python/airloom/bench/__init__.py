"""Benchmarks by name. Each compares with a peer in the same run, and with the promised value.

A benchmark is a module of this package with a function ``run(progress)``, listed here with a
one-line description. ``progress`` is called with a short text on the current step.
"""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airloom.errors import ScenarioError
from airloom.scenario.suggest import nearest

if TYPE_CHECKING:
    from rich.table import Table

Progress = Callable[[str], None]

BENCHMARKS: dict[str, str] = {
    "admission": "the grid manager's search on 400 nodes with 50 standing reservations",
    "bringup": "thousands of nodes: time up, memory, and that nothing stays",
    "chain": "TCP over 20 and 50 router hops of 100 Mbit/s",
    "delay": "how exactly delays of 0.1 to 100 ms are kept",
    "gigabit": "TCP over hops of 1 Gbit/s, 20 hops of 100 Mbit/s, 10 Gbit/s, a fat tree; what they cost",
    "grid": "radio in real time: 400 nodes and 100 flows on 12 channels; one flow's cost",
    "guests": "User Mode Linux guests: time to the first program, one and twenty; memory",
    "kinds": "what each kind of node carries beside the native stack, and at a radio",
    "medium": "the radio medium's engine alone: beside ns-3.44, and with twice as many stations",
    "mininet": "beside Mininet with Linux bridges: linear,100, TCP over 16 and 64 switches, memory",
    "ovs": "fifty Open vSwitches with one controller: time up, memory; TCP through one",
    "rate": "whether links of 1 to 1000 Mbit/s keep their rate from the first frame on",
    "report": "a large report in Chromium: time until it is open, elements, size",
    "throughput": "one flow over a link, over 16 switches, and in small frames",
    "virtual": "virtual time: deviation from arithmetic, virtual seconds a wall second, messages a frame",
    "wlan": "802.11 stacks of guests: throughput by rate, WPA2 association, many stations",
}
"""Description by module name."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One measured figure with its peer and its promise."""

    metric: str
    unit: str
    value: float
    peer: str | None = None
    """The compared system, measured in the same run."""
    peer_value: float | None = None
    ratio: float | None = None
    """``value / peer_value``."""
    promise: str | None = None
    """The promise in the words of SPECIFICATION.md."""
    holds: bool | None = None


def names() -> list[str]:
    """Returns the names of the benchmarks."""
    return sorted(BENCHMARKS)


def describe(name: str) -> str:
    """Returns a benchmark's description in one line."""
    return BENCHMARKS[name]


def find(name: str) -> Callable[[Progress], list[BenchResult]]:
    """Returns the function that runs a benchmark."""
    if name not in BENCHMARKS:
        raise ScenarioError(
            "bench.unknown",
            f"there is no benchmark {name}",
            cure=nearest(name, names()),
        )
    run: Callable[[Progress], list[BenchResult]] = importlib.import_module(f"airloom.bench.{name}").run
    return run


def machine() -> dict[str, Any]:
    """Returns a description of the measured machine."""
    model = "unknown"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "memory_octets": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def to_json(results: Sequence[BenchResult]) -> dict[str, Any]:
    """Returns the JSON data of ``airloom bench --json``."""
    return {"machine": machine(), "results": [asdict(result) for result in results]}


def table(name: str, results: Sequence[BenchResult]) -> Table:
    """Returns the results as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    from airloom.units.figures import readable

    rows = Table(title=name, title_justify="left")
    for column in ("metric", "value", "peer", "ratio", "promise", "holds"):
        rows.add_column(column, justify="right" if column in ("value", "ratio") else "left")
    for result in results:
        beside = result.peer or ""
        if result.peer_value is not None:
            beside += f": {readable(result.peer_value, result.unit)}"
        rows.add_row(
            result.metric,
            readable(result.value, result.unit),
            beside,
            "" if result.ratio is None else f"{result.ratio:.3f}",
            result.promise or "",
            {True: Text("yes", "green"), False: Text("no", "red"), None: Text()}[result.holds],
        )
    return rows
