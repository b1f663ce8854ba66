"""Extends the plan of a running laboratory: by a node, or by changes of grants.

They are written into the scenario, which then passes the same gate as every other scenario. Existing
nodes keep their addresses and MACs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from airloom.errors import RunError, ScenarioError
from airloom.planning.expand import expand
from airloom.planning.gate import check
from airloom.planning.plan import GrantPlan, InterfacePlan, Plan
from airloom.scenario import problems
from airloom.scenario.model import Scenario
from airloom.scenario.source import Source


def grown(plan: Plan, name: str, properties: Mapping[str, Any], links: Sequence[dict[str, Any]]) -> Plan:
    """Returns the plan with one more node and its links to switches.

    An interface without an address gets the next free one of its segment. Raises
    :class:`ScenarioError` for invalid properties.
    """
    if name in plan.nodes or name in plan.switches:
        what = "node" if name in plan.nodes else "switch"
        raise RunError("node.exists", f"there is a {what} {name} already")
    raw = plan.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    raw["nodes"] = {**_pinned(plan, raw.get("nodes") or {}), name: dict(properties)}
    more = [_addressed(plan, name, number, link) for number, link in enumerate(links)]
    raw["links"] = [*(raw.get("links") or []), *more]
    made = check(_scenario(raw)).plans[0]
    for old in plan.nodes.values():
        if made.nodes[old.name].interfaces != old.interfaces:
            raise RunError("lab.grow", f"{name} cannot be added: node {old.name} would have to change")
    return replace(plan, scenario=made.scenario, nodes=made.nodes, links=made.links, hosts=made.hosts)


def regranted(plan: Plan, at: int, changes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Returns the plan with new limits of grants, by slice, from engine time ``at`` in ns on.

    All changes take effect together, so that a slice can hand over what another one takes. Raises
    :class:`ScenarioError` for invalid limits, for two slices that would hold the same thing then or at
    a later change, and for a radio on a node where the slice has no sliver.
    """
    raw = plan.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for name in changes:
        if name not in plan.scenario.slices:
            cure = f"slices are: {', '.join(plan.scenario.slices) or 'none'}"
            raise ScenarioError("slice.unknown", f"there is no slice {name!r}", cure=cure)
    # A sliver stays, also if another change of the same time takes the place of the event that made it.
    for name, later in _made_later(plan).items():
        grant = raw["slices"][name]["grant"]
        grant["standby"] = [*(grant.get("standby") or []), *later]
    more = [{"at": f"{at} ns", "slice": name, "grant": dict(one)} for name, one in changes.items()]
    raw["events"] = [*(raw.get("events") or []), *more]
    made = check(_scenario(raw)).plans[0]
    grants = _grants(made)
    for port, grant in grants.items():
        before = _grants(plan).get(port)
        if before is None or before.radio != grant.radio:
            raise ScenarioError(
                "slice.sliver",
                f"{grant.slice!r} has no sliver for the radio {grant.radio}, and none is made during the run",
                cure=f"standby: [{grant.radio}] in its grant makes one at the start",
            )
    media = {
        name: replace(
            medium,
            radios=tuple(
                replace(radio, grant=replace(radio.grant, held=grants[radio.port].held))
                if radio.grant is not None
                else radio
                for radio in medium.radios
            ),
        )
        for name, medium in plan.media.items()
    }
    return replace(plan, scenario=made.scenario, media=media)


def _made_later(plan: Plan) -> dict[str, list[str]]:
    """Returns, by slice, the radios of slivers that only events name, in their order."""
    slivers = expand(plan.scenario).slivers.values()
    found = {}
    for name, one in plan.scenario.slices.items():
        own = [f"{sliver.node}:{sliver.radio}" for sliver in slivers if sliver.slice == name]
        if one.grant is not None and (later := own[len(one.grant.nodes) + len(one.grant.standby) :]):
            found[name] = later
    return found


def _grants(plan: Plan) -> dict[str, GrantPlan]:
    """Returns the grants at the start by port."""
    radios = (radio for medium in plan.media.values() for radio in medium.radios)
    return {radio.port: radio.grant for radio in radios if radio.grant is not None}


def _scenario(raw: dict[str, Any]) -> Scenario:
    folder = Path.cwd()
    try:
        return Scenario.model_validate(raw, context={"folder": folder})
    except ValidationError as error:
        raise problems.of_shape(error, Source(raw, None, folder)) from None


def _pinned(plan: Plan, said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scenario's nodes with their assigned addresses written out."""
    nodes: dict[str, Any] = {}
    for node in plan.nodes.values():
        own = dict(said.get(node.name) or {})
        interfaces = dict(own.get("interfaces") or {})
        for one in node.interfaces:
            # A bridge is no interface of the scenario: its first radio stands for it.
            name = one.bridge[0] if one.bridge else one.name
            addresses = {"addresses": [str(address) for address in one.addresses]} if one.addresses else {}
            interfaces[name] = {**(interfaces.get(name) or {}), "mac": one.mac, **addresses}
        nodes[node.name] = {**own, "interfaces": interfaces} if interfaces else own
    return nodes


def _addressed(plan: Plan, name: str, number: int, link: dict[str, Any]) -> dict[str, Any]:
    """Returns a link of a new node, with a free address for its end if none is given."""
    ends = [str(end) for end in link.get("ends", ())]
    others = [end for end in ends if end.partition(":")[0] != name]
    if len(ends) != 2 or len(others) != 1:
        raise ScenarioError("link.ends", f"one end of a new link is {name}", where=f"links[{number}].ends")
    (other,) = others
    if other not in plan.switches:
        raise ScenarioError(
            "link.ends",
            f"{other!r} is no switch or hub",
            where=f"links[{number}].ends",
            cure=f"a running node gets no new interface; switches are: {', '.join(plan.switches) or 'none'}",
        )
    if "addresses" in link:
        return link
    free = _free(_segment(plan, other), plan)
    return link if free is None else {**link, "addresses": [[] if end == other else [free] for end in ends]}


def _segment(plan: Plan, switch: str) -> list[InterfacePlan]:
    """Returns the node interfaces that a switch reaches without a router."""
    reached, further, found = {switch}, [switch], []
    ends = {f"{node.name}:{one.name}": one for node in plan.nodes.values() for one in node.interfaces}
    bridged = {
        f"{node.name}:{member}": (one,)
        for node in plan.nodes.values()
        for one in node.interfaces
        for member in one.bridge
    }
    while further:
        here = further.pop()
        for link in plan.links.values():
            for a, b in ((link.a, link.b), (link.b, link.a)):
                if a != here:
                    continue
                if b in ends:
                    found += [ends[b], *bridged.get(b, ())]
                elif b not in reached:
                    reached.add(b)
                    further.append(b)
    return found


def _free(segment: Sequence[InterfacePlan], plan: Plan) -> str | None:
    """Returns the first unused IPv4 address of a segment; None if all are in use."""
    taken = [address for one in segment for address in one.addresses if address.version == 4]
    if not taken:
        return None
    network = taken[0].network
    # A segment goes on behind the bridges of access points.
    interfaces = (one for node in plan.nodes.values() for one in node.interfaces)
    used = {address.ip for one in interfaces for address in one.addresses}
    free = next((host for host in network.hosts() if host not in used), None)
    if free is None:
        raise RunError(
            "lab.grow", f"no address of {network} is free", cure="give 'addresses:' of another network"
        )
    return str(ip_interface(f"{free}/{network.prefixlen}"))
