"""Plans of virtual time: nodes on the host's kernel become nodes in guests."""

from __future__ import annotations

from airloom.scenario.model import Node, Scenario

HOST_KERNEL = "netns"
"""The kind that becomes a guest of its own for each node."""
GUEST = "uml"
"""The kind whose kernel can be in virtual time."""


def in_guests(scenario: Scenario) -> Scenario:
    """Returns the scenario with its nodes in guests, if it is in virtual time."""
    if scenario.time != "virtual":
        return scenario
    kind = GUEST if scenario.kind == HOST_KERNEL else scenario.kind
    update: dict[str, object] = {
        "kind": kind,
        "nodes": {name: _in_guest(node) for name, node in scenario.nodes.items()},
        "guests": {
            name: guest.model_copy(update={"kind": GUEST}) if guest.kind == HOST_KERNEL else guest
            for name, guest in scenario.guests.items()
        },
        "slices": {
            name: one.model_copy(update={"node": _in_guest(one.node)})
            for name, one in scenario.slices.items()
        },
    }
    if scenario.topology is not None:
        node = _in_guest(scenario.topology.node)
        update["topology"] = scenario.topology.model_copy(update={"node": node})
    return scenario.model_copy(update=update)


def _in_guest(node: Node) -> Node:
    return node.model_copy(update={"kind": GUEST}) if node.kind == HOST_KERNEL else node
