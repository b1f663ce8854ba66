"""Plans the virtual machines of nodes with a kernel of their own."""

from __future__ import annotations

from airloom.planning.plan import GuestPlan
from airloom.scenario.model import Guest, Node, Scenario, SharedGuest

MEMORY = {"uml": 64 << 20, "qemu": 256 << 20}
"""Kinds with a virtual machine: default memory in octets."""
LEAST = {"uml": 32 << 20, "qemu": 160 << 20}
"""The least memory with which the kernel boots, in octets."""

NETWORK = {"uml": "vhost", "qemu": "tap"}
"""Default network device of a virtual machine."""


def plan(scenario: Scenario, node: Node) -> GuestPlan | None:
    """Returns the virtual machine of a node; None if its kind has none."""
    if (node.kind or scenario.kind) not in MEMORY:
        return None
    machine = said(scenario, node)
    shared = shared_by(scenario, node)
    return GuestPlan(
        memory=int(machine.memory or MEMORY[node.kind or scenario.kind]),
        network=machine.network or NETWORK[node.kind or scenario.kind],
        kernel=machine.kernel,
        root=machine.root,
        processors=tuple(machine.processors),
        nice=machine.nice,
        policy=machine.policy,
        priority=machine.priority,
        shared=node.inside,
        cpu=shared.cpu if shared is not None else None,
    )


def said(scenario: Scenario, node: Node) -> Guest:
    """Returns the settings of its shared guest or its own, over the scenario's defaults."""
    own = shared_by(scenario, node) or node.guest
    if own is None:
        return scenario.guest
    update = {name: getattr(own, name) for name in Guest.model_fields if name in own.model_fields_set}
    return scenario.guest.model_copy(update=update)


def shared_by(scenario: Scenario, node: Node) -> SharedGuest | None:
    """Returns the guest that a node shares with others; None if it shares none."""
    return None if node.inside is None else scenario.guests.get(node.inside)


def with_kind(scenario: Scenario, node: Node) -> Node:
    """Returns the node, with the kind of its shared guest."""
    shared = shared_by(scenario, node)
    if shared is None or node.kind is not None:
        return node
    return node.model_copy(update={"kind": shared.kind or scenario.kind})
