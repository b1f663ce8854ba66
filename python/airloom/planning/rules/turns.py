"""Rules of turns: which guests can take them, and how long they may be."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.network import Network
from airloom.planning.rules import members
from airloom.scenario.model import Scenario, Turns
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.text import duration

LEAST, MOST = 5_000_000, 1_000_000_000
"""Shortest and longest turn in ns. To freeze a guest takes up to a millisecond or two."""
LEAST_VIRTUAL = 10_000
"""Shortest turn in ns in virtual time, where a turn costs the run some tens of microseconds."""
_WORDS = members.Words("turns", "takes turns", "be frozen")
LONGEST = 5_000_000_000
"""Longest turn of each in ns, for which a guest may not answer its run."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with turns."""
    least = LEAST_VIRTUAL if scenario.time == "virtual" else LEAST
    for turns, said in scenario.turns.items():
        yield from _length(said, ("turns", turns), least)
    groups = {turns: said.nodes for turns, said in scenario.turns.items()}
    yield from members.problems(groups, _WORDS, scenario, network)


def _length(said: Turns, path: Path_, least: int) -> Iterator[Problem]:
    each = said.quantum * len(said.nodes)
    if not least <= said.quantum <= MOST:
        message = f"a turn of {said.quantum.text} cannot be kept"
        cure = f"{duration(least)} to {duration(MOST)}"
        yield Problem("turns.quantum", message, (*path, "quantum"), cure)
    elif each > LONGEST:
        yield Problem(
            "turns.quantum",
            f"a turn of each takes {duration(each)}, and nobody may wait longer than {duration(LONGEST)}",
            (*path, "quantum"),
            f"at most {duration(LONGEST // len(said.nodes))} with {len(said.nodes)} guests",
        )
    elif said.phase >= each:
        message = f"a phase of {said.phase.text} is no less than one turn of each, {duration(each)}"
        yield Problem("turns.phase", message, (*path, "phase"), "leave out whole rounds of turns")
