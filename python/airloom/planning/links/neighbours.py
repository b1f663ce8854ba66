"""Neighbours (ARP and IPv6) of nodes on this machine's kernel, whose entries have one common limit.

Namespaces have separate entries, but one limit applies to the whole kernel:
``net.ipv4.neigh.default.gc_thresh3``, 1024 by default. Beyond it a packet to a new neighbour is lost.
Permanent entries do not count (kernel, ``neigh_alloc`` in ``net/core/neighbour.c``). A plan that may
exceed the limit therefore gets permanent entries where it says who talks to whom:

* at both ends of a link between two nodes;
* between a node and the routers of its static routes;
* between the two ends of a measurement in one subnet.

Other neighbours are resolved, those on the paths of measurements before (:mod:`.resolved`). If more
nodes with programs or measurements depend on that than the limit allows, the plan is refused before the
start.

Radios of nodes with programs may want an entry of every other radio that they hear during the run: a
note says so if these are more than the limit allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from airloom.errors import HostError
from airloom.planning.plan import InterfacePlan, NeighbourPlan, NodePlan, Plan
from airloom.planning.radio import hearing
from airloom.planning.routing import resolved as known_before

LIMIT = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
OWN_KERNELS = ("uml", "qemu")
"""Kinds whose nodes have a table of their own."""


def advice_for(wanted: int, why: str, limit: int | None = None) -> str | None:
    """Advice if ``wanted`` entries exceed the limit; None if they fit."""
    most = read_limit() if limit is None else limit
    if most is None or wanted <= most:
        return None
    return (
        f"this machine's kernel keeps at most {most} neighbours for all nodes together, and {why}: "
        f"{_cure(wanted)}"
    )


def read_limit() -> int | None:
    """The machine's limit; None where it cannot be read."""
    try:
        return int(LIMIT.read_text())
    except OSError:  # only in the host's network namespace
        return None


@dataclass(frozen=True, slots=True)
class Settled:
    """A plan's neighbours on a machine."""

    plan: Plan
    """The plan with permanent entries, if it may exceed the limit."""
    note: str | None = None
    """What differs from the plan without them; None if nothing does."""


def settle(plan: Plan, limit: int | None = None) -> Settled:
    """Returns the plan with permanent entries if its nodes may need more entries than the limit."""
    most = read_limit() if limit is None else limit
    wanted = sum(1 for _ in _ends(plan))
    if most is None or wanted <= most:
        return Settled(known_before.before(plan), overflow(plan, limit))
    known = _known(plan)
    direct = {end for pair in _direct(plan) for end in pair}
    resolved = [end for end in _ends(plan) if end not in direct]
    nodes = {
        name: replace(node, neighbours=tuple(_entries(node, known))) for name, node in plan.nodes.items()
    }
    note = (
        f"the {wanted} interfaces may want more than the {most} neighbours that this machine's kernel keeps "
        "for all nodes together: those that the plan names are permanent, without address resolution"
    )
    if resolved:
        note += f"; {len(resolved)} interfaces may have others, and beyond the limit packets are lost"
    return Settled(replace(plan, nodes=nodes), f"{note}: for address resolution everywhere, {_cure(wanted)}")


def overflow(plan: Plan, limit: int | None = None) -> str | None:
    """Advice if radios of nodes with programs may hear more others, over their walks, than the limit allows.

    Each may want an entry of each other one, as those of a routing daemon do.
    """
    most = read_limit() if limit is None else limit
    own = {name for name in _programs(plan) if plan.nodes[name].kind not in OWN_KERNELS}
    if most is None or not plan.media or len(own) * (len(own) - 1) <= most:
        return None
    wanted = hearing.pairs(plan, own)
    if wanted <= most:
        return None
    return (
        f"{wanted} pairs of radios of nodes with programs hear each other during the run, and this machine's "
        f"kernel keeps at most {most} neighbours for all nodes together: beyond that packets are lost; "
        f"{_cure(wanted)}, or make the nodes of kind uml, which have tables of their own"
    )


def lack(plan: Plan, limit: int | None = None) -> HostError | None:
    """The error if more nodes than the limit depend on address resolution; None if they fit."""
    most = read_limit() if limit is None else limit
    if most is None or sum(1 for _ in _ends(plan)) <= most:
        return None
    known, running = _known(plan), _running(plan)
    wanted = sum(1 for name, interface in _ends(plan) if name in running and (name, interface) not in known)
    if wanted <= most:
        return None
    return HostError(
        "host.neighbours",
        f"{wanted} interfaces of nodes with programs need address resolution, and this machine's kernel "
        f"keeps at most {most} neighbours for all nodes together",
        cure=_cure(wanted),
    )


_End = tuple[str, str]
"""Node and interface."""


def _cure(wanted: int) -> str:
    return f"run `sysctl -w net.ipv4.neigh.default.gc_thresh3={4 * wanted}`"


def _ends(plan: Plan) -> Iterator[_End]:
    """Yields the interfaces with addresses of nodes that use this machine's kernel."""
    for node in plan.nodes.values():
        if node.kind not in OWN_KERNELS:
            for interface in node.interfaces:
                if interface.addresses:
                    yield node.name, interface.name


def _running(plan: Plan) -> set[str]:
    """The nodes in which programs or measurements are known to run."""
    tools = [measurement.tool for measurement in plan.scenario.measurements]
    ends = {name for tool in tools for name in (tool.source, tool.to)}
    return ends | _programs(plan)


def _programs(plan: Plan) -> set[str]:
    return {program.node for program in plan.scenario.programs}


def _direct(plan: Plan) -> Iterator[tuple[_End, _End]]:
    """Yields the ends of each link between two nodes: interfaces with one neighbour each."""
    for link in plan.links.values():
        (a, _, a_port), (b, _, b_port) = link.a.partition(":"), link.b.partition(":")
        if a in plan.nodes and b in plan.nodes:
            yield (a, a_port), (b, b_port)


def _known(plan: Plan) -> dict[_End, dict[_End, InterfacePlan]]:
    """By interface: the neighbours that the plan names."""
    interfaces = {(node.name, one.name): one for node in plan.nodes.values() for one in node.interfaces}
    owners = {
        str(address.ip): end for end, interface in interfaces.items() for address in interface.addresses
    }
    known: dict[_End, dict[_End, InterfacePlan]] = {}

    def join(one: _End, other: _End) -> None:
        for near, far in ((one, other), (other, one)):
            known.setdefault(near, {})[far] = interfaces[far]

    for a, b in _direct(plan):
        if a in interfaces and b in interfaces:
            join(a, b)
    for node in plan.nodes.values():
        for route in node.routes:
            for via, name in ((route.via, route.interface), *route.more):
                if via in owners:
                    join((node.name, name), owners[via])
    for measurement in plan.scenario.measurements:
        names = [owners.get(name, (name, ""))[0] for name in (measurement.tool.source, measurement.tool.to)]
        source, to = (plan.nodes.get(name) for name in names)
        if source is None or to is None:
            continue
        networks = {
            address.network: (to.name, one.name) for one in to.interfaces for address in one.addresses
        }
        for interface in source.interfaces:
            for address in interface.addresses:
                if address.network in networks:
                    join((source.name, interface.name), networks[address.network])
    return known


def _entries(node: NodePlan, known: dict[_End, dict[_End, InterfacePlan]]) -> Iterator[NeighbourPlan]:
    if node.kind in OWN_KERNELS:
        return
    for interface in node.interfaces:
        networks = {address.network for address in interface.addresses}
        for far in known.get((node.name, interface.name), {}).values():
            for address in far.addresses:
                if address.network in networks:
                    yield NeighbourPlan(str(address.ip), far.mac, interface.name, permanent=True)
