"""Rules of the machines of nodes with a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.guests import LEAST, said
from airloom.scenario.model import Scenario
from airloom.scenario.network import Network
from airloom.scenario.refusal import Problem
from airloom.scenario.source import Path_

_REAL_TIME = ("fifo", "round-robin")


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """What is wrong with machines."""
    yield from _memory(scenario, network)
    yield from _network(scenario, network)
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


def _network(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """What a kind's machine can be reached by."""
    for name, node in network.nodes.items():
        if (node.kind or scenario.kind) == "qemu" and said(scenario, node).network == "vhost":
            own = node.guest is not None and node.guest.network is not None
            yield Problem(
                "guest.network",
                "a machine of kind qemu has no device of the engine's own",
                ("nodes", name, "guest", "network") if own else ("guest", "network"),
                "leave it out, or say tap",
            )
            if not own:
                return
