"""When programs start, when measurements run and how long they take, by the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from airloom.scenario.model import Measurement, Program


def earliest_of(programs: Sequence[Program]) -> dict[str, int]:
    """Returns each program's earliest start in ns: the latest of its own and its predecessors'."""
    by_name = {program.name or "": program for program in programs}
    earliest: dict[str, int] = {}
    for name in TopologicalSorter({name: one.after for name, one in by_name.items()}).static_order():
        program = by_name[name]
        earliest[name] = max([program.at, *(earliest[before] for before in program.after)])
    return earliest


def moment_of(measurement: Measurement) -> int:
    """Returns a measurement's start time, or 0 if it runs in turn; in ns."""
    return measurement.tool.at


def expected_of(measurement: Measurement) -> int:
    """Returns how long a measurement takes if it succeeds, in ns."""
    return measurement.tool.expected
