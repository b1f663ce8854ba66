"""The image of containers for which none is named, where Airloom itself says that nodes are containers.

Experiments, comparisons of kinds, calibrations and benchmarks run one scenario on every kind of node. Their
programs are this machine's, so its containers get an image of them: what the laboratory itself runs in nodes,
and what the scenario's command lines name. Who writes ``kind: container`` in a scenario names the image.
"""

from __future__ import annotations

import re

from airloom.host import programs
from airloom.images import own
from airloom.planning.containers import KIND
from airloom.planning.network import expand
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem, Problems

ALWAYS = ("sh", "cat", "sleep", "ip", "ss", "ping", "iperf3")
"""As far as this machine has them: one image then serves many scenarios."""
_SHELLS = re.compile(r"(.*/)?(sh|bash|dash)")
_COMMANDS = re.compile(r"(?:^|[;&|(`\n])\s*(?:(?:exec|if|while|until|then|do|else|time|!|\{)\s+)*([\w./+-]+)")
"""What stands where a shell expects a command."""


def provided(scenario: Scenario) -> Scenario:
    """The scenario, with an image of this machine's programs if a container has none.

    :class:`~airloom.errors.HostError` if a program that it needs is not on this machine.
    """
    if scenario.image is not None:
        return scenario
    try:
        nodes = expand(scenario).nodes.values()
    except (Problem, Problems):  # the gate says what is wrong
        return scenario
    if not any((node.kind or scenario.kind) == KIND and node.image is None for node in nodes):
        return scenario
    given = {path for node in nodes for path in node.files}
    image = own.of(sorted(programs_of(scenario) - given))
    return scenario.model_copy(update={"image": str(image)})


def programs_of(scenario: Scenario) -> set[str]:
    """The programs that a scenario needs in its nodes, by name or path."""
    wanted = {name for name in ALWAYS if programs.find(name) is not None}
    for measurement in scenario.measurements:
        wanted |= {tool for tool in ("ping", "iperf3") if getattr(measurement, tool) is not None}
    for program in scenario.programs:
        wanted |= _of_line(program.run)
        wanted |= _of_line(program.ready.command if program.ready is not None else None)
    return wanted


def _of_line(line: str | list[str] | None) -> set[str]:
    """The program that a command line starts, and what it names to a shell; that has commands of its own."""
    try:
        words = words_of(line)
    except ValueError:  # the gate says what is wrong
        return set()
    if words and _SHELLS.fullmatch(words[0]):
        named = {name for one in words[1:] for name in _COMMANDS.findall(one)}
        return {words[0], *(name for name in named if programs.find(name) is not None)}
    return set(words[:1])
