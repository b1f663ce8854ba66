"""Rules of modelled processors: which guests can have one, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.machine.processors import Prices, prices
from airloom.planning.network import Network
from airloom.planning.rules import members
from airloom.scenario.model import Processor, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.text import duration

MOST = 1_000_000_000
"""Highest price, and longest quantum, in ns."""
_WORDS = members.Words("processors", "has a processor", "be charged")
LEAST = 1_000
"""Shortest quantum in ns: one that is shorter than a frame's work means none."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with processors."""
    turns = {name: turns for turns, said in scenario.turns.items() for name in said.nodes}
    for processor, said in scenario.processors.items():
        path = ("processors", processor)
        if scenario.time != "virtual":
            yield Problem(
                "processors.time",
                "the work of a modelled processor takes virtual time, and this run is in wall time",
                path,
                "time: virtual; for processors of this machine see cpus",
            )
            return
        yield from _costs(said, path)
        for number, name in enumerate(said.nodes):
            if name in turns:
                message = f"{name!r} takes turns in {turns[name]!r}, which stand for a processor already"
                yield Problem("processors.turns", message, (*path, "nodes", number), "use one of the two")
    groups = {processor: said.nodes for processor, said in scenario.processors.items()}
    yield from members.problems(groups, _WORDS, scenario, network)


def _costs(said: Processor, path: Path_) -> Iterator[Problem]:
    if prices(said) == Prices():
        yield Problem(
            "processors.free",
            "work costs nothing on this processor",
            path,
            "give a price, such as frame: 10 us, or a preset",
        )
    for name in ("interrupt", "frame", "context_switch"):
        price = getattr(said, name)
        if price is not None and price > MOST:
            yield Problem(
                "processors.price", f"{price.text} are no price", (*path, name), f"at most {duration(MOST)}"
            )
    if not LEAST <= said.quantum <= MOST:
        message = f"a quantum of {said.quantum.text} cannot be kept"
        yield Problem(
            "processors.quantum", message, (*path, "quantum"), f"{duration(LEAST)} to {duration(MOST)}"
        )
    for name in said.weights:
        where = (*path, "weights", name)
        if said.scheduler != "fair":
            message = f"the scheduler {said.scheduler} has no weights"
            yield Problem("processors.weights", message, where, "scheduler: fair")
        elif name not in said.nodes:
            yield Problem(
                "processors.weights", f"{name!r} is not on this processor", where, "name one of its nodes"
            )
