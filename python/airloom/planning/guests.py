"""The machines of nodes that have a kernel of their own."""

from __future__ import annotations

from airloom.planning.plan import GuestPlan
from airloom.scenario.model import Guest, Node, Scenario, SharedGuest

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
    """What holds for a node: its own words or its shared guest's, else the scenario's."""
    own = shared_by(scenario, node) or node.guest
    if own is None:
        return scenario.guest
    update = {name: getattr(own, name) for name in Guest.model_fields if name in own.model_fields_set}
    return scenario.guest.model_copy(update=update)


def shared_by(scenario: Scenario, node: Node) -> SharedGuest | None:
    """The guest that a node shares with others, if it does."""
    return None if node.inside is None else scenario.guests.get(node.inside)


def with_kind(scenario: Scenario, node: Node) -> Node:
    """The node, with the kind of the guest that it is inside of."""
    shared = shared_by(scenario, node)
    if shared is None or node.kind is not None:
        return node
    return node.model_copy(update={"kind": shared.kind or scenario.kind})
