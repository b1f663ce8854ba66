"""Rules of programs and of their start order."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from airloom.planning.machine import containers
from airloom.planning.names import words
from airloom.planning.network import Network
from airloom.planning.rules.names import unique
from airloom.planning.rules.nodes import node_exists
from airloom.scenario import patterns
from airloom.scenario.model import Program, Ready, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with programs."""
    yield from unique("programs", (program.name for program in scenario.programs))
    for index, program in enumerate(scenario.programs):
        path: Path_ = ("programs", index)
        yield from _program(program, path, scenario, network)
        if scenario.duration is not None and program.at > scenario.duration:
            yield Problem(
                "event.time",
                f"it would start at {program.at.text}, after the end of the run at {scenario.duration.text}",
                (*path, "at"),
            )
    yield from _order(scenario.programs)


def _program(program: Program, path: Path_, scenario: Scenario, network: Network) -> Iterator[Problem]:
    if program.node not in network.open_switches:
        yield from node_exists(program.node, (*path, "node"), network)
    try:
        empty = not any(words(program))
    except ValueError as error:
        yield Problem(
            "program.run", f"the command line cannot be split: {str(error).lower()}", (*path, "run")
        )
    else:
        if program.run is None:
            yield from containers.nothing_to_run(scenario, network, program, path)
        elif empty:
            yield Problem("program.run", "the command line is empty", (*path, "run"))
    if any("\0" in word for word in program.run or ()):
        yield Problem("program.run", "a NUL in the command line", (*path, "run"), "leave it out")
    for name, value in program.env.items():
        if not name or "=" in name or "\0" in name:
            yield Problem(
                "program.env",
                f"{name!r} cannot be the name of a variable",
                (*path, "env", name),
                "a name is not empty, and has neither '=' nor NUL",
                key=True,
            )
        elif "\0" in value:
            yield Problem("program.env", "a NUL in the value", (*path, "env", name), "leave it out")
    if program.ready is not None:
        yield from ready(program.ready, (*path, "ready"))


def ready(check: Ready, path: Path_) -> Iterator[Problem]:
    """Yields everything that is wrong with a readiness check."""
    given = [name for name in ("log", "port", "command") if getattr(check, name) is not None]
    if len(given) != 1:
        yield Problem(
            "program.ready",
            f"{len(given)} checks are given" if given else "no check is given",
            path,
            "exactly one of log, port, command",
        )
    if check.log is not None:
        try:
            patterns.checked(check.log)
        except patterns.PatternError as error:
            yield Problem("program.ready", f"not a regular expression: {error}", (*path, "log"))


def _order(programs: list[Program]) -> Iterator[Problem]:
    """Refuses programs that wait for each other, or for a program that never becomes ready."""
    by_name = {program.name or "": program for program in programs}
    for index, program in enumerate(programs):
        for name in program.after:
            path: Path_ = ("programs", index, "after")
            awaited = by_name.get(name)
            if awaited is program:
                yield Problem(
                    "program.after", f"{name!r} would wait for itself", path, "name another program"
                )
            elif awaited is None:
                others = [other for other in by_name if other != program.name]
                yield Problem(
                    "program.unknown", f"there is no program {name!r}", path, nearest(name, sorted(others))
                )
            elif awaited.ready is None and awaited.restart == "always" and not awaited.until_end:
                yield Problem(
                    "program.after",
                    f"{name!r} has no `ready`, and does not end for good: it is always restarted",
                    path,
                    f"give {name!r} `ready`, or `until_end: true` if it is a service",
                )
    graph = {name: [one for one in program.after if one != name] for name, program in by_name.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        first = next(index for index, program in enumerate(programs) if program.name in circle)
        yield Problem(
            "program.after",
            f"{' after '.join(circle)}: none of them could start",
            ("programs", first, "after"),
            "let one of them start without the others",
        )
