"""Names for what was left unnamed, so that everything in a checked scenario can be spoken of."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from airloom.scenario.model import Program, Scenario


def words(program: Program) -> list[str]:
    """The words of a program's command line; raises ValueError if its quotes do not match."""
    return shlex.split(program.run) if isinstance(program.run, str) else list(program.run)


def named(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with every program named, and with the seed of a random topology fixed.

    The topology stays the same at all points and repetitions, whose own seeds differ.
    """
    update: dict[str, object] = {}
    if (
        scenario.topology is not None
        and scenario.topology.generator == "random"
        and scenario.topology.seed is None
    ):
        update["topology"] = scenario.topology.model_copy(update={"seed": seed})
    if any(program.name is None for program in scenario.programs):
        taken = {program.name for program in scenario.programs}
        programs = []
        for program in scenario.programs:
            if program.name is None:
                name = _free(_stem(program), taken)
                taken.add(name)
                program = program.model_copy(update={"name": name})
            programs.append(program)
        update["programs"] = programs
    return scenario.model_copy(update=update) if update else scenario


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
