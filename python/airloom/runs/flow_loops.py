"""Loops in the flow tables of a running laboratory: read from its Open vSwitches, and traced by them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from airloom.errors import LabError
from airloom.nodes.kinds.openvswitch import OpenVSwitchNode
from airloom.planning.links import areas
from airloom.planning.openflow.flow_loops import (
    MOST,
    FlowLoop,
    FlowLoops,
    FlowSwitch,
    Hop,
    Port,
    find,
    packet_text,
)
from airloom.planning.openflow.flow_tables import Rule, rules
from airloom.planning.openflow.switches import WHOLE
from airloom.runs.emulation import World

_TIMEOUT = 10.0
"""Seconds for one request to a switch."""
_NUMBERS = re.compile(r"^\s+(?:\S+) (\d+)/(\d+):", re.MULTILINE)
"""A port in the output of dpif/show: numbers in OpenFlow and in the data path."""


def found(world: World, *, most: int = MOST, trace: bool = True) -> FlowLoops:
    """Finds loops in the flow tables as they are now. ``trace``: asks the switches to agree."""
    nodes = {
        name: node
        for name, node in world.nodes.items()
        if isinstance(node, OpenVSwitchNode) and node.state == "up" and node.bridges
    }
    unread: list[str] = []
    switches: dict[str, FlowSwitch] = {}
    patched: dict[Port, Port] = {}
    ends: dict[str, Port] = {}
    for node in nodes.values():
        inner: dict[str, Port] = {}
        for bridge in node.bridges:
            name = node.name if bridge.name == WHOLE else f"{node.name}/{bridge.name}"
            try:
                table = rules(_dump(node, bridge.name, bridge.settings))
            except LabError as error:
                unread.append(f"{name}: its flow table was not read: {error.message}")
                continue
            trees = (bridge.settings.get(key) == "true" for key in ("stp_enable", "rstp_enable"))
            numbers = tuple(port.number for port in bridge.ports)
            switches[name] = FlowSwitch(numbers, table, floods=not any(trees))
            for port in bridge.ports:
                inner[port.name] = (name, port.number)
                ends[f"{node.name}:{port.name}"] = (name, port.number)
        for bridge in node.bridges:
            for port in bridge.ports:
                if port.peer in inner and port.name in inner:
                    patched[inner[port.name]] = inner[port.peer]
    links = patched | _links(world, ends, switches)
    edges = [end for end in ends.values() if end not in links]
    result = find(switches, links, edges, most=most)
    if trace:
        result.loops = [replace(loop, traced=_agree(nodes, loop)) for loop in result.loops]
    result.undecided += unread
    return result


def notes(world: World) -> list[str]:
    """Notes of the verdict on loops of the flow tables; without Open vSwitches none."""
    return [f"packets loop: {loop}" for loop in found(world, most=MOST // 10, trace=False).loops]


def _dump(node: OpenVSwitchNode, bridge: str, settings: Mapping[str, str]) -> str:
    version = settings.get("protocols", "[OpenFlow13]").strip("[]").rpartition(",")[2]
    return _output(node, ["ovs-ofctl", "--no-names", "-O", version, "dump-flows", bridge])


def _output(node: OpenVSwitchNode, command: list[str]) -> str:
    done = node.exec(command, timeout=_TIMEOUT)
    if not done.exit.ok:
        raise LabError("node.openvswitch", done.stderr.strip() or f"{command[0]} failed")
    return done.stdout


def _links(world: World, ends: Mapping[str, Port], switches: dict[str, FlowSwitch]) -> dict[Port, Port]:
    """Links between switches; those of the engine join ``switches``, with a rule of their own."""
    counts: dict[str, int] = {}
    joined: dict[Port, Port] = {}
    pairs = [(link.a, link.b) for link in world.plan.links.values()]
    shortest = (name for name, one in world.plan.switches.items() if areas.FORWARDING in one.settings)
    # An area forwards like one switch.
    members = areas.of_links(shortest, pairs)

    def port_of(end: str) -> Port | None:
        if end in world.plan.switches:
            end = members.get(end, end)
            counts[end] = counts.get(end, 0) + 1
            return end, counts[end]
        return ends.get(end)

    for link in world.plan.links.values():
        if link.a in members and link.b in members:
            continue
        a, b = port_of(link.a), port_of(link.b)
        if a is not None and b is not None:
            joined |= {a: b, b: a}
    for name, count in counts.items():
        action = "ALL" if world.plan.switches[name].settings == "hub" else "NORMAL"
        switches[name] = FlowSwitch(
            tuple(range(1, count + 1)), {0: [Rule(0, 0, None, {}, (action,), f"actions={action}")]}
        )
    return joined


def _agree(nodes: Mapping[str, OpenVSwitchNode], loop: FlowLoop) -> bool | None:
    """Whether ofproto/trace (ovs-vswitchd(8)) sends the sample the same way at every whole switch."""
    known = [hop for hop in loop.hops if hop.switch in nodes]
    if not known:
        return None
    try:
        return all(_traced(nodes[hop.switch], hop) for hop in known)
    except LabError:
        return None


def _traced(node: OpenVSwitchNode, hop: Hop) -> bool:
    shown = _output(node, ["ovs-appctl", "dpif/show"])
    numbers = {int(one): other for one, other in _NUMBERS.findall(shown)}
    packet = f"in_port={hop.in_port},{packet_text(hop.packet)}"
    trace = _output(node, ["ovs-appctl", "ofproto/trace", WHOLE, packet])
    actions = trace.rpartition("Datapath actions:")[2].strip().splitlines()[0]
    outputs = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", actions).split(",")
    return numbers.get(hop.out_port) in outputs
