"""Rules of Open vSwitches, their controllers and slices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from airloom.planning.network import Network
from airloom.planning.openflow import flowspace
from airloom.planning.openflow.switches import BASE, KIND, PORT_NAME, WHOLE, links_of
from airloom.scenario.model import Flow, Scenario, Slice, Switch
from airloom.scenario.model.openflow import address_of, flow_words
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest

_OWN = ("controllers", "protocols", "fail_mode", "datapath_id", "spanning_tree", "offloads")
"""Keys of a switch that only Open vSwitch supports."""
_LONGEST = 15
"""Longest name of a bridge in octets: it is an interface name too."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with Open vSwitches."""
    for name, switch in scenario.switches.items():
        yield from _switch(name, switch, ("switches", name), scenario, network)
    yield from _generated(scenario, network)
    yield from _datapaths(scenario)
    yield from _ports(network)
    for name, slice_ in scenario.switch_slices.items():
        yield from _slice(name, slice_, scenario, network)
    yield from _shared(scenario, network)


def _generated(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks the settings that a topology gives all its switches."""
    if scenario.topology is None or scenario.topology.switch == Switch():
        return
    path: Path_ = ("topology", "switch")
    if not network.switches.keys() - scenario.switches.keys():
        yield Problem("switch.none", "the topology has no switches", path, "set switched: true", key=True)
    if scenario.topology.switch.datapath_id is not None:
        yield Problem(
            "switch.datapath", "many switches cannot have one datapath id", (*path, "datapath_id"), key=True
        )
    yield from _switch("the topology", scenario.topology.switch, path, scenario, network)


def _switch(
    name: str, switch: Switch, path: Path_, scenario: Scenario, network: Network
) -> Iterator[Problem]:
    if switch.kind != KIND:
        for key in _OWN:
            if key in switch.model_fields_set:
                yield Problem(
                    "switch.key",
                    f"{key!r} is no setting of a {switch.kind} of the engine",
                    (*path, key),
                    f"set kind: {KIND}",
                    key=True,
                )
        return
    if switch.controllers and scenario.switch_slices:
        yield Problem(
            "switch.sliced",
            f"{name!r} is shared by slices, which have controllers of their own",
            (*path, "controllers"),
            "give the controllers to the slices",
            key=True,
        )
    yield from _controllers(switch.controllers, (*path, "controllers"), scenario, network)


def _controllers(said: list[str], path: Path_, scenario: Scenario, network: Network) -> Iterator[Problem]:
    for number, controller in enumerate(said):
        host, _ = address_of(controller)
        where = (*path, number)
        if controller in said[:number]:
            yield Problem("controller.twice", f"{controller} stands here twice", where)
        elif host in network.switches:
            yield Problem(
                "controller.host", f"{host!r} is a switch, and no controller runs in it", where, "name a node"
            )
        elif host in network.nodes:
            kind = network.nodes[host].kind or scenario.kind
            if kind not in ("netns", "native", "container"):
                yield Problem(
                    "controller.host",
                    f"{host!r} is of kind {kind}: its programs cannot be reached from other nodes",
                    where,
                    "run the controller in a node of kind netns",
                )
        elif "." not in host and ":" not in host and host != "localhost":
            yield Problem(
                "controller.host", f"there is no node {host!r}", where, nearest(host, network.nodes)
            )


def _datapaths(scenario: Scenario) -> Iterator[Problem]:
    seen: dict[int, str] = {}
    for name, switch in scenario.switches.items():
        if switch.datapath_id is not None:
            other = seen.setdefault(switch.datapath_id, name)
            if other != name:
                yield Problem(
                    "switch.datapath",
                    f"the datapath id {switch.datapath_id} is that of {other!r}",
                    ("switches", name, "datapath_id"),
                    "controllers tell switches by it: give each its own",
                )


def _ports(network: Network) -> Iterator[Problem]:
    for wire in network.wires:
        for side, end in enumerate(wire.ends):
            if end.name not in network.open_switches or end.interface is None:
                continue
            if PORT_NAME.fullmatch(end.interface) is None:
                yield Problem(
                    "interface.switch",
                    f"{end.interface!r} is no port of {end.name!r}",
                    (*wire.path, "ends", side),
                    f"write {end.name!r} alone, or {end.name}:eth7 for port 7 of OpenFlow",
                )


def _slice(name: str, slice_: Slice, scenario: Scenario, network: Network) -> Iterator[Problem]:
    path: Path_ = ("slices", name)
    if not network.open_switches:
        yield Problem(
            "slice.switch",
            "no switch is an Open vSwitch, so there is nothing to slice",
            path,
            f"give a switch kind: {KIND}",
            key=True,
        )
    if len(name) > _LONGEST or name in (BASE, WHOLE, "lo") or PORT_NAME.fullmatch(name):
        yield Problem(
            "slice.name",
            f"{name!r} cannot be a slice's name: its part of a switch is a bridge of that name",
            path,
            f"at most {_LONGEST} letters and digits, and not {BASE}, {WHOLE}, lo or eth1",
            key=True,
        )
    yield from _controllers(slice_.controllers, (*path, "controllers"), scenario, network)
    known = links_of(network, Slice())
    for number, link in enumerate(slice_.links):
        if link not in known:
            yield Problem(
                "slice.link",
                f"no link {link!r} ends at an Open vSwitch",
                (*path, "links", number),
                nearest(link, sorted(known)),
            )
    if slice_.rest and slice_.flows:
        yield Problem(
            "slice.rest",
            "a slice has flows of its own or the rest, not both",
            (*path, "rest"),
            "take one of them out",
            key=True,
        )
    for number, flow in enumerate(slice_.flows):
        yield from _flow(flow, (*path, "flows", number))


def _flow(flow: Flow, path: Path_) -> Iterator[Problem]:
    if flow.protocol is None and flow.port is None and flow.network is None:
        yield Problem("flow.empty", "a flow says nothing", path, "protocol, port or network")
    elif flow.port is not None and flow.protocol not in ("tcp", "udp"):
        yield Problem(
            "flow.port", "only TCP and UDP have ports", (*path, "port"), "set protocol: tcp or udp", key=True
        )
    elif flow.network is not None and flow.network.version != 4:
        yield Problem("flow.network", f"{flow.network} is not an IPv4 prefix", (*path, "network"))
    elif flow.network is not None and flow.protocol in ("ipv6", "icmp6"):
        yield Problem(
            "flow.network",
            f"{flow.network} is an IPv4 prefix, and {flow.protocol} has no such addresses",
            (*path, "network"),
        )


def _shared(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Refuses slices that share a controller or claim the same frames on one link."""
    for (name, one), (other, two) in combinations(scenario.switch_slices.items(), 2):
        for controller in two.controllers:
            if controller in one.controllers:
                yield Problem(
                    "slice.controller",
                    f"{controller} is the controller of slice {name!r}",
                    ("slices", other, "controllers", two.controllers.index(controller)),
                    "one controller sees both slices as one network: give each slice its own",
                )
        links = sorted(links_of(network, one) & links_of(network, two))
        if not links or one.vlan != two.vlan:
            continue
        both = _claimed_twice(one, two)
        if both is not None:
            yield Problem(
                "slice.overlap",
                f"slices {name!r} and {other!r} both have {both} on link {links[0]}",
                ("slices", other),
                "separate them by links, by vlan, or by flows",
                key=True,
            )


def _claimed_twice(one: Slice, two: Slice) -> str | None:
    """Returns a text of what two slices on one link both claim; None if they are disjoint."""
    if one.rest and two.rest:
        return "the rest"
    if one.rest or two.rest:
        return None if (two if one.rest else one).flows else "everything"
    for a in one.flows or [Flow()]:
        for b in two.flows or [Flow()]:
            if flowspace.overlap(a, b):
                words = {flow_words(a), flow_words(b)} - {flow_words(Flow())}
                return " and ".join(sorted(words)) or "everything"
    return None
