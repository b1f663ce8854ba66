"""The topology of a plan as a report draws it."""

from __future__ import annotations

from airloom.planning.plan import Plan
from airloom.results.details import Topology, Vertex, Wire


def topology_of(plan: Plan) -> Topology:
    """Every node, switch and tunnel of a plan, and the links between them."""
    vertices = [
        Vertex(name=name, kind="switch" if node.openvswitch else "router" if node.forwarding else "host")
        for name, node in plan.nodes.items()
    ]
    vertices += [
        Vertex(name=name, kind="hub" if switch.settings == "hub" else "switch")
        for name, switch in plan.switches.items()
    ]
    vertices += [Vertex(name=name, kind="tunnel") for name in plan.tunnels]
    wires = [
        Wire(
            name=link.name,
            a=link.a.partition(":")[0],
            b=link.b.partition(":")[0],
            rate_bit_s=link.forward.constant_rate,
            delay_ns=link.forward.delay,
            backward_rate_bit_s=link.backward.constant_rate,
            backward_delay_ns=link.backward.delay,
            trace=link.forward.traced,
            backward_trace=link.backward.traced,
        )
        for link in plan.links.values()
    ]
    return Topology(vertices=tuple(vertices), wires=tuple(wires))
