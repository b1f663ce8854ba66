"""The default image for containers without ``image``, in scenarios that Airloom itself generates.

Experiments, comparisons of kinds, calibrations and benchmarks run one scenario on every kind of
node. The image contains programs of this machine: those that the laboratory itself runs in nodes,
and those in the scenario's command lines. A user's scenario with ``kind: container`` must name its
image.
"""

from __future__ import annotations

import re

from airloom.host import programs
from airloom.images import own
from airloom.planning.expand import expand
from airloom.planning.machine.containers import KIND
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem, Problems

ALWAYS = ("sh", "cat", "sleep", "ip", "ss", "ping", "iperf3")
"""Included if this machine has them, so that one image serves many scenarios."""
_LOAD = {"sh", "sleep", "date", "ping", "iperf3", "ss", "tc"}
PROGRAMS: dict[str, set[str]] = {
    "rrul": _LOAD,
    "rrul_be": _LOAD,
    "tcp_nup": _LOAD,
    "voip": set(),
    "web_page": {"sh", "date", "curl", "python3"},
}
"""Programs of the ready tests in nodes."""
_SHELLS = re.compile(r"(.*/)?(sh|bash|dash)")
_COMMANDS = re.compile(r"(?:^|[;&|(`\n])\s*(?:(?:exec|if|while|until|then|do|else|time|!|\{)\s+)*([\w./+-]+)")
"""Matches a word where a shell expects a command."""


def provided(scenario: Scenario) -> Scenario:
    """Returns the scenario with an image of this machine's programs if a container has none.

    Raises :class:`~airloom.errors.HostError` if this machine lacks a program that it needs.
    """
    if scenario.image is not None:
        return scenario
    try:
        nodes = expand(scenario).nodes.values()
    except (Problem, Problems):  # reported by the gate
        return scenario
    if not any((node.kind or scenario.kind) == KIND and node.image is None for node in nodes):
        return scenario
    given = {path for node in nodes for path in node.files}
    image = own.of(sorted(programs_of(scenario) - given))
    return scenario.model_copy(update={"image": str(image)})


def programs_of(scenario: Scenario) -> set[str]:
    """Returns the names or paths of the programs that a scenario needs in its nodes."""
    wanted = {name for name in ALWAYS if programs.find(name) is not None}
    for measurement in scenario.measurements:
        wanted |= {tool for tool in ("ping", "iperf3") if getattr(measurement, tool) is not None}
        wanted |= PROGRAMS[measurement.test.kind] if measurement.test is not None else set()
    for program in scenario.programs:
        wanted |= _of_line(program.run)
        wanted |= _of_line(program.ready.command if program.ready is not None else None)
    return wanted


def _of_line(line: str | list[str] | None) -> set[str]:
    """Returns the program of a command line, or for a shell all the commands in its text."""
    try:
        words = words_of(line)
    except ValueError:  # reported by the gate
        return set()
    if words and _SHELLS.fullmatch(words[0]):
        named = {name for one in words[1:] for name in _COMMANDS.findall(one)}
        return {words[0], *(name for name in named if programs.find(name) is not None)}
    return set(words[:1])
