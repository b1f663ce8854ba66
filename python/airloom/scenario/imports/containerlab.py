"""Reads laboratories of containerlab (``*.clab.yml``).

A ``linux`` node is a container of its image, which forwards packets and has no addresses but those that
its commands give; ``bridge`` is a switch of the engine, ``ovs-bridge`` an Open vSwitch, ``host`` a node
with this machine's programs. Kinds of vendors' network systems are refused by name. Settings are taken
from ``defaults``, ``kinds``, ``groups`` and the node, in this order.

Source: containerlab.dev, "Topology definition file", "Nodes", "Links".
"""

from __future__ import annotations

import re
from typing import Any

from airloom.scenario.imports.draft import Draft
from airloom.scenario.source import Source

_LISTS = ("exec", "binds", "ports")
_MAPPINGS = ("env", "labels", "sysctls")
_KNOWN = {
    *("kind", "group", "image", "exec", "binds", "env", "ports", "sysctls", "cmd", "entrypoint", "cpu"),
}
_OPEN = {"linux", "bridge", "ovs-bridge", "host"}
_UNUSED = {"labels", "position", "graph-icon"}
"""Keys that only pictures use."""
_IMPAIRMENTS = ("delay", "jitter", "loss", "rate", "corruption")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?=|:?-)?([^}]{0,1000}+)\}|\$(\w+)")


def read(draft: Draft, text: str) -> None:
    """Fills the draft from a file's text."""
    data = draft.mapping("the file", Source.of_text(_expanded(draft, text), str(draft.path)).data)
    draft.lose_keys("the laboratory", data, {"name", "prefix", "topology"})
    if data.get("name"):
        draft.top["name"] = draft.tidy(str(data["name"]))
    # Commands of the nodes give addresses and routes, and Docker lets every container forward.
    draft.top |= {"addresses": {"ipv4": None}, "routing": "none"}
    topology = draft.mapping("topology", data.get("topology"))
    draft.lose_keys("topology", topology, {"defaults", "kinds", "groups", "nodes", "links"})
    nodes = {
        str(name): _settings(draft, str(name), topology, draft.mapping(f"node {name}", said))
        for name, said in draft.mapping("nodes", topology.get("nodes")).items()
    }
    for name, said in nodes.items():
        _node(draft, name, said)
    interfaces: dict[str, set[str]] = {name: set() for name in nodes}
    for number, said in enumerate(draft.listing("links", topology.get("links"))):
        _link(draft, f"links[{number}]", draft.mapping(f"links[{number}]", said), nodes, interfaces)
    for name, said in nodes.items():
        if said["kind"] in ("linux", "host"):
            _programs(draft, name, said, interfaces[name])


def _expanded(draft: Draft, text: str) -> str:
    """Returns the text with the defaults of its variables; those of the environment are not read."""

    def value(found: re.Match[str]) -> str:
        if found[3] is not None or not found[2]:
            return found[0]
        draft.note(f"the variable {found[1]} has its default, {found[2]!r}")
        return found[2]

    return _VARIABLE.sub(value, text)


def _settings(draft: Draft, name: str, topology: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Returns a node's settings with those that it inherits."""
    defaults = draft.mapping("defaults", topology.get("defaults"))
    groups = draft.mapping("groups", topology.get("groups"))
    group_name = said.get("group", defaults.get("group"))
    group = draft.mapping(f"groups.{group_name}", groups.get(str(group_name)))
    kind = said.get("kind", group.get("kind", defaults.get("kind")))
    if kind is None:
        draft.refuse(f"node {name}: it has no kind", "give it 'kind: linux'")
    kinds = draft.mapping("kinds", topology.get("kinds"))
    found: dict[str, Any] = {}
    levels = [defaults, draft.mapping(f"kinds.{kind}", kinds.get(str(kind))), group, said]
    # What switches would inherit is meant for the others.
    for level in levels[-1:] if kind in ("bridge", "ovs-bridge") else levels:
        for key, value in level.items():
            if key in _LISTS:
                found[key] = found.get(key, []) + draft.listing(f"node {name}: {key}", value)
            elif key in _MAPPINGS:
                found[key] = found.get(key, {}) | draft.mapping(f"node {name}: {key}", value)
            else:
                found[key] = value
    return found | {"kind": str(kind)}


def _node(draft: Draft, name: str, said: dict[str, Any]) -> None:
    kind = said["kind"]
    if kind not in _OPEN:
        draft.refuse(
            f"node {name}: the kind {kind!r} is a system that no node here runs",
            f"kinds that can be read are {', '.join(sorted(_OPEN))}",
            "import.kind",
        )
    own = draft.name(name)
    if kind in ("bridge", "ovs-bridge"):
        draft.switches[own] = {"kind": "openvswitch"} if kind == "ovs-bridge" else {}
        draft.note(f"{name} is a switch of the laboratory, and not one of this machine")
        draft.lose_keys(f"node {name}", said, {"kind", "group"} | _UNUSED)
        return
    draft.lose_keys(f"node {name}", said, _KNOWN | _UNUSED)
    node: dict[str, Any] = {"forwarding": True}
    draft.nodes[own] = node
    if kind == "host":
        draft.note(f"{name} has this machine's programs and files, and a network stack of its own")
    else:
        draft.add_image(node, name, None if said.get("image") is None else str(said["image"]))
    for bind in said.get("binds", ()):
        source, _, rest = str(bind).partition(":")
        target, _, options = rest.partition(":")
        if "__clab" in str(bind) or not target.startswith("/"):
            draft.lose(f"node {name}: bind {bind}")
            continue
        mode = "ro" if "ro" in options.split(",") else "rw"
        node.setdefault("mounts", []).append({"source": source, "target": target, "mode": mode})
    for port in said.get("ports", ()):
        node.setdefault("publish", []).append(_port(draft, name, str(port)))
    if said.get("sysctls"):
        node["sysctl"] = said["sysctls"]
    if said.get("cpu") is not None:
        node["cpu"] = draft.number(f"node {name}: cpu", said["cpu"], 0.001, 1024)


def _port(draft: Draft, name: str, text: str) -> dict[str, Any]:
    """Returns a published port of ``[ADDRESS:]HOST:PORT[/PROTOCOL]``."""
    places, _, protocol = text.partition("/")
    parts = places.rsplit(":", 2)
    if not all(part.isdigit() for part in parts[-2:]) or protocol not in ("", "tcp", "udp"):
        draft.refuse(f"node {name}: {text!r} is no port", "write it like 8080:80/tcp, without a range")
    found: dict[str, Any] = {"port": int(parts[-1]), "host_port": int(parts[-2 if len(parts) > 1 else -1])}
    # Docker's default: the port is open to the networks of the machine.
    found["host_address"] = parts[0].strip("[]") if len(parts) == 3 else "0.0.0.0"
    return found | ({"protocol": protocol} if protocol else {})


def _end(
    draft: Draft, where: str, said: Any, nodes: dict[str, dict[str, Any]], interfaces: dict[str, set[str]]
) -> tuple[str, str, str]:
    """Returns the end of a link, its node and its interface."""
    if isinstance(said, dict):
        draft.lose_keys(
            f"{where}: endpoint", said, {"node", "interface", "mac", "ipv4", "ipv6", *_IMPAIRMENTS}
        )
        node, interface = str(said.get("node", "")), str(said.get("interface", ""))
    else:
        node, _, interface = str(said).partition(":")
    if node in ("host", "mgmt-net", "macvlan", "vxlan", "dummy") and node not in nodes:
        draft.refuse(
            f"{where}: an end at {node!r} is outside of the laboratory",
            "'publish' opens a port of a node, 'interfaces: {eth1: {real: NAME}}' takes one of this machine",
        )
    if node not in nodes or not interface:
        draft.refuse(f"{where}: {said!r} names no node and interface")
    own = draft.name(node)
    if own in draft.switches:
        return own, own, interface
    if interface in interfaces[node]:
        draft.refuse(f"{where}: {node}:{interface} has a link already")
    interfaces[node].add(interface)
    if isinstance(said, dict):
        settings = {} if said.get("mac") is None else {"mac": str(said["mac"])}
        draft.interface(own, interface).update(settings)
        for family in ("ipv4", "ipv6"):
            if said.get(family) is not None:
                draft.add_address(own, interface, str(said[family]))
    return f"{own}:{interface}", own, interface


def _link(
    draft: Draft,
    where: str,
    said: dict[str, Any],
    nodes: dict[str, dict[str, Any]],
    interfaces: dict[str, set[str]],
) -> None:
    kind = str(said.get("type", "veth"))
    if kind != "veth":
        draft.refuse(
            f"{where}: links of type {kind!r} leave the laboratory", "links between nodes are 'veth'"
        )
    known = {
        "type",
        "endpoints",
        "mtu",
        "labels",
        "vars",
        "ipv4",
        "ipv6",
        "impairments",
        "netem",
        *_IMPAIRMENTS,
    }
    draft.lose_keys(where, said, known - {"vars"})
    ends = draft.listing(f"{where}: endpoints", said.get("endpoints"))
    if len(ends) != 2:
        draft.refuse(f"{where}: it has {len(ends)} endpoints, and a link has two")
    (a, a_node, a_name), (b, b_node, b_name) = (_end(draft, where, end, nodes, interfaces) for end in ends)
    found = _impairments(draft, where, said)
    for key in ("impairments", "netem"):
        found |= _impairments(draft, where, draft.mapping(f"{where}: {key}", said.get(key)))
    if said.get("mtu") is not None:
        found["mtu"] = int(draft.number(f"{where}: mtu", said["mtu"], 68, 65535))
    for way, end in zip(("forward", "backward"), ends, strict=True):
        own = _impairments(draft, where, end) if isinstance(end, dict) else {}
        found |= {way: own} if own else {}
    for family in ("ipv4", "ipv6"):
        for address, node, name in zip(
            draft.listing(f"{where}: {family}", said.get(family)),
            (a_node, b_node),
            (a_name, b_name),
            strict=False,
        ):
            if address and node in draft.nodes:
                draft.add_address(node, name, str(address))
    if "mtu" not in found:
        draft.note("links without an MTU have 1500, where containerlab's have 9500")
    draft.add_link((a, b), found)


def _impairments(draft: Draft, where: str, said: dict[str, Any]) -> dict[str, Any]:
    """Returns properties of a link from those of ``containerlab tools netem``: rate in kbit/s, loss and
    corruption in percent, jitter as netem's, uniform."""
    found: dict[str, Any] = {}
    if said.get("delay") is not None:
        found["delay"] = draft.duration(f"{where}: delay", said["delay"])
    if said.get("jitter") is not None:
        found["jitter"] = {"uniform": draft.duration(f"{where}: jitter", said["jitter"])}
        # netem sends a frame when its own delay is over, whatever was sent before.
        found["jitter_reorders"] = True
    if said.get("loss") is not None:
        found["loss"] = draft.percent(f"{where}: loss", said["loss"])
    if said.get("corruption") is not None:
        found["corrupt"] = draft.percent(f"{where}: corruption", said["corruption"])
    if said.get("rate") is not None:
        rate = said["rate"]
        plain = isinstance(rate, int | float) or str(rate).replace(".", "", 1).isdigit()
        found["rate"] = draft.rate(f"{where}: rate", f"{rate} kbit" if plain else rate)
    return found


def _programs(draft: Draft, name: str, said: dict[str, Any], interfaces: set[str]) -> None:
    """Adds the container's own command, and the commands that follow it, one after the other."""
    own = draft.name(name)
    env = {str(key): str(value) for key, value in said.get("env", {}).items()}
    before: list[str] = []
    command = [
        *draft.words(f"node {name}", str(said.get("entrypoint") or "")),
        *draft.words(f"node {name}", str(said.get("cmd") or "")),
    ]
    if said.get("cmd") and not said.get("entrypoint") and draft.nodes[own].get("kind") == "container":
        draft.note(f"{name}: 'cmd' runs without the entrypoint of the image")
    if command or draft.nodes[own].get("kind") == "container":
        # It may end at once, as a shell without a terminal does, or serve until the end.
        draft.add_program(own, own, command or None, env=env)
        draft.programs[-1]["expect"] = None
        before = []
    for line in said.get("exec", ()):
        address = draft.address_of(str(line), interfaces)
        if address is not None:
            draft.add_address(own, *address)
            continue
        words = draft.words(f"node {name}: exec", str(line))
        if words:
            before = [draft.add_program(f"{own}-exec", own, words, after=before, env=env)]
