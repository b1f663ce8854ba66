"""The machines of nodes that have a kernel of their own."""

from __future__ import annotations

from airloom.plan import GuestPlan
from airloom.scenario.model import Guest, Node, Scenario

MEMORY = {"uml": 64 << 20, "qemu": 256 << 20}
"""Kinds of nodes that have one, and the octets of memory that it has if nobody says."""
LEAST = {"uml": 32 << 20, "qemu": 160 << 20}
"""With less its kernel does not start."""

NETWORK = {"uml": "vhost", "qemu": "tap"}
"""How frames reach a machine if nobody says."""


def plan(scenario: Scenario, node: Node) -> GuestPlan | None:
    """The machine of a node; None if its kind has none."""
    if (node.kind or scenario.kind) not in MEMORY:
        return None
    machine = said(scenario, node)
    return GuestPlan(
        memory=int(machine.memory or MEMORY[node.kind or scenario.kind]),
        network=machine.network or NETWORK[node.kind or scenario.kind],
        kernel=machine.kernel,
        root=machine.root,
        processors=tuple(machine.processors),
        nice=machine.nice,
        policy=machine.policy,
        priority=machine.priority,
    )


def said(scenario: Scenario, node: Node) -> Guest:
    """What holds for a node: its own words, and the scenario's where it says nothing."""
    if node.guest is None:
        return scenario.guest
    own = {name: getattr(node.guest, name) for name in node.guest.model_fields_set}
    return scenario.guest.model_copy(update=own)
