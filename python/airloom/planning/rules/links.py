"""Rules of links, switches and address pools."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning import areas, visibility
from airloom.planning.network import Network, Wire
from airloom.planning.ports import ports_of
from airloom.planning.rules import ranges
from airloom.planning.rules.names import interface
from airloom.scenario.model import Direction, Node, Queue, Scenario, Topology
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with links."""
    for index, link in enumerate(scenario.links):
        path: Path_ = ("links", index)
        yield from direction(link, path)
        for word in ("forward", "backward"):
            own = getattr(link, word)
            if own is not None:
                yield from direction(own, (*path, word))
    if scenario.topology is not None:
        yield from _generated(scenario.topology, network)
    for name, node in scenario.nodes.items():
        yield from _adapters(node, ("nodes", name))
    for name, switch in scenario.switches.items():
        yield from ranges.of_switch(switch, ("switches", name))
        if switch.kind != "switch" and switch.latency:
            why = "a hub stores no frame" if switch.kind == "hub" else "Open vSwitch takes its own time"
            yield Problem(
                "switch.latency",
                f"{name!r} has no latency to model: {why}",
                ("switches", name, "latency"),
                "leave the latency out, or make it of kind switch",
                key=True,
            )
    known = True
    for wire in network.wires:
        for found in _ends(wire, network):
            known = False
            yield found
    yield from _pools(scenario)
    if known:
        yield from ports_of(network)[1]
        yield from _loops(scenario, network)
        yield from _native(scenario, network)
        yield from visibility.problems(scenario, network)


def direction(said: Direction, path: Path_) -> Iterator[Problem]:
    """Yields what is wrong with the properties of a link or of one of its directions."""
    if said.rate is not None and said.trace is not None:
        yield Problem("link.rate.twice", "a link has a rate or a trace, not both", (*path, "trace"), key=True)
    if said.queue is not None:
        wrong = list(_queue(said.queue, (*path, "queue")))
        yield from wrong
        if wrong:
            said = said.model_copy(update={"queue": None})
    yield from ranges.of_direction(said, path)


def _generated(topology: Topology, network: Network) -> Iterator[Problem]:
    """Checks a generator's common settings, and the link properties that a graph file sets."""
    yield from _adapters(topology.node, ("topology", "node"))
    yield from ranges.of_switch(topology.switch, ("topology", "switch"))
    common = list(direction(topology.link, ("topology", "link")))
    yield from common
    if common:
        return
    seen: set[int] = set()
    for wire in network.wires:
        if wire.path == ("topology",) and id(wire.forward) not in seen:
            seen.add(id(wire.forward))
            for found in direction(wire.forward, ("topology", "link")):
                what = ".".join(str(key) for key in found.path[2:])
                message = f"link {wire.name}: {what}: {found.message}"
                yield Problem(found.code, message, ("topology", "file"), found.cure)


def _adapters(node: Node, path: Path_) -> Iterator[Problem]:
    for name, one in node.interfaces.items():
        if one.adapter is not None:
            yield from ranges.of_adapter(one.adapter, (*path, "interfaces", name, "adapter"))


def _queue(queue: Queue, path: Path_) -> Iterator[Problem]:
    for name in ("size", "time"):
        if getattr(queue, name) == 0:
            yield ranges.zero(name, (*path, name))
    red = queue.discipline == "red"
    for name in ("red_min", "red_max"):
        if red and getattr(queue, name) is None:
            yield Problem(
                "queue.red",
                f"the discipline red needs {name!r}",
                path,
                "such as red_min: 30 kB, red_max: 90 kB",
            )
    if red and queue.red_min is not None and queue.red_max is not None and queue.red_min >= queue.red_max:
        yield Problem("queue.red", "red_min must be below red_max", (*path, "red_min"))
    owner = {"red_min": "red", "red_max": "red", "red_probability": "red", "red_weight": "red"}
    owner |= {"quantum": "fq-codel", "flows": "fq-codel"}
    for name in sorted(queue.model_fields_set & owner.keys()):
        if getattr(queue, name) is not None and queue.discipline != owner[name]:
            yield Problem(
                "queue.discipline",
                f"{name!r} is no setting of the discipline {queue.discipline}",
                (*path, name),
                f"set discipline: {owner[name]}",
                key=True,
            )
    for name in sorted(queue.model_fields_set & {"target", "interval"}):
        if queue.discipline not in ("codel", "fq-codel"):
            yield Problem(
                "queue.discipline",
                f"{name!r} is no setting of the discipline {queue.discipline}",
                (*path, name),
                "set discipline: codel or fq-codel",
                key=True,
            )


def _ends(wire: Wire, network: Network) -> Iterator[Problem]:
    a, b = wire.ends
    generated = wire.path[0] != "links"
    for side, end in enumerate(wire.ends):
        path = wire.path if generated else (*wire.path, "ends", side)
        if not any(end.name in named for named in (network.nodes, network.switches, network.tunnels)):
            what = "node, switch or tunnel" if network.tunnels else "node or switch"
            known = [*network.nodes, *network.switches, *network.tunnels]
            yield Problem("node.unknown", f"there is no {what} {end.name!r}", path, nearest(end.name, known))
            continue
        if end.name not in network.nodes:
            word = "switch" if end.name in network.switches else "tunnel"
            if end.interface is not None and end.name not in network.open_switches:
                yield Problem(
                    f"interface.{word}",
                    f"{end.name!r} is a {word}; its ports have no names",
                    path,
                    f"write {end.name!r} alone",
                )
            if wire.addresses[side]:
                yield Problem(
                    f"address.{word}",
                    f"{end.name!r} is a {word} and takes no addresses",
                    (*wire.path, "addresses", side),
                )
        elif end.interface is not None:
            yield from interface(end.interface, path)
    if a.name == b.name:
        yield Problem(
            "link.self", f"both ends are {a.name!r}", wire.path if generated else (*wire.path, "ends")
        )


def _pools(scenario: Scenario) -> Iterator[Problem]:
    for version, pool in ((4, scenario.addresses.ipv4), (6, scenario.addresses.ipv6)):
        path = ("addresses", f"ipv{version}")
        if pool is None:
            continue
        if pool.version != version:
            yield Problem("address.family", f"{pool} is not an IPv{version} prefix", path)
        elif pool.is_multicast or pool.is_loopback or pool.is_link_local:
            yield Problem("address.host", f"interfaces cannot have addresses of {pool}", path)


def _loops(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Refuses loops of learning switches without a spanning tree: they would flood forever.

    An Open vSwitch avoids this by a spanning tree, by controllers, or by forwarding by flows alone.
    Switches of an area have loops between them; a loop through anything else is as bad as any.
    """
    neighbours: dict[str, list[str]] = {}
    members = areas.of(network)
    root: dict[str, str] = {name: members.get(name, name) for name in network.switches}
    sliced = any(slice_.controllers for slice_ in scenario.slices.values())

    def careful(name: str) -> bool:
        switch = network.switches[name]
        return (
            switch.spanning_tree != "none"
            or bool(switch.controllers)
            or switch.fail_mode == "secure"
            or (sliced and name in network.open_switches)
        )

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    inner = {index for index, wire in enumerate(network.wires) if areas.is_inner(wire, members)}
    for index in inner:
        a, b = (end.name for end in network.wires[index].ends)
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    for index, wire in enumerate(network.wires):
        a, b = (end.name for end in wire.ends)
        if a not in network.switches or b not in network.switches or a == b or index in inner:
            continue
        if careful(a) or careful(b):
            continue
        if top(a) == top(b):
            circle = " - ".join([*_way(neighbours, a, b), a])
            yield Problem(
                "link.loop",
                f"the link {wire.name} closes a loop of switches: {circle}",
                wire.path,
                "remove a link, or make one of them a node that routes, "
                "or all of them switches with forwarding: shortest-path, "
                "or an openvswitch with spanning_tree: stp",
            )
            continue
        root[top(a)] = top(b)
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)


def _way(neighbours: dict[str, list[str]], start: str, goal: str) -> list[str]:
    before: dict[str, str] = {start: start}
    queue = [start]
    for here in queue:
        for following in neighbours.get(here, ()):
            if following not in before:
                before[following] = here
                queue.append(following)
    way = [goal]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


_NATIVE = ("mtu", "rate", "queue", "overhead")
"""Properties that the kernel applies to a veth pair by HTB; see :mod:`airloom.nodes.kinds.native`."""
_NATIVE_WORDS = f"only {', '.join(_NATIVE[:-1])} and {_NATIVE[-1]}"


def _native(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Refuses what a native link, a veth pair of two native nodes, cannot do."""

    def native(name: str) -> bool:
        node = network.nodes.get(name)
        return node is not None and (node.kind or scenario.kind) == "native"

    made = {wire.name for wire in network.wires if all(native(end.name) for end in wire.ends)}
    for index, event in enumerate(scenario.events):
        if event.link in made:
            yield Problem(
                "native.link",
                f"the link {event.link!r} between native nodes cannot change",
                ("events", index, "link"),
                "it is a veth pair of the kernel: make the nodes of kind netns",
            )
    for wire in network.wires:
        natives = [end.name for end in wire.ends if native(end.name)]
        if not natives:
            continue
        if len(natives) == 1:
            other = next(end.name for end in wire.ends if end.name != natives[0])
            what = (
                "a switch" if other in network.switches else "a tunnel" if other in network.tunnels else "not"
            )
            yield Problem(
                "native.link",
                f"{natives[0]!r} is native and {other!r} is {what}",
                wire.path,
                "a native link is a bare wire between two native nodes",
            )
            continue
        for word, said in (("forward", wire.forward), ("backward", wire.backward)):
            named = [
                name
                for name in Direction.model_fields
                if name not in _NATIVE and getattr(said, name) is not None
            ]
            if named:
                yield Problem(
                    "native.link",
                    f"a link between native nodes has no {named[0]!r}: "
                    f"the kernel's own wire has {_NATIVE_WORDS}",
                    wire.said_at(word, named[0]),
                    "leave it out, or make the nodes of kind netns",
                )
                break
