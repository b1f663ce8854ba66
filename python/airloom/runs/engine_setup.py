"""Builds the network of a plan in the engine: ports, switches, links, media and tunnels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airloom import _engine
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import InterfacePlan, LinkPlan, MediumPlan, NodePlan, Plan, RadioPlan, TunnelPlan
from airloom.runs import underlay


def add_network(engine: _engine.Engine, plan: Plan, nodes: Mapping[str, NodeHandle]) -> set[str]:
    """Adds ports, switches and links in the plan's order, which is then the engine's order, and media.

    Returns the ports of nodes.
    """
    ports: set[str] = set()
    for node in plan.nodes.values():
        add_ports(engine, node, nodes[node.name], ports)
    for switch in plan.switches.values():
        engine.add_switch(switch.name, switch.settings)
    for link in plan.links.values():
        if is_emulated(plan, link):
            add_link(engine, link)
            set_vlans(engine, link)
    for medium in plan.media.values():
        add_medium(engine, medium)
    return ports


def is_emulated(plan: Plan, link: LinkPlan) -> bool:
    """True for links of the engine; False for a veth pair between two native nodes."""
    nodes = (plan.nodes.get(end.partition(":")[0]) for end in (link.a, link.b))
    return not all(node is not None and node.kind == "native" for node in nodes)


def add_link(engine: _engine.Engine, link: LinkPlan) -> None:
    """Adds a link."""
    engine.connect(link.name, link.a, link.b, link.forward.engine(), link.backward.engine())


def set_vlans(engine: _engine.Engine, link: LinkPlan) -> None:
    """Sets the VLANs that a link carries at its switches."""
    for end, vlans in zip("ab", link.vlans, strict=True):
        if vlans is not None:
            engine.set_vlan(link.name, end, vlans)


def add_ports(
    engine: _engine.Engine,
    node: NodePlan,
    handle: NodeHandle,
    there: set[str],
    interfaces: Sequence[InterfacePlan] | None = None,
) -> None:
    """Adds a port for each of a node's interfaces, by default all, to the engine and to ``there``.

    Ports that are ``there`` get the device of an interface that was made anew.
    """
    taps, vhost_sockets = handle.taps, handle.vhost_sockets
    for interface in node.interfaces if interfaces is None else interfaces:
        port = f"{node.name}:{interface.name}"
        if port in there:
            _renew(engine, port, interface, node, handle)
            continue
        if not interface.bridge:
            there.add(port)
        if interface.real is not None:
            engine.add_interface_port(port, interface.real)
        elif interface.name in vhost_sockets:
            mac, mtu = interface.mac, interface.mtu
            listener, transit = vhost_sockets[interface.name], node.transit
            offloads = interface.offloads.engine
            engine.add_vhost_port(
                port, listener, mac, mtu, transit, handle.handling, offloads, handle.calendar_guest
            )
        elif interface.wlan is not None:
            device, wlan = handle.wlan_device, interface.wlan
            assert device is not None
            engine.add_wlan_port(port, device, wlan.number, wlan.phy, node.transit, handle.calendar_guest)
        elif interface.name in taps:
            tap = taps[interface.name]
            offloads = interface.offloads.engine
            engine.add_tap_port(port, tap, node.transit, handle.needs_checksums, offloads)
        monitor = handle.monitors.get(interface.name)
        if monitor is not None:
            engine.set_monitor(port, monitor.listener, monitor.card)


def _renew(
    engine: _engine.Engine, port: str, interface: InterfacePlan, node: NodePlan, handle: NodeHandle
) -> None:
    offloads = interface.offloads.engine
    if interface.name in handle.vhost_sockets:
        listener = handle.vhost_sockets[interface.name]
        engine.attach_vhost(port, listener, interface.mac, interface.mtu, handle.handling, offloads)
    else:
        engine.attach_tap(port, handle.taps[interface.name], handle.needs_checksums, offloads)
    engine.set_transit(port, node.transit)


def add_tunnel(engine: _engine.Engine, tunnel: TunnelPlan, name: str, sockets: underlay.Sockets) -> None:
    """Adds the port of a tunnel."""
    engine.add_tunnel_port(
        name,
        sockets.receive.fileno(),
        sockets.send.fileno(),
        str(tunnel.remote),
        tunnel.encapsulation,
    )


def add_medium(engine: _engine.Engine, medium: MediumPlan) -> None:
    """Adds a medium with all that it has."""
    engine.add_medium(medium.name, medium.settings)
    for radio in medium.radios:
        add_radio(engine, medium.name, radio)
    add_cards(engine, medium)
    for sender, receiver, share in medium.frame_errors:
        engine.set_frame_error(sender, receiver, share)
    add_noise(engine, medium)


def add_radio(engine: _engine.Engine, medium: str, radio: RadioPlan) -> None:
    """Adds a radio to a medium."""
    engine.add_radio(medium, radio.port, radio.settings, radio.motion, radio.mover)
    if radio.grant is not None:
        engine.police(radio.port, radio.grant.engine())
    if not radio.up:
        engine.set_radio(radio.port, {"on": False})


def add_cards(engine: _engine.Engine, medium: MediumPlan) -> None:
    """Makes radios that share a card do so."""
    for card in medium.cards:
        engine.add_card(medium.name, card.name, card.settings, list(card.ports))


def add_noise(engine: _engine.Engine, medium: MediumPlan) -> None:
    """Adds the sources of noise of a medium."""
    for number, (settings, motion) in enumerate(medium.noise):
        engine.add_noise(medium.name, settings, motion, f"noise {number} of {medium.name}")
