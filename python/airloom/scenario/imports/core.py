"""Reads scenarios of CORE (XML, version 7 or newer): devices, wired networks, links and their services.

Links have their options: delay and jitter in us, bandwidth in bit/s, loss and duplicates in percent.
OSPF of FRR or Quagga becomes ``routing: ospf``; a device without a list of services has those of its
type. Radio networks of CORE and EMANE are refused: their models have other words here.

Source: coreemu.github.io/core, core/xml/corexml.py of CORE 9.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from airloom.scenario.imports.draft import Draft
from airloom.units.quantities import Duration, Rate

_SERVICES = {
    "router": ("zebra", "OSPFv2", "OSPFv3", "IPForward"),
    "mdr": ("zebra", "OSPFv3MDR", "IPForward"),
    "prouter": ("zebra", "OSPFv2", "OSPFv3", "IPForward"),
    "PC": ("DefaultRoute",),
    "host": ("DefaultRoute", "SSH"),
}
"""Services of the types of devices, if the file names none."""
_OSPF = {"OSPFv2", "FRROSPFv2"}
_CARRIED = _OSPF | {
    "zebra",
    "FRRzebra",
    "vtysh",
    "IPForward",
    "DefaultRoute",
    "StaticRoute",
    "DefaultMulticastRoute",
}
_IPV6 = {"OSPFv3", "FRROSPFv3"}
_UNREAD = (
    *("session_hooks", "service_configurations", "configservice_configurations", "mobility_configurations"),
    *("emane_global_configuration", "emane_configurations", "servers"),
)


def read(draft: Draft, text: str) -> None:
    """Fills the draft from a file's text."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    except ElementTree.ParseError as error:
        draft.refuse(f"not XML: {error}", code="import.syntax")
    if root.get("name"):
        draft.top["name"] = draft.tidy(str(root.get("name")).rsplit("/", 1)[-1].removesuffix(".xml"))
    draft.top |= {"addresses": {"ipv4": None}}
    for word in _UNREAD:
        part = root.find(word)
        if part is not None and len(part):
            draft.lose(word)
    names: dict[str, str] = {}
    for network in root.iterfind("networks/network"):
        _network(draft, network, names)
    defaults = {
        str(one.get("type")): tuple(str(each.get("name")) for each in one.iterfind("service"))
        for one in root.iterfind("default_services/node")
    }
    for device in root.iterfind("devices/device"):
        _device(draft, device, names, {**_SERVICES, **defaults})
    links: dict[tuple[str, ...], dict[str, Any]] = {}
    for link in root.iterfind("links/link"):
        _link(draft, link, names, links)


def _network(draft: Draft, network: Element, names: dict[str, str]) -> None:
    kind, name = str(network.get("type", "")).upper(), str(network.get("name", network.get("id")))
    if kind in ("SWITCH", "HUB"):
        names[str(network.get("id"))] = own = draft.name(name)
        draft.switches[own] = {"kind": "hub"} if kind == "HUB" else {}
        return
    if kind in ("WIRELESS_LAN", "WIRELESS", "EMANE"):
        draft.refuse(
            f"network {name}: a radio network ({kind}) has another model here",
            "write it under 'media:', with 'radios:' in the nodes (docs/guide/wlan.md)",
            "import.kind",
        )
    draft.refuse(f"network {name}: a network of type {kind} leads out of the laboratory", None, "import.kind")


def _device(
    draft: Draft, device: Element, names: dict[str, str], defaults: dict[str, tuple[str, ...]]
) -> None:
    name, kind = str(device.get("name", device.get("id"))), str(device.get("type") or "PC")
    names[str(device.get("id"))] = own = draft.name(name)
    node: dict[str, Any] = {}
    draft.nodes[own] = node
    if device.get("class") in ("docker", "lxc"):
        draft.add_image(node, name, device.get("image") or None)
    listed = [
        str(one.get("name"))
        for part in ("services", "configservices")
        for one in device.iterfind(f"{part}/service")
    ]
    services = listed or list(defaults.get(kind, ()))
    if "IPForward" in services or any(one in services for one in ("zebra", "FRRzebra")):
        node["forwarding"] = True
    if _OSPF & set(services):
        node["routing"] = "ospf"
    for service in services:
        if service in _IPV6:
            draft.note("OSPF routes both families, where CORE has a service for each")
        elif service not in _CARRIED:
            draft.lose(f"device {name}: service {service}")


def _interface(draft: Draft, node: str, link: Element, end: int) -> str:
    """Returns the end of a link, and gives its interface what the file says."""
    found = next(
        (one for tag in (f"iface{end}", f"interface{end}") if (one := link.find(tag)) is not None), None
    )
    if node in draft.switches:
        return node
    if found is None:
        draft.refuse(f"a link of {node}: the file has no interface for it")
    name = str(found.get("name") or f"eth{found.get('id', 0)}")
    settings = draft.interface(node, name)
    if found.get("mac"):
        settings["mac"] = found.get("mac")
    for family in ("ip4", "ip6"):
        if found.get(family):
            mask = found.get(f"{family}_mask") or ("24" if family == "ip4" else "64")
            draft.add_address(node, name, f"{found.get(family)}/{mask}")
    return f"{node}:{name}"


def _link(
    draft: Draft, link: Element, names: dict[str, str], links: dict[tuple[str, ...], dict[str, Any]]
) -> None:
    ids = [str(link.get(f"node{end}") or link.get(f"node_{word}")) for end, word in ((1, "one"), (2, "two"))]
    for one in ids:
        if one not in names:
            draft.refuse(f"a link ends at the node {one}, which the file does not have")
    ends = tuple(_interface(draft, names[one], link, end) for one, end in zip(ids, (1, 2), strict=True))
    options = link.find("options")
    found = {} if options is None else _options(draft, f"link {ends[0]} - {ends[1]}", options)
    if ends[::-1] in links:
        # The second of two links with options of one direction each.
        links[ends[::-1]]["backward"] = found
        return
    alone = options is not None and options.get("unidirectional") in ("1", "True", "true")
    draft.add_link(ends, {"forward": found} if alone and found else found)
    links[ends] = draft.links[-1]


def _options(draft: Draft, where: str, said: Element) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def value(key: str, most: float = 1e15) -> float:
        return draft.number(f"{where}: {key}", said.get(key, "0") or "0", 0, most)

    if value("bandwidth"):
        found["rate"] = Rate(int(value("bandwidth"))).text
    if value("delay"):
        found["delay"] = Duration(round(value("delay") * 1000)).text
    if value("jitter"):
        found["jitter"] = {"uniform": Duration(round(value("jitter") * 1000)).text}
        # netem sends a frame when its own delay is over, whatever was sent before.
        found["jitter_reorders"] = True
    for key, word in (("loss", "loss"), ("dup", "duplicate")):
        if value(key, 100):
            found[word] = draft.percent(f"{where}: {key}", said.get(key))
    if value("buffer"):
        found["queue"] = {"packets": int(value("buffer"))}
    known = {"delay", "bandwidth", "loss", "dup", "jitter", "unidirectional", "buffer", "key"}
    draft.lose_keys(where, {key: one for key, one in said.items() if one not in ("", "0", "0.0")}, known)
    return found
