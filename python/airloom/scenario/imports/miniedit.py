"""Reads networks of MiniEdit (``.mn``): hosts, switches, controllers and links with the words of TCLink.

A switch without a controller of its own, or under one that Mininet starts, learns; under a remote
controller it is an Open vSwitch. Legacy routers forward packets.

Source: examples/miniedit.py of Mininet, class MiniEdit, loadTopology.
"""

from __future__ import annotations

import json
from ipaddress import ip_network
from typing import Any

from airloom.scenario.imports.draft import Draft


def read(draft: Draft, text: str) -> None:
    """Fills the draft from a file's text."""
    try:
        data = draft.mapping("the file", json.loads(text))
    except (ValueError, RecursionError) as error:
        draft.refuse(f"not JSON: {error}", code="import.syntax")
    draft.lose_keys("the file", data, {"application", "controllers", "hosts", "links", "switches", "version"})
    application = draft.mapping("application", data.get("application"))
    for key in ("netflow", "sflow"):
        values = draft.mapping(key, application.get(key)).items()
        if any(value and word.lower().endswith("target") for word, value in values):
            draft.lose(f"application: {key}")
    try:
        base = ip_network(str(application.get("ipBase") or "10.0.0.0/8"), strict=False)
    except ValueError:
        draft.refuse(f"application: ipBase is {application.get('ipBase')!r}, and no network")
    controllers = _controllers(draft, data)
    for said in _all(draft, data, "hosts"):
        _host(draft, said, base)
    for said in _all(draft, data, "switches"):
        _switch(draft, said, controllers, application)
    for number, said in enumerate(draft.listing("links", data.get("links"))):
        _link(draft, f"links[{number}]", draft.mapping(f"links[{number}]", said))


def _all(draft: Draft, data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [
        draft.mapping(f"{key}[{number}]: opts", draft.mapping(f"{key}[{number}]", said).get("opts"))
        for number, said in enumerate(draft.listing(key, data.get(key)))
    ]


def _controllers(draft: Draft, data: dict[str, Any]) -> dict[str, str | None]:
    """Returns the address of each remote controller; None for those that Mininet starts."""
    found: dict[str, str | None] = {}
    for said in _all(draft, data, "controllers"):
        kind, name = said.get("controllerType", "ref"), str(said.get("hostname", "c0"))
        remote = f"tcp:{said.get('remoteIP', '127.0.0.1')}:{said.get('remotePort', 6633)}"
        if kind == "inband":
            draft.refuse(f"controller {name}: a controller inside of the network ('inband')")
        found[name] = remote if kind == "remote" else None
    return found


def _host(draft: Draft, said: dict[str, Any], base: Any) -> None:
    name = str(said.get("hostname") or f"h{said.get('nodeNum', 1)}")
    own = draft.name(name)
    known = {"hostname", "nodeNum", "sched", "ip", "defaultRoute", "cpu", "cores", "startCommand"}
    draft.lose_keys(f"host {name}", {key: one for key, one in said.items() if one}, known)
    node: dict[str, Any] = {}
    draft.nodes[own] = node
    address = said.get("ip") or str(base.network_address + int(draft.number(name, said.get("nodeNum", 1))))
    if "/" not in address:
        address = f"{address}/{base.prefixlen}"
    node["interfaces"] = {"eth0": {"addresses": [address]}}
    if said.get("cpu"):
        node["cpu"] = draft.number(f"host {name}: cpu", said["cpu"], 0.001, 1024)
    if said.get("cores"):
        draft.lose(f"host {name}: cores")
    if said.get("defaultRoute"):
        draft.add_program(f"{own}-route", own, ["ip", "route", "add", "default", "via", said["defaultRoute"]])
    if said.get("startCommand"):
        draft.add_program(f"{own}-start", own, str(said["startCommand"]))


def _switch(
    draft: Draft, said: dict[str, Any], controllers: dict[str, str | None], application: dict[str, Any]
) -> None:
    name = str(said.get("hostname") or f"s{said.get('nodeNum', 1)}")
    own = draft.name(name)
    kind = said.get("switchType", "default")
    known = {"hostname", "nodeNum", "switchType", "controllers", "dpid", "netflow", "sflow"}
    draft.lose_keys(f"switch {name}", {key: one for key, one in said.items() if one and one != "0"}, known)
    if kind == "legacyRouter":
        draft.nodes[own] = {"forwarding": True}
        return
    remote = [
        one for each in said.get("controllers") or () if (one := controllers.get(str(each))) is not None
    ]
    if kind == "legacySwitch" or not remote:
        draft.switches[own] = {}
        if kind != "legacySwitch":
            draft.note(f"{name} learns addresses, as under the controller that Mininet starts")
        return
    switch: dict[str, Any] = {"kind": "openvswitch", "controllers": remote}
    if said.get("dpid"):
        try:
            switch["datapath_id"] = int(str(said["dpid"]).replace(":", ""), 16)
        except ValueError:
            draft.refuse(f"switch {name}: dpid {said['dpid']!r} is no hexadecimal number")
    versions = draft.mapping("openFlowVersions", application.get("openFlowVersions"))
    chosen = [f"OpenFlow{word[5:]}" for word, on in sorted(versions.items()) if str(on) == "1"]
    draft.switches[own] = switch | ({"protocols": chosen} if chosen else {})


def _link(draft: Draft, where: str, said: dict[str, Any]) -> None:
    ends = [draft.name(str(said.get(key))) for key in ("src", "dest")]
    for end in ends:
        if end not in draft.nodes and end not in draft.switches:
            draft.refuse(f"{where}: there is no {end!r}")
    options = {key: one for key, one in draft.mapping(f"{where}: opts", said.get("opts")).items() if one}
    draft.lose_keys(where, options, {"bw", "delay", "loss", "jitter", "max_queue_size"})
    found: dict[str, Any] = {}
    if "bw" in options:
        found["rate"] = draft.rate(f"{where}: bw", f"{options['bw']} Mbit")
    if "delay" in options:
        found["delay"] = draft.duration(f"{where}: delay", options["delay"])
    if "jitter" in options:
        found["jitter"] = {"uniform": draft.duration(f"{where}: jitter", options["jitter"])}
        # netem sends a frame when its own delay is over, whatever was sent before.
        found["jitter_reorders"] = True
    if "loss" in options:
        found["loss"] = draft.percent(f"{where}: loss", options["loss"])
    if "max_queue_size" in options:
        found["queue"] = {
            "packets": int(draft.number(f"{where}: max_queue_size", options["max_queue_size"], 1))
        }
    draft.add_link(ends, found)
