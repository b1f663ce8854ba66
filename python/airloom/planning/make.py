"""Makes the plan of a checked scenario."""

from __future__ import annotations

from ipaddress import ip_interface

from airloom.planning import replayed, whole_seconds
from airloom.planning.links import encoding, series, tunnels, vlans, without_effect
from airloom.planning.links.addresses import assign
from airloom.planning.links.ports import Port, Segment, ports_of, segments_of, set_mtus
from airloom.planning.machine import cpus, guests, turns
from airloom.planning.machine.containers import image_of
from airloom.planning.machine.processors import plans as processor_plans
from airloom.planning.network import Network, Sliver, forwards
from airloom.planning.openflow import switches as openflow
from airloom.planning.plan import (
    CardPlan,
    GrantPlan,
    InterfacePlan,
    LinkPlan,
    MediumPlan,
    MountPlan,
    NodePlan,
    Plan,
    PublishPlan,
    RadioPlan,
    SwitchPlan,
)
from airloom.planning.radio import media
from airloom.planning.radio.kernel_bridges import over_bridges, with_bridge
from airloom.planning.radio.movement import ALWAYS, Track
from airloom.planning.radio.radios import RadioEnd
from airloom.planning.routing import lifetime
from airloom.planning.routing.routes import routes
from airloom.scenario.model import Adapter, Scenario, Switch
from airloom.scenario.problems import Problem, Problems
from airloom.units.given import given


def make(scenario: Scenario, network: Network) -> Plan:
    """Returns the plan of a checked scenario; raises :class:`Problems`."""
    ports, problems = ports_of(network)
    segments = segments_of(network, ports)
    problems += set_mtus(network, segments)
    problems += assign(segments, {4: scenario.addresses.ipv4, 6: scenario.addresses.ipv6})
    problems += _ipv6_mtus(ports)
    problems += _macs(segments, ports)
    if problems:
        raise Problems(problems)
    by_node: dict[str, list[Port]] = {name: [] for name in network.nodes}
    for port in ports:
        by_node[port.node].append(port)
    forwarding = {
        name
        for name, node in network.nodes.items()
        if forwards(node, sum(not port.member for port in by_node[name]))
    }
    _alone(network, ports)
    # The guest kernel of kind uml has no routes with several next hops.
    single = {
        name
        for name, node in network.nodes.items()
        if scenario.equal_paths == "one" or (node.kind or scenario.kind) == "uml"
    }
    tables = routes(network, segments, forwarding, scenario.routes, single)
    lasting = lifetime.settings(network, (4, 6))
    wlans = guests.wlans(scenario, network.radios, network.nodes)
    interfaces = {
        name: with_bridge(
            [
                InterfacePlan(
                    port.name,
                    port.mac,
                    port.mtu,
                    tuple(port.addresses),
                    port.medium or network.wires[port.wire].name,
                    port.settings.real,
                    wlans.get(f"{name}:{port.name}"),
                    encoding.offloads(node, port.settings),
                )
                for port in by_node[name]
            ],
            {port.name for port in by_node[name] if port.member},
            network.bridges.get(name),
        )
        for name, node in network.nodes.items()
    }
    nodes = {
        name: NodePlan(
            name,
            node.kind or scenario.kind,
            interfaces[name],
            tuple(over_bridges(interfaces[name], tables.get(name, ()))),
            name in forwarding,
            node.cpu,
            dict(node.files),
            _sysctl(by_node[name], lasting)
            | _redirects(by_node[name], name in forwarding)
            | {key: str(value) for key, value in node.sysctl.items()},
            image=image_of(scenario, node),
            guest=guests.plan(scenario, node, any(f"{name}:{port.name}" in wlans for port in by_node[name])),
            mounts=tuple(MountPlan(one.source, one.target, one.mode == "rw") for one in node.mounts),
            publish=tuple(
                PublishPlan(one.port, one.host_address, given(one.host_port, one.port), one.protocol)
                for one in node.publish
            ),
            collect=tuple(node.collect),
        )
        for name, node in network.nodes.items()
    }
    switch_ports = openflow.switch_ports(network, segments)
    nodes |= openflow.node_plans(scenario, network, switch_ports)
    processors = cpus.assigned(scenario, network)
    nodes = cpus.applied(nodes, processors)
    ends: dict[tuple[int, int], str] = {(port.wire, port.side): f"{port.node}:{port.name}" for port in ports}
    ends |= {(port.wire, port.side): f"{port.switch}:{port.name}" for port in switch_ports}
    adapters = {(port.wire, port.side): port.settings.adapter for port in ports if port.wire >= 0}

    def far(wire: int, side: int) -> Adapter | Switch | None:
        return adapters.get((wire, side)) or network.switches.get(network.wires[wire].ends[side].name)

    knowing = vlans.aware(network)
    links = {
        wire.name: LinkPlan(
            wire.name,
            ends.get((index, 0), wire.ends[0].name),
            ends.get((index, 1), wire.ends[1].name),
            encoding.wire(wire.forward, adapters.get((index, 0)), far(index, 1)),
            encoding.wire(wire.backward, adapters.get((index, 1)), far(index, 0)),
            vlans=vlans.settings(network, knowing, wire),
            series=(wire.forward.series, wire.backward.series),
        )
        for index, wire in enumerate(network.wires)
    }
    switches = {
        name: SwitchPlan(name, encoding.switch(switch))
        for name, switch in network.switches.items()
        if name not in network.open_switches
    }
    hosts = {
        name: str(addresses[0].ip)
        for name, plan in nodes.items()
        if (addresses := [one for interface in plan.interfaces for one in interface.addresses])
    }
    return Plan(
        scenario,
        scenario.seed,
        nodes,
        switches,
        links,
        hosts,
        media=_media(scenario, network, ports),
        tunnels=tunnels.plans(network, segments),
        notes=(
            *network.notes,
            *without_effect.notes(scenario, network),
            *whole_seconds.notes(scenario),
            *replayed.notes(scenario),
            *media.notes_of_traces(network),
            *series.notes(network),
        ),
        engine_processors=processors.engine,
        engine_scheduling=processors.engine_scheduling,
        turns=turns.plans(scenario),
        processors=processor_plans(scenario),
    )


def _alone(network: Network, ports: list[Port]) -> None:
    """Assigns radios of nodes with a routing daemon host addresses, so that no peer is on-link."""
    for port in ports:
        if port.medium is None or network.routing[port.node].protocol == "static":
            continue
        given = {address for address, _ in port.given}
        port.addresses = [
            address if address in given else ip_interface(address.ip) for address in port.addresses
        ]


def _media(scenario: Scenario, network: Network, ports: list[Port]) -> dict[str, MediumPlan]:
    macs = {f"{port.node}:{port.name}": port.mac for port in ports if port.medium is not None}
    numbers = media.traced(network)
    motions: dict[str, dict[str, object]] = {}
    tracks: dict[str, Track] = {}
    found = {}
    for name, medium in scenario.media.items():
        cards = media.cards(name, medium, network.radios)
        movers = {end.port: network.mover(end.node) for end in network.radios}
        movers |= {end.port: movers[shared[0].port] for shared in cards.values() for end in shared}
        leaders = {end.port: shared[0].node for shared in cards.values() for end in shared}
        ends = [end for end in network.radios if end.medium == name]
        of_node: dict[str, str] = {}
        for end in ends:
            of_node.setdefault(end.node, end.port)
            if end.node not in motions:
                node = network.nodes[end.node]
                number = numbers.get(end.node, 0)
                motions[end.node] = media.motion(node, number)
                if node.mobility is not None and end.node in numbers:
                    tracks[end.node] = media.track(node.mobility, number)
        found[name] = MediumPlan(
            name,
            media.medium(medium, [end.node for end in ends]),
            tuple(
                RadioPlan(
                    end.port,
                    end.node,
                    media.radio(end, macs[end.port], bridged=_is_bridged(network, end)),
                    motions[leaders.get(end.port, end.node)],
                    bool(end.said.get("up", True)) and tracks.get(end.node, ALWAYS).on_at_zero(),
                    _grant(network.slivers.get(end.node), scenario, end),
                    movers[end.port] if movers[end.port] != end.node else "",
                    tracks.get(end.node, ALWAYS).later() if end.said.get("up", True) else (),
                )
                for end in ends
            ),
            tuple(
                (of_node.get(pair.source, pair.source), of_node.get(pair.to, pair.to), pair.rate)
                for pair in medium.frame_errors
            ),
            tuple((media.noise(noise), media.motion(noise)) for noise in medium.noise),
            tuple(
                CardPlan(card, media.card(medium.cards[card]), tuple(end.port for end in shared))
                for card, shared in cards.items()
                if shared
            ),
        )
    return found


def _is_bridged(network: Network, end: RadioEnd) -> bool:
    bridge = network.bridges.get(end.node)
    return bridge is not None and end.name in bridge.radios


def _grant(sliver: Sliver | None, scenario: Scenario, end: RadioEnd) -> GrantPlan | None:
    if sliver is None:
        return None
    one = scenario.slices[sliver.slice]
    return GrantPlan(
        sliver.slice,
        sliver.channels,
        None if sliver.grant.power is None else float(sliver.grant.power),
        (end.said["ssid"],),
        {"cut": one.violations} if one.police == "cut" else one.police,
        sliver.grant.airtime_weight,
        f"{sliver.node}:{sliver.radio}",
        sliver.held,
    )


def _sysctl(ports: list[Port], far: dict[str, str]) -> dict[str, str]:
    """Returns the TTL sysctls for the address families of a node's ports."""
    if not far:
        return {}
    versions = {address.version for port in ports for address in port.addresses}
    return {key: value for key, value in far.items() if any(lifetime.SYSCTL[one] == key for one in versions)}


def _redirects(ports: list[Port], forwarding: bool) -> dict[str, str]:
    """Disables ICMP redirects on a radio router, which relays packets on one interface."""
    radios = [port.name for port in ports if port.medium is not None]
    if not forwarding or not radios:
        return {}
    return {f"net.ipv4.conf.{name}.send_redirects": "0" for name in ("all", *radios)}


def _macs(segments: list[Segment], ports: list[Port]) -> list[Problem]:
    """Assigns locally administered MACs, counted in the order of the links; skips given ones.

    In a segment with a tunnel they are derived from the IP addresses, because other laboratories
    count too.
    """
    problems: list[Problem] = []
    taken: dict[str, Port] = {}
    for port in ports:
        if port.settings.mac is None:
            continue
        port.mac = port.settings.mac.lower()
        path = ("nodes", port.node, "interfaces", port.name, "mac")
        if int(port.mac[:2], 16) & 1:
            problems.append(
                Problem("mac.group", f"{port.mac} is a group address", path, "the first octet is even")
            )
        if port.mac in taken:
            other = taken[port.mac]
            problems.append(
                Problem("mac.clash", f"{port.mac} already belongs to {other.node}:{other.name}", path)
            )
        taken[port.mac] = port
    for port in (port for segment in segments if segment.tunnels for port in segment.ports if port.addresses):
        mac = "02:01:" + port.addresses[0].ip.packed[-4:].hex(":")
        if not port.mac and mac not in taken:
            port.mac, taken[mac] = mac, port
    number = 0
    for port in ports:
        while not port.mac:
            number += 1
            mac = "02:00:" + number.to_bytes(4, "big").hex(":")
            if mac not in taken and mac not in guests.RADIO_MACS:
                port.mac = mac
    return problems


def _ipv6_mtus(ports: list[Port]) -> list[Problem]:
    problems = []
    for port in ports:
        if port.mtu < 1280 and any(address.version == 6 for address in port.addresses):
            problems.append(
                Problem(
                    "link.mtu",
                    f"MTU {port.mtu} at {port.node}:{port.name} is too small for its IPv6 address",
                    port.path,
                    "IPv6 needs 1280 (RFC 8200)",
                )
            )
    return problems
