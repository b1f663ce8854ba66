"""What a GENI RSpec of version 3 says: nodes with slivers and interfaces, and links with properties.

Names of elements and attributes are those of published requests, manifests and writers of them; the
schema files (``request.xsd``, ``manifest.xsd`` of http://www.geni.net/resources/rspec/3) were not
available to check against. Neither were the units of ``property``: ``capacity`` in kbit/s, ``latency``
in ms and ``packet_loss`` as a probability are those that aggregates of Emulab use.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field

from airloom.host.rspec_tree import Element, parse

NAMESPACE = "http://www.geni.net/resources/rspec/3"
MOST_NODES = 2000
_KNOWN = {
    "rspec": {"node", "link"},
    "node": {
        "sliver_type",
        "interface",
        "component_manager",
        "hardware_type",
        "location",
        "host",
        "services",
    },
    "sliver_type": {"disk_image"},
    "interface": {"ip"},
    "link": {"interface_ref", "property", "link_type", "component_manager"},
    "services": {"login"},
}
"""Elements that are read, or have no counterpart and do not matter, by parent."""


@dataclass(slots=True)
class Interface:
    """An interface; ``client_id`` is unique in the document."""

    client_id: str
    component_id: str | None
    addresses: list[str]
    """With prefix lengths."""


@dataclass(slots=True)
class Node:
    """A node."""

    client_id: str
    component_id: str | None
    sliver_type: str | None
    image: str | None
    interfaces: list[Interface]
    element: Element


@dataclass(frozen=True, slots=True)
class Properties:
    """Properties of one direction of a link."""

    capacity_kbit_s: int | None = None
    latency_ms: float | None = None
    packet_loss: float | None = None


@dataclass(slots=True)
class Link:
    """A link of two interfaces, or a LAN of more."""

    client_id: str
    interfaces: list[str]
    properties: dict[tuple[str, str], Properties]
    """By sending and receiving interface."""
    element: Element


@dataclass(slots=True)
class Document:
    """A request or a manifest."""

    source: str
    type: str
    nodes: list[Node]
    links: list[Link]
    unread: list[str] = field(default_factory=list)
    """Elements that were not read, each once."""


def read(octets: bytes, source: str) -> Document:
    """Returns a document; raises :class:`~airloom.ScenarioError` with line, element and cure."""
    root = parse(octets, source)
    if (root.namespace, root.name) != (NAMESPACE, "rspec"):
        raise root.refusal(source, "this is no RSpec of version 3", f'<rspec xmlns="{NAMESPACE}" ...>')
    kind = root.get(source, "type") or "request"
    if kind not in ("request", "manifest"):
        raise root.refusal(source, f"its type is {kind[:20]!r}", 'type="request" or type="manifest"')
    document = Document(source, kind, [], [])
    nodes, interfaces = set[str](), set[str]()
    for element in root.each("node"):
        node = _node(element, source)
        if node.client_id in nodes:
            raise element.refusal(source, "another node has that client_id", "give it one of its own")
        nodes.add(node.client_id)
        for interface in node.interfaces:
            if interface.client_id in interfaces:
                message = f"another interface has the client_id {interface.client_id!r}"
                raise element.refusal(source, message, "give it one of its own")
            interfaces.add(interface.client_id)
        document.nodes.append(node)
        if len(nodes) > MOST_NODES:
            raise element.refusal(source, f"there are more than {MOST_NODES} nodes")
    if not nodes:
        raise root.refusal(source, "it has no node", '<node client_id="..."/>')
    used: dict[str, str] = {}
    for element in root.each("link"):
        link = _link(element, source, interfaces)
        for one in link.interfaces:
            if one in used:
                message = f"the interface {one!r} is at the link {used[one]!r} already"
                raise element.refusal(source, message, "an interface is at one link")
            used[one] = link.client_id
        document.links.append(link)
    document.unread = list(dict.fromkeys(_unread(root)))
    return document


def _node(element: Element, source: str) -> Node:
    sliver = element.first("sliver_type")
    image = sliver.first("disk_image") if sliver is not None else None
    return Node(
        element.must(source, "client_id"),
        element.get(source, "component_id"),
        None if sliver is None else sliver.must(source, "name"),
        None if image is None else image.get(source, "name") or image.get(source, "url"),
        [_interface(one, source) for one in element.each("interface")],
        element,
    )


def _interface(element: Element, source: str) -> Interface:
    addresses = []
    for ip in element.each("ip"):
        address, netmask = ip.must(source, "address"), ip.get(source, "netmask")
        try:
            addresses.append(str(ipaddress.ip_interface(f"{address}/{netmask}" if netmask else address)))
        except ValueError:
            message = f"{address[:40]}/{(netmask or '')[:40]} is no address"
            raise ip.refusal(source, message, 'address="10.1.1.1" netmask="255.255.255.0"') from None
    return Interface(element.must(source, "client_id"), element.get(source, "component_id"), addresses)


def _link(element: Element, source: str, known: set[str]) -> Link:
    name = element.must(source, "client_id")
    ends: list[str] = []
    for reference in element.each("interface_ref"):
        end = reference.must(source, "client_id")
        if end not in known:
            raise reference.refusal(source, "no node has this interface", '<interface client_id="..."/>')
        if end in ends:
            raise reference.refusal(source, "it is there twice", "remove one")
        ends.append(end)
    if len(ends) < 2:
        raise element.refusal(source, f"it has {len(ends)} interface_ref", "two, or more for a LAN")
    properties: dict[tuple[str, str], Properties] = {}
    for one in element.each("property"):
        way = (one.must(source, "source_id"), one.must(source, "dest_id"))
        for end in way:
            if end not in ends:
                raise one.refusal(source, f"{end[:40]!r} is no interface_ref of the link")
        if way[0] == way[1]:
            raise one.refusal(source, "source_id and dest_id are the same")
        if way in properties:
            raise one.refusal(source, "this direction has properties already", "remove one")
        properties[way] = _properties(one, source)
    return Link(name, ends, properties, element)


def _properties(element: Element, source: str) -> Properties:
    capacity = _number(element, source, "capacity", 1, 1e9, "kbit/s")
    latency = _number(element, source, "latency", 0, 1e6, "ms")
    loss = _number(element, source, "packet_loss", 0, 1, "a probability")
    return Properties(None if capacity is None else round(capacity), latency, loss)


def _number(element: Element, source: str, key: str, least: float, most: float, unit: str) -> float | None:
    text = element.get(source, key)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        allowed = f"{least:g} to {most:g}, {unit}"
        raise element.refusal(source, f"{key} is {text[:20]!r}", f"{key} is {allowed}")
    return value


def _unread(element: Element) -> Iterator[str]:
    for child in element.children:
        if child.namespace != NAMESPACE:
            yield f"<{child.name}> of {child.namespace or 'no namespace'}"
        elif child.name not in _KNOWN.get(element.name, ()) and element.name in _KNOWN:
            yield f"<{child.name}> in <{element.name}>"
        else:
            yield from _unread(child)
