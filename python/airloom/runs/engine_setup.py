"""Builds the network of a plan in the engine: ports, switches, links, media and tunnels."""

from __future__ import annotations

from collections.abc import Mapping

from airloom import _engine
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import LinkPlan, MediumPlan, NodePlan, Plan, TunnelPlan
from airloom.runs import underlay


def add_network(engine: _engine.Engine, plan: Plan, nodes: Mapping[str, NodeHandle]) -> None:
    """Adds ports, switches and links in the plan's order, which is then the engine's order, and media."""
    for node in plan.nodes.values():
        add_ports(engine, node, nodes[node.name])
    for switch in plan.switches.values():
        engine.add_switch(switch.name, switch.settings)
    for link in plan.links.values():
        if is_emulated(plan, link):
            add_link(engine, link)
            for end, vlans in zip("ab", link.vlans, strict=True):
                if vlans is not None:
                    engine.set_vlan(link.name, end, vlans)
    for medium in plan.media.values():
        _add_medium(engine, medium)


def is_emulated(plan: Plan, link: LinkPlan) -> bool:
    """True for links of the engine; False for a veth pair between two native nodes."""
    nodes = (plan.nodes.get(end.partition(":")[0]) for end in (link.a, link.b))
    return not all(node is not None and node.kind == "native" for node in nodes)


def add_link(engine: _engine.Engine, link: LinkPlan) -> None:
    """Adds a link."""
    engine.connect(link.name, link.a, link.b, link.forward.engine(), link.backward.engine())


def add_ports(engine: _engine.Engine, node: NodePlan, handle: NodeHandle) -> None:
    """Adds a port for each interface of a node."""
    taps, vhost_sockets = handle.taps, handle.vhost_sockets
    for interface in node.interfaces:
        port = f"{node.name}:{interface.name}"
        if interface.real is not None:
            engine.add_interface_port(port, interface.real)
        elif interface.name in vhost_sockets:
            mac, mtu = interface.mac, interface.mtu
            listener, transit = vhost_sockets[interface.name], node.transit
            engine.add_vhost_port(port, listener, mac, mtu, transit, handle.handling)
        elif interface.wlan is not None:
            device, wlan = handle.wlan_device, interface.wlan
            assert device is not None
            engine.add_wlan_port(port, device, wlan.number, wlan.phy, node.transit)
        elif interface.name in taps:
            tap = taps[interface.name]
            engine.add_tap_port(port, tap, node.transit, handle.needs_checksums)
        monitor = handle.monitors.get(interface.name)
        if monitor is not None:
            engine.set_monitor(port, monitor.listener, monitor.card)


def add_tunnel(engine: _engine.Engine, tunnel: TunnelPlan, name: str, sockets: underlay.Sockets) -> None:
    """Adds the port of a tunnel."""
    engine.add_tunnel_port(
        name,
        sockets.receive.fileno(),
        sockets.send.fileno(),
        str(tunnel.remote),
        tunnel.encapsulation,
    )


def _add_medium(engine: _engine.Engine, medium: MediumPlan) -> None:
    engine.add_medium(medium.name, medium.settings)
    for radio in medium.radios:
        engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.mover)
        if radio.grant is not None:
            engine.police(radio.port, radio.grant.engine())
        if not radio.up:
            engine.set_radio(radio.port, {"on": False})
    for card in medium.cards:
        engine.add_card(medium.name, card.name, card.settings, list(card.ports))
    for sender, receiver, share in medium.frame_errors:
        engine.set_frame_error(sender, receiver, share)
    for number, (settings, motion) in enumerate(medium.noise):
        engine.add_noise(medium.name, settings, motion, f"noise {number} of {medium.name}")
