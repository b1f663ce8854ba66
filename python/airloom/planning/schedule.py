"""When programs start, when measurements run and how long they take, as the scenario says it."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from airloom.scenario.model import Measurement, Program


def earliest_of(programs: Sequence[Program]) -> dict[str, int]:
    """Name of a program: its own time or that of one it starts after, whichever is later; ns."""
    by_name = {program.name or "": program for program in programs}
    earliest: dict[str, int] = {}
    for name in TopologicalSorter({name: one.after for name, one in by_name.items()}).static_order():
        program = by_name[name]
        earliest[name] = max([program.at, *(earliest[before] for before in program.after)])
    return earliest


def moment_of(measurement: Measurement) -> int:
    """A measurement's own time, or 0 if it takes its turn; ns."""
    return measurement.tool.at


def expected_of(measurement: Measurement) -> int:
    """How long a measurement takes if all goes well; ns."""
    return measurement.tool.expected
