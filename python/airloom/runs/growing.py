"""Changes the nodes, switches and links of a running emulation to those of another plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airloom.errors import translated
from airloom.nodes.kind import NodeHandle
from airloom.planning import timed_changes
from airloom.planning.difference import Difference
from airloom.planning.plan import LinkPlan, NodePlan, Plan
from airloom.runs import engine_setup
from airloom.runs.emulation import World


def grow(world: World, plan: Plan, name: str) -> NodeHandle:
    """Adds the new node of an extended plan and connects its links."""
    world.all_nodes.announce(plan.hosts)
    handle = world.add_node(plan.nodes[name])
    before, world.plan = world.plan, plan
    for link in plan.links.values():
        if link.name not in before.links:
            connect(world, link)
    return handle


def add_nodes(world: World, difference: Difference) -> None:
    """Adds the new nodes, all or none; nothing else has changed after an error."""
    world.all_nodes.announce(difference.after.hosts)
    try:
        for name in difference.nodes_added:
            world.add_node(difference.after.nodes[name], publish=False)
        world.published.reserve(difference.after.nodes.values())
    except BaseException:
        remove_new_nodes(world, difference)
        raise


def remove_new_nodes(world: World, difference: Difference) -> None:
    """Takes back what :func:`add_nodes` did."""
    for name in difference.nodes_added:
        if name in world.nodes:
            remove_node(world, difference.after.nodes[name])
    world.published.follow(difference.before.nodes.values())
    world.all_nodes.announce(difference.before.hosts)


def carry_out(world: World, difference: Difference, plan: Plan) -> None:
    """Makes all other changes; ``plan`` is that of the laboratory from then on."""
    before, after = difference.before, difference.after
    clear_media(world, difference)
    for name in difference.links_removed:
        if world.is_emulated(before.links[name]):
            with translated():
                world.engine.disconnect(name)
        world.link_states.forget(name)
    for name in difference.nodes_removed:
        remove_node(world, before.nodes[name])
    # Their links must not bring back those that are out.
    kept = {name: link for name, link in before.links.items() if name not in difference.links_removed}
    world.plan = replace(world.plan, links=kept)
    for name in difference.nodes_restarted:
        world.silence(name)
        remove_node(world, before.nodes[name])
        world.add_node(after.nodes[name], publish=False)
        world.unsilence(name)
    for name in difference.nodes_changed:
        _change_node(world, before.nodes[name], after.nodes[name])
    with translated():
        for name in difference.switches_set:
            _set_switch(world, name, after)
    world.plan = plan
    for name in difference.links_added:
        connect(world, after.links[name])
    _set_links(world, difference)
    set_media(world, difference)
    world.control_radios(after)
    world.published.follow(after.nodes.values())
    if difference.moves_addresses:
        world.all_nodes.forget_neighbours()


def _set_switch(world: World, name: str, plan: Plan) -> None:
    """Adds a switch, or sets it anew."""
    settings = plan.switches[name].settings
    if name in world.switches:
        world.engine.set_switch(name, settings)
    else:
        world.engine.add_switch(name, settings)
    world.switches[name] = settings


def connect(world: World, link: LinkPlan) -> None:
    """Connects a link, whose ends may have lost their carrier with an earlier one."""
    if not world.is_emulated(link):
        return
    with translated():
        engine_setup.add_link(world.engine, link)
        engine_setup.set_vlans(world.engine, link)
        world.engine.set_link_up(link.name, True)


def remove_node(world: World, node: NodePlan) -> None:
    """Ends a node; its ports stay without a device."""
    _detach(world, node, (interface.name for interface in node.interfaces))
    world.drop_node(node.name)


def _detach(world: World, node: NodePlan, interfaces: Iterable[str]) -> None:
    with translated():
        for port in (f"{node.name}:{interface}" for interface in interfaces):
            if port in world.ports:
                world.engine.detach(port)


def _change_node(world: World, before: NodePlan, after: NodePlan) -> None:
    """Changes the network stack of a node while its programs run."""
    there = {interface.name for interface in after.interfaces}
    _detach(world, before, (one.name for one in before.interfaces if one.name not in there))
    touched = {one.name for one in after.interfaces if one not in before.interfaces}
    with world.forgiving(after.name, touched):
        world.all_nodes.change(after)
    old = {interface.name for interface in before.interfaces}
    new = tuple(interface for interface in after.interfaces if interface.name not in old)
    handle = world.nodes[after.name]
    with translated():
        engine_setup.add_ports(world.engine, after, handle, world.ports, new)
        if before.transit != after.transit:
            for interface in after.interfaces:
                if f"{after.name}:{interface.name}" in world.ports:
                    world.engine.set_transit(f"{after.name}:{interface.name}", after.transit)


def _set_links(world: World, difference: Difference) -> None:
    for name, direction, settings in difference.links_set:
        world.set_link(name, direction, settings)
    for name, up in difference.links_raised:
        world.set_link_up(name, up)
    with translated():
        for name in difference.links_tagged:
            engine_setup.set_vlans(world.engine, difference.after.links[name])


def clear_media(world: World, difference: Difference) -> None:
    """Takes out the radios that go or are made anew, and the noise of media that get other noise."""
    with translated():
        for name in difference.radio.noise_set:
            if name in world.laws:
                world.engine.remove_noise(name)
        for port in difference.radio.removed:
            world.engine.remove_radio(port)


def set_media(world: World, difference: Difference) -> None:
    """Gives the engine new media, laws, radios and noise, after :func:`clear_media`."""
    found, media = difference.radio, difference.after.media
    with translated():
        for name in found.media_set:
            if name in world.laws:
                world.engine.set_medium(name, media[name].settings)
            else:
                world.engine.add_medium(name, media[name].settings)
            world.laws[name] = media[name].settings
        for name, radio in found.added:
            engine_setup.add_radio(world.engine, name, radio)
        _bring_up_to_date(world, difference)
        for name, medium in media.items():
            if name not in difference.before.media:
                engine_setup.add_cards(world.engine, medium)
            if name in found.noise_set:
                engine_setup.add_noise(world.engine, medium)
        for radio in found.moved:
            world.engine.set_motion(radio.port, radio.motion, radio.mover)
        for sender, receiver, share in found.frame_errors:
            world.engine.set_frame_error(sender, receiver, share)
        for port, change in found.changes:
            world.engine.set_radio(port, change)


def _bring_up_to_date(world: World, difference: Difference) -> None:
    """Makes the changes of new radios that their scenario has for earlier."""
    new, now = {radio.port for _, radio in difference.radio.added}, world.now()
    for change in timed_changes.radio_changes(difference.after) if new else ():
        if change.port in new and change.at <= now:
            world.engine.set_radio(change.port, change.change)
