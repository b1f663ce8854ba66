"""Converts an RSpec to a scenario, and a scenario to a request."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from pydantic import ValidationError

from airloom.errors import ScenarioError
from airloom.grid.rspec.document import NAMESPACE, Document, Link, Node, Properties
from airloom.planning.plan import LinkPlan, Plan
from airloom.scenario import problems
from airloom.scenario.model import Scenario
from airloom.scenario.source import Source
from airloom.scenario.topology.graph_files import tidy

KINDS = {
    "raw-pc": "qemu",
    "raw": "qemu",
    "emulab-xen": "uml",
    "default-vm": "uml",
    "emulab-openvz": "netns",
    "emulab-docker": "netns",
}
"""Kind of node for a sliver type: a machine, a machine with a kernel of its own, a shared kernel."""
SLIVERS = {"qemu": "raw-pc", "native": "raw-pc", "uml": "emulab-xen"}
"""Sliver type for a kind of node; others share the kernel: ``emulab-openvz``."""


def scenario_of(document: Document, name: str, kinds: Mapping[str, str]) -> tuple[Scenario, list[str]]:
    """Returns the scenario that a document describes, and notes on what it leaves out.

    ``kinds`` overrides :data:`KINDS`. Raises :class:`ScenarioError` for a sliver type without a kind.
    """
    notes = [f"not read: {one}" for one in document.unread]
    names: dict[str, str] = {}
    ends: dict[str, str] = {}
    nodes: dict[str, Any] = {}
    for node in document.nodes:
        names[node.client_id] = own = tidy(node.client_id, set(names.values()))
        if own != node.client_id:
            notes.append(f"the node {node.client_id!r} is {own}")
        if node.image is not None:
            notes.append(f"{own}: not read: disk_image {node.image}")
        said: dict[str, Any] = {"kind": _kind(node, document.source, {**KINDS, **kinds})}
        interfaces = {}
        for number, interface in enumerate(node.interfaces):
            ends[interface.client_id] = f"{own}:eth{number}"
            if interface.addresses:
                interfaces[f"eth{number}"] = {"addresses": interface.addresses}
        if interfaces:
            said["interfaces"] = interfaces
        nodes[own] = said
    links: list[dict[str, Any]] = []
    switches: dict[str, Any] = {}
    taken = set(nodes)
    named = set[str]()
    for link in document.links:
        if len(link.interfaces) == 2:
            own = tidy(link.client_id, named)
            named.add(own)
            links.append(_wire(link, own, ends))
        else:
            own = tidy(link.client_id, taken | set(switches))
            switches[own] = {}
            links += _lan(link, own, ends, document.source)
    found: dict[str, Any] = {"name": tidy(name, set()), "nodes": nodes}
    found |= {key: value for key, value in (("switches", switches), ("links", links)) if value}
    try:
        return Scenario.model_validate(found, context={"folder": Path.cwd()}), notes
    except ValidationError as error:
        raise problems.of_shape(error, Source(found, None, Path.cwd())) from None


def _kind(node: Node, source: str, kinds: Mapping[str, str]) -> str:
    if node.sliver_type is None:
        return "netns"
    if node.sliver_type not in kinds:
        cure = f"--kind {node.sliver_type}=netns, or another kind of node"
        raise node.element.refusal(source, f"no kind is known for the sliver type {node.sliver_type!r}", cure)
    return kinds[node.sliver_type]


def _direction(said: Properties | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if said is not None and said.capacity_kbit_s is not None:
        found["rate"] = f"{said.capacity_kbit_s} kbit/s"
    if said is not None and said.latency_ms is not None:
        found["delay"] = f"{round(said.latency_ms * 1e6)} ns"
    if said is not None and said.packet_loss is not None:
        found["loss"] = f"{Decimal(repr(said.packet_loss)) * 100:f} %"
    return found


def _wire(link: Link, name: str, ends: Mapping[str, str]) -> dict[str, Any]:
    a, b = link.interfaces
    said: dict[str, Any] = {"name": name, "ends": [ends[a], ends[b]]}
    for way, pair in (("forward", (a, b)), ("backward", (b, a))):
        direction = _direction(link.properties.get(pair))
        if direction:
            said[way] = direction
    return said


def _lan(link: Link, switch: str, ends: Mapping[str, str], source: str) -> list[dict[str, Any]]:
    """Returns the links of a LAN's interfaces to its switch, with the properties towards it."""
    found = []
    for end in link.interfaces:
        own = {said for (sender, _), said in link.properties.items() if sender == end}
        if len(own) > 1:
            raise link.element.refusal(
                source, f"the properties from {end!r} differ by destination",
                "the same ones for all, or links of two interfaces",
            )  # fmt: skip
        said: dict[str, Any] = {"ends": [ends[end], switch]}
        direction = _direction(next(iter(own), None))
        found.append(said | ({"forward": direction} if direction else {}))
    return found


def request_of(plan: Plan) -> str:
    """Returns a request for a plan's nodes and links; switches are LANs.

    Raises :class:`ScenarioError` for parts that an RSpec of version 3 has no words for.
    """
    if plan.media or plan.tunnels:
        what = "media" if plan.media else "tunnels"
        raise ScenarioError(
            "rspec.scenario", f"an RSpec has no words for {what}", where=what, cure="leave them out"
        )
    lines = [f'<rspec xmlns="{NAMESPACE}" type="request">']
    for node in plan.nodes.values():
        lines.append(f"  <node client_id={quoteattr(node.name)}>")
        lines.append(f'    <sliver_type name="{SLIVERS.get(node.kind, "emulab-openvz")}"/>')
        for interface in node.interfaces:
            lines.append(f"    <interface client_id={quoteattr(f'{node.name}:{interface.name}')}>")
            for one in interface.addresses:
                said = f'address="{one.ip}" netmask="{one.netmask}" type="ipv{one.version}"'
                lines.append(f"      <ip {said}/>")
            lines.append("    </interface>")
        lines.append("  </node>")
    of_lans: dict[str, list[LinkPlan]] = {name: [] for name in plan.switches}
    for link in plan.links.values():
        at = [end for end in (link.a, link.b) if end in plan.switches]
        if len(at) == 2:
            raise ScenarioError(
                "rspec.scenario", "an RSpec has no words for a link of two switches",
                where=f"links.{link.name}", cure="one switch",
            )  # fmt: skip
        for name in at:
            of_lans[name].append(link)
    for link in plan.links.values():
        lan = next((end for end in (link.a, link.b) if end in plan.switches), None)
        if lan is None:
            ways = [(link.a, link.b, _attributes(link.forward)), (link.b, link.a, _attributes(link.backward))]
            lines += _link_lines(link.name, [link.a, link.b], ways)
        elif link is of_lans[lan][0]:  # in the order of links, as interfaces are numbered by it
            lines += _lan_lines(lan, of_lans[lan])
    return "\n".join([*lines, "</rspec>", ""])


def _lan_lines(name: str, links: list[LinkPlan]) -> list[str]:
    out = {}
    for link in links:
        end, towards = (link.a, link.forward) if link.b == name else (link.b, link.backward)
        out[end] = _attributes(towards)
    return _link_lines(name, list(out), [(a, b, said) for a, said in out.items() for b in out if a != b])


def _attributes(settings: Any) -> str:
    """Returns the attributes of a direction; what an RSpec has no words for is left out."""
    rate, delay, loss = settings.constant_rate, settings.delay, settings.loss
    found = f' capacity="{max(1, round(rate / 1000))}"' if rate else ""
    found += f' latency="{Decimal(delay).scaleb(-6).normalize():f}"' if delay else ""
    return found + (f' packet_loss="{loss:g}"' if isinstance(loss, float) and loss else "")


def _link_lines(name: str, ends: list[str], ways: list[tuple[str, str, str]]) -> list[str]:
    lines = [f"  <link client_id={quoteattr(name)}>"]
    lines += [f"    <interface_ref client_id={quoteattr(end)}/>" for end in ends]
    lines += [
        f"    <property source_id={quoteattr(a)} dest_id={quoteattr(b)}{said}/>"
        for a, b, said in ways
        if said
    ]
    return [*lines, "  </link>"]
