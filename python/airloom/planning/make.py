"""Makes the plan of a checked scenario."""

from __future__ import annotations

from ipaddress import ip_interface

from airloom.planning import cpus, guests, lifetime, media, openflow, settings, tunnels, vlans
from airloom.planning.addresses import assign
from airloom.planning.admission import Sliver
from airloom.planning.containers import image_of
from airloom.planning.network import Network, forwards
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
from airloom.planning.ports import Port, Segment, ports_of, segments_of, set_mtus
from airloom.planning.radios import RadioEnd
from airloom.planning.routes import routes
from airloom.scenario.model import Adapter, Scenario, Switch
from airloom.scenario.problems import Problem, Problems


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
    forwarding = {name for name, node in network.nodes.items() if forwards(node, len(by_node[name]))}
    _alone(network, ports)
    tables = routes(network, segments, forwarding, scenario.routes)
    lasting = lifetime.settings(network, (4, 6))
    wlans = guests.wlans(scenario, network.radios, network.nodes)
    nodes = {
        name: NodePlan(
            name,
            node.kind or scenario.kind,
            tuple(
                InterfacePlan(
                    port.name,
                    port.mac,
                    port.mtu,
                    tuple(port.addresses),
                    port.medium or network.wires[port.wire].name,
                    port.settings.real,
                    wlans.get(f"{name}:{port.name}"),
                )
                for port in by_node[name]
            ),
            tuple(tables.get(name, ())),
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
                PublishPlan(one.port, one.host_address, one.host_port or one.port, one.protocol)
                for one in node.publish
            ),
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
            settings.wire(wire.forward, adapters.get((index, 0)), far(index, 1)),
            settings.wire(wire.backward, adapters.get((index, 1)), far(index, 0)),
            vlans=vlans.settings(network, knowing, wire),
        )
        for index, wire in enumerate(network.wires)
    }
    switches = {
        name: SwitchPlan(name, settings.switch(switch))
        for name, switch in network.switches.items()
        if name not in network.open_switches
    }
    hosts = {
        name: str(plan.interfaces[0].addresses[0].ip)
        for name, plan in nodes.items()
        if plan.interfaces and plan.interfaces[0].addresses
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
        notes=tuple(network.notes),
        engine_processors=processors.engine,
        engine_scheduling=processors.engine_scheduling,
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
                motions[end.node] = media.motion(node, numbers.get(end.node, 0))
        found[name] = MediumPlan(
            name,
            media.medium(medium, [end.node for end in ends]),
            tuple(
                RadioPlan(
                    end.port,
                    end.node,
                    media.radio(end, macs[end.port]),
                    motions[leaders.get(end.port, end.node)],
                    bool(end.said.get("up", True)),
                    _grant(network.slivers.get(end.node), scenario, end),
                    movers[end.port] if movers[end.port] != end.node else "",
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
