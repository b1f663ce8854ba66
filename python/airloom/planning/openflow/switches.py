"""Plans Open vSwitches: their ports, their bridges, and the base bridge that isolates slices.

A switch without slices is one bridge, ``br0``. A switch with slices has one bridge for each, with
the same port numbers, behind a bridge ``base`` that has all interfaces and no controller. The base
forwards to each slice only its own frames, and sends out only those. So a slice's controllers see a
complete switch with ports, flows and counters of this slice only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airloom.planning.links.ports import DEFAULT_MTU, Segment
from airloom.planning.network import Network
from airloom.planning.openflow import flowspace
from airloom.planning.plan import (
    BridgePlan,
    BridgePortPlan,
    ControllerPlan,
    InterfacePlan,
    NodePlan,
    OffloadsPlan,
    OpenVSwitchPlan,
)
from airloom.scenario.model import Scenario, Slice, Switch
from airloom.scenario.model.openflow import PROTOCOLS, address_of

KIND = "openvswitch"
WHOLE, BASE = "br0", "base"
PORT_NAME = re.compile(r"eth([1-9][0-9]{0,3})", re.ASCII)
"""Name of a port; the number is its OpenFlow port number."""


@dataclass(slots=True)
class SwitchPort:
    """One port of an Open vSwitch, at one end of a wire."""

    switch: str
    number: int
    wire: int
    side: int
    mtu: int = DEFAULT_MTU

    @property
    def name(self) -> str:
        """Returns the port's name: ``eth1`` is port 1."""
        return f"eth{self.number}"


def switch_ports(network: Network, segments: Sequence[Segment] = ()) -> list[SwitchPort]:
    """Returns the ports of all Open vSwitches in link order; unnamed ones count from 1."""
    mtus = {index: segment.ports[0].mtu for segment in segments if segment.ports for index in segment.wires}
    named: dict[str, set[int]] = {}
    for wire in network.wires:
        for end in wire.ends:
            if end.name in network.open_switches and end.interface is not None:
                found = PORT_NAME.fullmatch(end.interface)
                if found is not None:
                    named.setdefault(end.name, set()).add(int(found.group(1)))
    following: dict[str, int] = {}
    ports = []
    for index, wire in enumerate(network.wires):
        for side, end in enumerate(wire.ends):
            if end.name not in network.open_switches:
                continue
            found = PORT_NAME.fullmatch(end.interface or "")
            if found is not None:
                number = int(found.group(1))
            else:
                number = following.get(end.name, 0) + 1
                while number in named.get(end.name, ()):
                    number += 1
                following[end.name] = number
            ports.append(SwitchPort(end.name, number, index, side, mtus.get(index, DEFAULT_MTU)))
    return ports


def datapath_ids(switches: Mapping[str, Switch]) -> dict[str, int]:
    """Returns the datapath id of every Open vSwitch; switches without one get the first free ids."""
    chosen = {name: switch for name, switch in switches.items() if switch.kind == KIND}
    taken = {switch.datapath_id for switch in chosen.values()}
    found: dict[str, int] = {}
    following = 0
    for name, switch in chosen.items():
        number = switch.datapath_id
        if number is None:
            following += 1
            while following in taken:
                following += 1
            number = following
        found[name] = number
    return found


def node_plans(scenario: Scenario, network: Network, ports: Sequence[SwitchPort]) -> dict[str, NodePlan]:
    """Returns the node plan of every Open vSwitch."""
    ids = datapath_ids(network.switches)
    mine: dict[str, list[SwitchPort]] = {name: [] for name in ids}
    for port in ports:
        mine[port.switch].append(port)
    numbers = {(port.wire, port.side): number for number, port in enumerate(ports, 1)}
    return {
        name: NodePlan(
            name,
            KIND,
            tuple(
                InterfacePlan(
                    port.name,
                    "02:01:" + numbers[(port.wire, port.side)].to_bytes(4, "big").hex(":"),
                    port.mtu,
                    (),
                    network.wires[port.wire].name,
                    offloads=OffloadsPlan(*2 * (network.switches[name].offloads,)),
                )
                for port in mine[name]
            ),
            (),
            False,
            None,
            {},
            {},
            _openvswitch(scenario, network, network.switches[name], ids[name], mine[name]),
        )
        for name in ids
    }


def links_of(network: Network, slice_: Slice) -> set[str]:
    """Returns the names of the links that a slice uses."""
    if slice_.links:
        return set(slice_.links)
    return {
        wire.name for wire in network.wires if any(end.name in network.open_switches for end in wire.ends)
    }


def controller_plan(text: str, nodes: Mapping[str, object]) -> ControllerPlan:
    """Parses a controller's address; a host that is a node's name means that node."""
    host, port = address_of(text)
    return ControllerPlan("127.0.0.1", port, host) if host in nodes else ControllerPlan(host, port)


def _openvswitch(
    scenario: Scenario, network: Network, switch: Switch, datapath: int, ports: Sequence[SwitchPort]
) -> OpenVSwitchPlan:
    if not scenario.switch_slices:
        whole = tuple(BridgePortPlan(port.name, port.number) for port in ports)
        return OpenVSwitchPlan((_bridge(WHOLE, switch, datapath, whole, switch.controllers, network),))
    base = [BridgePortPlan(port.name, port.number) for port in ports]
    following = max((port.number for port in ports), default=0)
    reach = {name: links_of(network, slice_) for name, slice_ in scenario.switch_slices.items()}
    bridges = []
    patches: dict[tuple[str, int], int] = {}
    for name, slice_ in scenario.switch_slices.items():
        own = []
        for port in ports:
            if network.wires[port.wire].name in reach[name]:
                following += 1
                outer, inner = f"{BASE}-{name}-{port.name}", f"{name}-{port.name}"
                own.append(BridgePortPlan(inner, port.number, outer))
                base.append(BridgePortPlan(outer, following, inner))
                patches[(name, port.number)] = following
        bridges.append(_bridge(name, switch, datapath, tuple(own), slice_.controllers, network))
    settings = {"fail_mode": "secure", "protocols": "[OpenFlow13]"}
    flows: list[str] = []
    for port in ports:
        link = network.wires[port.wire].name
        here = {name: slice_ for name, slice_ in scenario.switch_slices.items() if link in reach[name]}
        flows += _separation(port.number, here, patches)
    return OpenVSwitchPlan((BridgePlan(BASE, tuple(base), (), settings), *bridges), tuple(flows))


def _bridge(
    name: str,
    switch: Switch,
    datapath: int,
    ports: tuple[BridgePortPlan, ...],
    controllers: Sequence[str],
    network: Network,
) -> BridgePlan:
    fail_mode = switch.fail_mode or ("secure" if controllers else "standalone")
    settings = {
        "fail_mode": fail_mode,
        "protocols": f"[{','.join(switch.protocols or PROTOCOLS)}]",
        "stp_enable": "true" if switch.spanning_tree == "stp" else "false",
        "rstp_enable": "true" if switch.spanning_tree == "rstp" else "false",
        "other_config:datapath-id": f"{datapath:016x}",
        "other_config:mac-aging-time": str(max(1, int(switch.ageing) // 1_000_000_000)),
        "other_config:mac-table-size": str(switch.addresses),
    }
    places = tuple(controller_plan(one, network.nodes) for one in controllers)
    return BridgePlan(name, ports, places, settings)


_LOST, _CLAIMED, _REST = 30, 20, 10
"""Priorities in the base: contested frames, frames claimed by a slice, the rest."""


def _separation(port: int, here: Mapping[str, Slice], patches: Mapping[tuple[str, int], int]) -> list[str]:
    """Returns the base's flows for one interface and the slices on its link."""
    rows: list[str] = []
    shared = len(here) > 1
    for tag in dict.fromkeys(slice_.vlan if shared else None for slice_ in here.values()):
        together = {name: one for name, one in here.items() if not shared or one.vlan == tag}
        outside = f"in_port={port}" + _tagged(tag, shared)
        contested = flowspace.contested([one.flows for one in together.values()])
        for name, slice_ in together.items():
            patch = patches[(name, port)]
            # A slice with its own VLAN tag keeps its inner tags on links that it does not share.
            inside = f"in_port={patch}" + (_tagged(None, shared) if tag is None else "")
            enter = f"pop_vlan,output:{patch}" if tag is not None else f"output:{patch}"
            push = f"push_vlan:0x8100,set_field:{0x1000 | (tag or 0)}->vlan_vid,"
            leave = f"{push if tag is not None else ''}output:{port}"
            for match in contested:
                rows += [_row(_LOST, way, match, "drop") for way in (outside, inside)]
            if slice_.rest:
                others = [
                    match
                    for one in together.values()
                    for flow in one.flows
                    for match in flowspace.matches(flow)
                ]
                rows += [_row(_CLAIMED, inside, match, "drop") for match in others]
            mine = [match for flow in slice_.flows for match in flowspace.matches(flow)] or [{}]
            priority = _REST if slice_.rest else _CLAIMED
            for match in mine:
                rows += [_row(priority, outside, match, enter), _row(priority, inside, match, leave)]
    return list(dict.fromkeys(rows))


def _tagged(tag: int | None, shared: bool) -> str:
    """Returns the part of a match that selects frames by their tag on a link."""
    if tag is not None:
        return f",dl_vlan={tag}"
    return ",vlan_tci=0x0000/0x1000" if shared else ""


def _row(priority: int, way: str, match: flowspace.Match, actions: str) -> str:
    said = flowspace.text(match)
    return f"priority={priority},{way}{',' if said else ''}{said},actions={actions}"
