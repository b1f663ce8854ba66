"""The machines of nodes that have a kernel of their own."""

from __future__ import annotations

from airloom.plan import GuestPlan
from airloom.scenario.model import Guest, Node, Scenario

KINDS = ("uml",)
"""Kinds of nodes that have one."""


def plan(scenario: Scenario, node: Node) -> GuestPlan | None:
    """The machine of a node; None if its kind has none."""
    if (node.kind or scenario.kind) not in KINDS:
        return None
    machine = said(scenario, node)
    return GuestPlan(
        memory=int(machine.memory),
        network=machine.network,
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
