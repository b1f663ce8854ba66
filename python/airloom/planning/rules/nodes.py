"""Rules of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from airloom.planning.links.ports import ports_of
from airloom.planning.machine import containers
from airloom.planning.network import Network
from airloom.planning.rules import host_access
from airloom.scenario.model import Node, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest

_SYSCTL = re.compile(r"net\.[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)+", re.ASCII)


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with nodes."""
    if not network.nodes:
        yield Problem("node.none", "the scenario has no node", (), "give 'nodes:' or 'topology:'")
    used: dict[str, set[str]] = {}
    for port in ports_of(network)[0]:
        used.setdefault(port.node, set()).add(port.name)
    used |= network.shared()
    yield from containers.problems(scenario, network)
    yield from host_access.problems(scenario, network)
    real: dict[str, str] = {}
    for name, node in scenario.nodes.items():
        if network.generated and name not in used:
            yield Problem(
                "node.unlinked",
                f"{name!r} is no node of the topology, and has no link of its own",
                ("nodes", name),
                nearest(name, network.generated),
                key=True,
            )
            continue
        yield from _node(name, node, used.get(name, set()))
        yield from _adapters(name, node, network.nodes.get(name, node).kind or scenario.kind)
        for interface, said in node.interfaces.items():
            if said.real is not None:
                yield from _real_offloads(name, node, interface)
                owner = real.setdefault(said.real, f"{name}:{interface}")
                if owner != f"{name}:{interface}":
                    yield Problem(
                        "interface.real",
                        f"the host's interface {said.real!r} is already used by {owner}",
                        ("nodes", name, "interfaces", interface, "real"),
                    )


def _node(name: str, node: Node, used: set[str]) -> Iterator[Problem]:
    path: Path_ = ("nodes", name)
    for interface in node.interfaces:
        if interface not in used:
            yield Problem(
                "interface.unknown",
                f"no link of {name!r} has an interface {interface!r}",
                (*path, "interfaces", interface),
                nearest(interface, sorted(used)) if used else "the node has no links",
                key=True,
            )
    for file in node.files:
        if not file.startswith("/") or "\0" in file or ".." in file.split("/") or file.endswith("/"):
            yield Problem(
                "node.file", f"{file!r} is not the absolute path of a file", (*path, "files", file), key=True
            )
        elif (why := host_access.too_long(file) or _no_place(file)) is not None:
            yield Problem("node.file", why, (*path, "files", file), "name a path in another folder", key=True)
    for number, pattern in enumerate(node.collect):
        parts = pattern.split("/")
        if not pattern.startswith("/") or not any(parts) or ".." in parts or not pattern.isprintable():
            yield Problem(
                "node.collect",
                f"{pattern!r} is not the absolute path of files",
                (*path, "collect", number),
                "such as /tmp/*.log",
            )
    for key in node.sysctl:
        if not _SYSCTL.fullmatch(key) or "//" in key:
            yield Problem(
                "node.sysctl",
                f"{key!r} is not a setting that a node has for itself",
                (*path, "sysctl", key),
                "it begins with 'net.', such as net.ipv4.tcp_congestion_control",
                key=True,
            )


_KERNELS = ("/proc", "/sys", "/dev")
"""Folders of the kernel, whose files are no files of a disk."""


def _no_place(file: str) -> str | None:
    """Why no file can be at a path; None if one can."""
    parents = [str(folder) for folder in Path(file).parents]
    for folder in _KERNELS:
        if folder in parents and not Path(file).is_relative_to("/dev/shm"):
            return f"{file!r} cannot be written: {folder} belongs to the kernel of the node"
    return None


def _adapters(name: str, node: Node, kind: str) -> Iterator[Problem]:
    """Refuses an adapter model on radios and native nodes: only links of the engine have it."""
    for interface, said in node.interfaces.items():
        if said.adapter is None or (kind != "native" and interface not in node.radios):
            continue
        why = (
            "is a radio"
            if interface in node.radios
            else "belongs to a native node, with a wire of the kernel"
        )
        yield Problem(
            "interface.adapter",
            f"{name}:{interface} {why}, and has no model of an adapter",
            ("nodes", name, "interfaces", interface, "adapter"),
            "leave it out",
            key=True,
        )


def _real_offloads(name: str, node: Node, interface: str) -> Iterator[Problem]:
    """Refuses offloads of an interface of the host, whose settings stay as they are."""
    if node.interfaces[interface].offloads is not None:
        yield Problem(
            "interface.offloads",
            f"{name}:{interface} is an interface of this machine, whose offloads are not changed",
            ("nodes", name, "interfaces", interface, "offloads"),
            "leave it out; ethtool -K sets them",
            key=True,
        )


def node_exists(name: str, path: Path_, network: Network) -> Iterator[Problem]:
    """Refuses a name that is not a node's."""
    if name in network.switches:
        what = "has no address" if name in network.open_switches else "nothing runs in it"
        yield Problem("node.unknown", f"{name!r} is a switch, and {what}", path, "name a node")
    elif name in ("$first", "$last"):
        yield Problem("node.unknown", f"{name} is a node that a generator made", path, "give a 'topology:'")
    elif name in network.shared():
        slivers = [each.name for each in network.slivers.values() if each.node == name]
        yield Problem(
            "slice.shared",
            f"{name!r} is shared by slices, and nothing runs outside of its slivers",
            path,
            f"name a sliver: {', '.join(slivers)}",
        )
    elif name not in network.nodes:
        yield Problem("node.unknown", f"there is no node {name!r}", path, nearest(name, network.nodes))
