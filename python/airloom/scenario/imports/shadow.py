"""Reads configurations of Shadow: hosts at the nodes of a graph, and their processes.

A node of the graph is a router, its edges are links, and a host has a link to its router with the
bandwidths of its ends. A graph of one node is a switch, and half of its latency is on the link of each
host. Routes follow the least latency, or the direct edges without ``use_shortest_path``.

Source: shadow.github.io, "Configuration Specification", "Network Graph Specification".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airloom.host.files import content
from airloom.scenario import formats
from airloom.scenario.imports.draft import Draft
from airloom.scenario.source import LARGEST_FILE, Source
from airloom.scenario.topology import gml
from airloom.units.quantities import Duration

_BUILT_IN = (
    'graph [ node [ id 0 host_bandwidth_up "1 Gbit" host_bandwidth_down "1 Gbit" ] '
    'edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ] ]'
)
"""The graph `1_gbit_switch`."""


def read(draft: Draft, text: str) -> None:
    """Fills the draft from a file's text."""
    data = draft.mapping("the file", Source.of_text(text, str(draft.path)).data)
    draft.lose_keys("the file", data, {"general", "network", "hosts"})
    general = draft.mapping("general", data.get("general"))
    unused = {
        "stop_time",
        "seed",
        "parallelism",
        "log_level",
        "progress",
        "heartbeat_interval",
        "data_directory",
    }
    draft.lose_keys("general", general, unused)
    if general.get("stop_time") is not None:
        draft.top["duration"] = _duration(draft, "general.stop_time", general["stop_time"])
    if general.get("seed") is not None:
        draft.top["seed"] = int(draft.number("general.seed", general["seed"]))
    draft.note("time is that of the wall clock, where Shadow simulates it")
    network = draft.mapping("network", data.get("network"))
    draft.lose_keys("network", network, {"graph", "use_shortest_path"})
    hosts = {
        str(name): draft.mapping(f"hosts.{name}", said)
        for name, said in draft.mapping("hosts", data.get("hosts")).items()
    }
    _network(draft, _graph(draft, draft.mapping("network.graph", network.get("graph"))), hosts)
    if len(draft.nodes) > len(hosts) and network.get("use_shortest_path", True):
        draft.top["routes"] = "delay"
    for name, said in hosts.items():
        _processes(draft, name, said)


def _graph(draft: Draft, said: dict[str, Any]) -> Any:
    kind = said.get("type", "gml")
    if kind == "1_gbit_switch":
        return gml.read(_BUILT_IN)
    if kind != "gml":
        draft.refuse(f"network.graph.type: {kind!r} is neither gml nor 1_gbit_switch")
    text = said.get("inline")
    if text is None:
        file = said.get("file")
        path = file.get("path") if isinstance(file, dict) else file
        if path is None:
            draft.refuse("network.graph: it has neither 'inline' nor 'file'")
        try:
            octets = content(Path(draft.path.parent, str(path)), LARGEST_FILE)
            text = formats.text(octets)
        except (OSError, ValueError) as error:
            draft.refuse(
                f"network.graph.file: {getattr(error, 'strerror', None) or error}", code="file.unreadable"
            )
    try:
        return gml.read(str(text))
    except gml.GmlError as error:
        draft.refuse(f"network.graph: not GML: {error}", code="import.syntax")


def _duration(draft: Draft, where: str, value: Any) -> str:
    """Returns a duration; a bare number is in seconds."""
    if isinstance(value, int | float):
        return Duration(round(draft.number(where, value) * 10**9)).text
    return draft.duration(where, value)


def _network(draft: Draft, graph: Any, hosts: dict[str, dict[str, Any]]) -> None:
    loops = {a: said for a, b, said in graph.edges(data=True) if a == b}
    alone = graph.number_of_nodes() == 1
    routers: dict[Any, str] = {}
    for key, said in graph.nodes(data=True):
        routers[key] = draft.name(str(said.get("label") or f"net{key}"))
        if alone:
            draft.switches[routers[key]] = {}
        else:
            draft.nodes[routers[key]] = {"forwarding": True}
        draft.lose_keys("nodes of the graph", said, {"label", "host_bandwidth_up", "host_bandwidth_down"})
    _edges(draft, graph, routers)
    members: dict[Any, int] = {}
    for name, said in hosts.items():
        where = f"hosts.{name}"
        known = {"network_node_id", "ip_addr", "bandwidth_up", "bandwidth_down", "processes"}
        draft.lose_keys(where, said, known)
        place = said.get("network_node_id", 0)
        if place not in routers:
            draft.refuse(f"{where}: the graph has no node {place}")
        own = draft.name(name)
        members[place] = members.get(place, 0) + 1
        draft.nodes[own] = {}
        if said.get("ip_addr"):
            draft.lose(
                f"{where}: ip_addr {said['ip_addr']} (addresses are assigned; programs find hosts by name)"
            )
        link: dict[str, Any] = {}
        of_node = graph.nodes[place]
        for way, word in (("forward", "up"), ("backward", "down")):
            rate = said.get(f"bandwidth_{word}", of_node.get(f"host_bandwidth_{word}"))
            if rate is None:
                draft.refuse(f"{where}: neither it nor its node of the graph has a bandwidth {word}")
            link[way] = {"rate": draft.rate(f"{where}: bandwidth_{word}", rate)}
        if alone and place in loops:
            link |= _properties(draft, "the edge of the only node", loops[place], parts=2)
        draft.add_link((own, routers[place]), link)
    for place, count in members.items():
        if count > 1 and not alone:
            draft.lose(f"edge from node {place} to itself: latency and loss between hosts of that node")


def _edges(draft: Draft, graph: Any, routers: dict[Any, str]) -> None:
    """Adds a link for each edge; two opposite edges of a directed graph are its directions."""
    waiting: dict[tuple[Any, Any], dict[str, Any]] = {}
    for a, b, said in graph.edges(data=True):
        if a == b:
            continue
        found = _properties(draft, f"edge {a}-{b}", said)
        if graph.is_directed() and (b, a) in waiting:
            link = waiting.pop((b, a))
            if {key: link.get(key) for key in found} != found:
                link["backward"] = found
            continue
        draft.add_link((routers[a], routers[b]), found)
        waiting[(a, b)] = draft.links[-1]


def _properties(draft: Draft, where: str, said: dict[str, Any], parts: int = 1) -> dict[str, Any]:
    """Returns the properties of an edge, in one of so many links that it consists of."""
    draft.lose_keys(where, said, {"latency", "jitter", "packet_loss", "label", "edge_key"})
    if said.get("latency") is None:
        draft.refuse(f"{where}: it has no latency")
    found: dict[str, Any] = {}
    latency = Duration(draft.duration(f"{where}: latency", _milliseconds(said["latency"])))
    found["delay"] = Duration(latency // parts).text
    loss = draft.number(f"{where}: packet_loss", said.get("packet_loss", 0), 0, 1)
    if loss:
        found["loss"] = f"{100 * (1 - (1 - loss) ** (1 / parts)):.12g} %"
    if said.get("jitter") is not None:
        jitter = Duration(draft.duration(f"{where}: jitter", _milliseconds(said["jitter"])))
        if jitter:
            draft.lose(f"{where}: jitter, which Shadow does not apply either")
    return found


def _milliseconds(value: Any) -> str:
    """Returns a latency with its unit: a bare number is in milliseconds, as in Shadow before version 2."""
    return f"{value} ms" if isinstance(value, int | float) else str(value)


def _processes(draft: Draft, name: str, said: dict[str, Any]) -> None:
    for number, value in enumerate(draft.listing(f"hosts.{name}.processes", said.get("processes"))):
        where = f"hosts.{name}.processes[{number}]"
        process = draft.mapping(where, value)
        known = {"path", "args", "environment", "start_time", "expected_final_state"}
        draft.lose_keys(where, process, known)
        path = process.get("path")
        if not path:
            draft.refuse(f"{where}: it has no path")
        args = process.get("args") or []
        words = [str(one) for one in args] if isinstance(args, list) else draft.words(where, str(args))
        environment = process.get("environment") or {}
        if isinstance(environment, str):
            environment = dict(one.partition("=")[::2] for one in environment.split(";") if one)
        start = process.get("start_time")
        state = process.get("expected_final_state", {"exited": 0})
        extra: dict[str, Any] = {}
        if state == "running":
            extra["until_end"] = True
        elif isinstance(state, dict) and "exited" in state:
            code = int(draft.number(where, state["exited"], 0, 255))
            extra |= {"expect": code} if code else {}
        else:
            draft.lose(f"{where}: expected_final_state")
        draft.add_program(
            f"{draft.name(name)}-{Path(str(path)).name}",
            draft.name(name),
            [str(Path(str(path)).expanduser()) if str(path).startswith("~") else str(path), *words],
            at=None if start in (None, 0) else _duration(draft, f"{where}.start_time", start),
            env={str(key): str(one) for key, one in environment.items()},
            **extra,
        )
