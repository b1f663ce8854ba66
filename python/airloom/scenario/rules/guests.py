"""Rules of the machines of nodes with a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.guests import LEAST, said
from airloom.scenario.model import Scenario
from airloom.scenario.model.base import BUILT
from airloom.scenario.network import Network
from airloom.scenario.refusal import Problem
from airloom.scenario.source import Path_

_REAL_TIME = ("fifo", "round-robin")


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """What is wrong with machines."""
    yield from _memory(scenario, network)
    yield from _kernel(scenario, network)
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


def _memory(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """What a kind's kernel needs for its start."""
    for name, node in network.nodes.items():
        kind = node.kind or scenario.kind
        memory = said(scenario, node).memory
        if kind not in LEAST or memory is None or memory >= LEAST[kind]:
            continue
        own = node.guest is not None and node.guest.memory is not None
        yield Problem(
            "guest.memory",
            f"a machine of kind {kind} does not start with {memory.text}",
            ("nodes", name, "guest", "memory") if own else ("guest", "memory"),
            f"give it {LEAST[kind] >> 20} MiB or more",
        )
        if not own:
            return


def _kernel(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Which kernels a kind's machine starts."""
    for name, node in network.nodes.items():
        if (node.kind or scenario.kind) == "qemu" and said(scenario, node).kernel == BUILT:
            own = node.guest is not None and node.guest.kernel is not None
            yield Problem(
                "guest.kernel",
                "the kernel that is built here is for User Mode Linux",
                ("nodes", name, "guest", "kernel") if own else ("guest", "kernel"),
                "leave it out, or name a file",
            )
            if not own:
                return
