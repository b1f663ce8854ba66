"""Gives unnamed programs names and resolves placeholders, so that every object has a name."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import TypeVar

from airloom.planning.network import Network
from airloom.scenario.model import Model, Program, Scenario
from airloom.scenario.model.measure import TOOLS

_Part = TypeVar("_Part", bound=Model)


def words(program: Program) -> list[str]:
    """Splits a program's command line; raises ValueError if its quotes do not match."""
    return shlex.split(program.run) if isinstance(program.run, str) else list(program.run or ())


def seeded(scenario: Scenario, seed: int) -> Scenario:
    """Returns the scenario with a fixed seed of its random topology.

    The topology is the same at all points and repetitions, although their seeds differ.
    """
    topology = scenario.topology
    if topology is None or topology.generator != "random" or topology.seed is not None:
        return scenario
    return scenario.model_copy(update={"topology": topology.model_copy(update={"seed": seed})})


def named(scenario: Scenario, network: Network) -> Scenario:
    """Returns the scenario with names for all programs and real names for ``$first`` and ``$last``."""
    update: dict[str, object] = {}
    if network.generated:
        update |= _real(scenario, {"$first": network.generated[0], "$last": network.generated[-1]})
    programs: list[Program] = update.get("programs", scenario.programs)  # type: ignore[assignment]
    if any(program.name is None for program in programs):
        taken = {program.name for program in programs}
        update["programs"] = all_named = []
        for program in programs:
            if program.name is None:
                name = _free(_stem(program), taken)
                taken.add(name)
                program = program.model_copy(update={"name": name})
            all_named.append(program)
    return scenario.model_copy(update=update) if update else scenario


def _real(scenario: Scenario, names: dict[str, str]) -> dict[str, object]:
    """Returns the scenario's fields that change when placeholders of generated nodes are replaced."""

    def replaced(part: _Part, *keys: str) -> _Part:
        update = {key: names[getattr(part, key)] for key in keys if getattr(part, key) in names}
        return part.model_copy(update=update) if update else part

    measurements = []
    for measurement in scenario.measurements:
        tools = {
            word: replaced(tool, "source", "to")
            for word in TOOLS
            if (tool := getattr(measurement, word)) is not None
        }
        measurements.append(measurement.model_copy(update=tools))
    return {
        "programs": [replaced(program, "node") for program in scenario.programs],
        "events": [replaced(event, "node") for event in scenario.events],
        "measurements": measurements,
    }


def _stem(program: Program) -> str:
    try:
        first = words(program)[0]
    except (ValueError, IndexError):
        first = "program"
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(first).name)
    return f"{program.node}-{base}".strip("-_")[:56].strip("-_") or "program"


def _free(stem: str, taken: set[str | None]) -> str:
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}-{count}"
    return name
