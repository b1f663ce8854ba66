"""Rules of the machines of nodes with a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.guests import said
from airloom.scenario.model import Scenario
from airloom.scenario.refusal import Problem
from airloom.scenario.source import Path_

_REAL_TIME = ("fifo", "round-robin")


def problems(scenario: Scenario) -> Iterator[Problem]:
    """What is wrong with machines, whichever kind the nodes will be of."""
    machines: list[tuple[Path_, str, int]] = [
        (("guest",), scenario.guest.policy, scenario.guest.priority),
    ]
    for name, node in scenario.nodes.items():
        if node.guest is not None:
            own = said(scenario, node)
            machines.append((("nodes", name, "guest"), own.policy, own.priority))
    for path, policy, priority in machines:
        if (policy in _REAL_TIME) != (priority > 0):
            yield Problem(
                "guest.priority",
                f"the policy {policy!r} has no priority {priority}",
                path,
                f"{' and '.join(_REAL_TIME)} have 1 to 99, the others none",
            )
