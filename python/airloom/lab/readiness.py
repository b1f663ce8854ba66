"""Waits until a program of a live laboratory is ready, by the words of a scenario's ``ready``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from airloom.errors import RunError
from airloom.lab.live_program import LiveProgram
from airloom.planning.rules import programs as rules
from airloom.runs.emulation import World
from airloom.runs.programs import POLL, Reading, condition, is_ready
from airloom.scenario import problems
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Ready
from airloom.scenario.source import Source
from airloom.units.text import seconds

Start = Callable[[Sequence[str]], int]
"""Runs a command in the program's node to its end; returns the exit code."""


def ready_of(words: Mapping[str, Any]) -> Ready:
    """Returns the validated readiness check; raises :class:`~airloom.ScenarioError`."""
    source = Source(dict(words), None, Path())
    try:
        made = Ready.model_validate(dict(words))
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    problems.raise_first(rules.ready(made, ()), source)
    return made


def wait_ready(
    ready: Ready, program: LiveProgram, world: World, listens: Callable[[int], bool], run: Start
) -> None:
    """Waits until the check succeeds.

    Raises :class:`~airloom.RunError` if the program ends before, or after the time-out, and then
    stops the program.
    """
    reading = Reading(program.log, 0)
    until = world.now() + ready.within
    while not _decide(ready, reading, listens, run):
        code = program.code
        if code is not None:
            how = f"ended with exit code {code}, and was not ready: waited for {condition(ready)}"
        elif world.now() < until:
            if not reading.left:
                world.pass_time(POLL)
            continue
        else:
            program.stop()
            how = f"was not ready within {seconds(ready.within)}: waited for {condition(ready)}"
        raise RunError(
            "program.failed",
            f"{program.argv[0]} in node {program.node} {how}",
            cure=f"its output is in {program.log}",
        )


def _decide(ready: Ready, reading: Reading, listens: Callable[[int], bool], run: Start) -> bool:
    decided = is_ready(ready, reading, listens)
    return run(words_of(decided)) == 0 if isinstance(decided, str) else decided
