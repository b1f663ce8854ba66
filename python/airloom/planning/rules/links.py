"""Rules of links, switches and address pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airloom.planning import tables
from airloom.planning.links import areas, queues, series
from airloom.planning.links.ports import ports_of
from airloom.planning.network import Network, Wire
from airloom.planning.routing import visibility
from airloom.planning.rules import ranges
from airloom.planning.rules.names import interface
from airloom.scenario.model import Direction, Node, Queue, Scenario, Switch, Topology
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with links."""
    interval = scenario.engine.link_interval
    if interval is not None and 0 < interval < _SHORTEST_INTERVAL:
        yield Problem(
            "link.interval",
            f"{interval.text} is too short to sample all links",
            ("engine", "link_interval"),
            "at least 1 ms, or 0 s for no samples",
        )
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
        yield from _table(name, switch, ("switches", name))
    known = True
    for wire in network.wires:
        yield from _bucket_without_rate(wire)
        for found in _ends(wire, network):
            known = False
            yield found
    yield from _pools(scenario)
    if known:
        yield from ports_of(network)[1]
        yield from _loops(scenario, network)
        yield from _native(scenario, network)
        yield from visibility.problems(scenario, network)


_SHORTEST_INTERVAL = 1_000_000
"""Shortest time between two samples of the links, in nanoseconds."""
_OVS_AGEING = (15, 3600)
"""Seconds that Open vSwitch accepts as ageing time; it takes the nearest one for others."""
_OVS_ADDRESSES = (10, 1_000_000)
"""Size of an address table that Open vSwitch accepts."""


def _table(name: str, switch: Switch, path: Path_) -> Iterator[Problem]:
    """Refuses settings of an address table that a hub does not have or Open vSwitch does not take."""
    for key in ("ageing", "addresses"):
        if switch.kind == "hub" and key in switch.model_fields_set:
            yield Problem(
                "switch.table",
                f"{name!r} is a hub, which learns no addresses",
                (*path, key),
                "leave it out, or make it of kind switch",
                key=True,
            )
    if switch.kind != "openvswitch":
        return
    least, most = _OVS_AGEING
    if int(switch.ageing) % 1_000_000_000 or not least <= int(switch.ageing) // 1_000_000_000 <= most:
        yield Problem(
            "switch.table",
            f"Open vSwitch has an ageing time of {least} to {most} whole seconds",
            (*path, "ageing"),
        )
    least, most = _OVS_ADDRESSES
    if not least <= switch.addresses <= most:
        yield Problem(
            "switch.table",
            f"Open vSwitch has an address table of {least} to {most} addresses",
            (*path, "addresses"),
        )


def change(said: Direction, path: Path_, before: Iterable[Queue | None] = ()) -> Iterator[Problem]:
    """Yields what is wrong with a change of a link, in which a property without a value says nothing.

    ``before`` are the queues that it changes.
    """
    for name in said.model_fields_set:
        if getattr(said, name) is None:
            yield Problem(
                "link.nothing",
                f"{name!r} has no value, so that it would stay as it is",
                (*path, name),
                "rate: unlimited lifts the limit" if name == "rate" else "leave it out, or say its value",
                key=True,
            )
    queue = said.queue
    if queue is None:
        yield from direction(said, path)
        return
    after = [queues.merged(one, queue) for one in before] or [queue]
    for one in [one for index, one in enumerate(after) if one not in after[:index]]:
        yield from direction(said.model_copy(update={"queue": one}), path)


def direction(said: Direction, path: Path_) -> Iterator[Problem]:
    """Yields what is wrong with the properties of a link or of one of its directions."""
    if said.rate is not None and said.trace is not None:
        yield Problem("link.rate.twice", "a link has a rate or a trace, not both", (*path, "trace"), key=True)
    yield from _bucket(said, path)
    if said.series is not None:
        wrong = list(_series(said, (*path, "series")))
        yield from wrong
        if wrong:
            return
    if said.queue is not None:
        wrong = list(_queue(said.queue, (*path, "queue")))
        yield from wrong
        if wrong:
            said = said.model_copy(update={"queue": None})
    yield from ranges.of_direction(said, path)


def _bucket_without_rate(wire: Wire) -> Iterator[Problem]:
    for one in (wire.forward, wire.backward):
        if (one.burst is not None or one.peak is not None) and one.rate is None and one.trace is None:
            message = f"link {wire.name}: a token bucket is filled at the rate, and there is none"
            yield Problem("link.burst", message, wire.path, "rate: 10 Mbit/s")
            return


def _bucket(said: Direction, path: Path_) -> Iterator[Problem]:
    """Checks that a token bucket has a rate, and a peak a bucket; a change may set either alone."""
    for name in ("burst", "peak"):
        if getattr(said, name) is None:
            continue
        if said.trace is not None or said.rate == "unlimited":
            why = "a trace" if said.trace is not None else "an unlimited rate"
            yield Problem("link.burst", f"{why} has no token bucket", (*path, name), "leave it out", key=True)
        elif name == "peak" and said.burst is None and path[0] in ("links", "topology"):
            yield Problem(
                "link.burst", "a peak rate is that of a burst", (*path, name), "burst: 64 kB", key=True
            )


def _series(said: Direction, path: Path_) -> Iterator[Problem]:
    """Checks a table of properties over time: its form, and the range of each of its values."""
    if path[0] not in ("links", "topology"):
        why = "a change sets values, and no table of them"
        yield Problem("link.series", why, path, "write it at the link", key=True)
        return
    try:
        rows = series.read(said.series or "")
    except tables.TableError as error:
        yield Problem(error.code, error.message, path, error.cure)
        return
    if said.trace is not None and any(row.said.rate is not None for row in rows):
        yield Problem(
            "link.rate.twice", "a link has a trace or a series with rates, not both", path, key=True
        )
    seen: set[tuple[str, str]] = set()
    for row in rows:
        given = {name: repr(getattr(row.said, name)) for name in row.said.model_fields_set}
        if seen.issuperset(given.items()):
            continue
        seen.update(given.items())
        for found in ranges.of_direction(row.said, ()):
            key = ".".join(str(part) for part in found.path)
            yield Problem(found.code, f"{row.line}: {key}: {found.message}", path, found.cure)
            return


def _generated(topology: Topology, network: Network) -> Iterator[Problem]:
    """Checks a generator's common settings, and the link properties that a graph file sets."""
    yield from _adapters(topology.node, ("topology", "node"))
    yield from ranges.of_switch(topology.switch, ("topology", "switch"))
    yield from _table("the switch of the topology", topology.switch, ("topology", "switch"))
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


def _classes(queue: Queue, path: Path_) -> Iterator[Problem]:
    seen: dict[int, int] = {}
    for number, one in enumerate(queue.classes or ()):
        for dscp in one.dscp:
            if seen.setdefault(dscp, number) != number:
                message = f"DSCP {dscp} is in two classes"
                yield Problem("queue.classes", message, (*path, "classes", number, "dscp"), "name it once")
        if queue.discipline == "priority" and "quantum" in one.model_fields_set:
            yield Problem(
                "queue.discipline",
                "strict priority has no quantum",
                (*path, "classes", number, "quantum"),
                "set discipline: drr",
                key=True,
            )


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
    if red and queue.red_above == "mark" and not queue.ecn:
        yield Problem(
            "queue.red", "red_above: mark marks nothing without ecn", (*path, "red_above"), "set ecn: true"
        )
    steps = [name for name in queues.STEPS if getattr(queue, name) is not None]
    if queue.discipline == "step" and not steps:
        cure = "such as step_packets: 20, step_size: 30 kB or step_time: 1 ms"
        yield Problem("queue.step", "the discipline step needs a threshold", path, cure)
    classed = queue.discipline in ("priority", "drr")
    if classed and queue.classes is None:
        cure = "such as classes: [{dscp: [46]}, {}]"
        yield Problem("queue.classes", f"the discipline {queue.discipline} needs classes", path, cure)
    if classed:
        yield from _classes(queue, path)
    for name in sorted(queue.model_fields_set):
        owners = queues.owners(name)
        if owners and getattr(queue, name) is not None and queue.discipline not in owners:
            yield Problem(
                "queue.discipline",
                f"{name!r} is no setting of the discipline {queue.discipline}",
                (*path, name),
                f"set discipline: {' or '.join(owners)}",
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
            wrong = list(_native_queue(said, wire.said_at(word, "queue"), wire.said_at(word, "overhead")))
            yield from wrong
            if wrong:
                # The other direction may have the same words.
                break


def _native_queue(said: Direction, queue: Path_, overhead: Path_) -> Iterator[Problem]:
    """Refuses what the shaper of a native link does not do, and all of it without a rate."""
    cure = "leave it out, or make the nodes of kind netns"
    if said.queue is not None:
        plain = Queue(packets=said.queue.packets)
        for name in Queue.model_fields:
            if getattr(said.queue, name) != getattr(plain, name):
                yield Problem(
                    "native.link",
                    f"the queue of a link between native nodes has no {name!r}, only a limit in packets",
                    (*queue, name),
                    cure,
                )
                return
    for name, path in (("queue", queue), ("overhead", overhead)):
        if getattr(said, name) is not None and not isinstance(said.rate, int):
            yield Problem(
                "native.link",
                f"a link between native nodes has {name!r} with a rate alone",
                path,
                "give it a rate, or make the nodes of kind netns",
            )
            return
