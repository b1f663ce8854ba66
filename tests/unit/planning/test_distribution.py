"""Access points as bridges to their wires: who is one by default, and what the plan then gives the nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.planning.gate import check
from airloom.planning.plan import Plan

ESS = """\
name: ess
media: {air: {radio: {phy: 802.11g, ssid: campus, channel: 1}}}
switches: {lan: }
nodes:
  server:
  ap1: {position: [0 m, 0 m], radios: {wlan0: {mode: ap}}MORE}
  ap2: {position: [60 m, 0 m], radios: {wlan0: {mode: ap}}MORE}
  sta: {position: [5 m, 0 m], radios: {wlan0: {mode: station}}}
links:
  - {ends: [server, lan]}
  - {ends: [ap1, lan]}
  - {ends: [ap2, lan]}
"""


def plan_of(tmp_path: Path, text: str) -> Plan:
    file = tmp_path / "ess.yaml"
    file.write_text(text)
    return check(file).plans[0]


def bridges(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {name: one.bridge for name, node in plan.nodes.items() for one in node.interfaces if one.bridge}


def subnets(plan: Plan) -> set[str]:
    return {
        str(address.network)
        for node in plan.nodes.values()
        for one in node.interfaces
        for address in one.addresses
    }


def test_access_points_of_one_ssid_and_lan_are_bridges(tmp_path):
    plan = plan_of(tmp_path, ESS.replace("MORE", ""))
    assert bridges(plan) == {"ap1": ("wlan0", "eth0"), "ap2": ("wlan0", "eth0")}
    assert subnets(plan) == {"10.0.0.0/24"}
    assert not any(node.forwarding or node.routes for node in plan.nodes.values())
    assert plan.nodes["ap1"].transit
    assert plan.hosts == {"server": "10.0.0.1", "ap1": "10.0.0.2", "ap2": "10.0.0.3", "sta": "10.0.0.4"}
    eth0, wlan0, br0 = plan.nodes["ap1"].interfaces
    assert (eth0.addresses, wlan0.addresses) == ((), ())
    assert (br0.name, br0.mac, str(br0.addresses[0])) == ("br0", wlan0.mac, "10.0.0.2/24")
    bridged = {radio.port: radio.settings.get("bridged", False) for radio in plan.media["air"].radios}
    assert bridged == {"ap1:wlan0": True, "ap2:wlan0": True, "sta:wlan0": False}


@pytest.mark.parametrize(
    "more",
    [
        ", forwarding: true",
        ", forwarding: false",
        ", interfaces: {wlan0: {addresses: [10.7.0.N/24]}, eth0: {addresses: [10.8.0.N/24]}}",
    ],
)
def test_a_node_that_says_what_it_is_stays_so(tmp_path, more):
    head, first, second = ESS.split("MORE")
    plan = plan_of(tmp_path, head + more.replace("N", "1") + first + more.replace("N", "2") + second)
    assert bridges(plan) == {}
    assert len(subnets(plan)) == 2


def test_a_key_decides(tmp_path):
    text = ESS.replace("MORE", "")
    assert bridges(plan_of(tmp_path, text.replace("mode: ap}", "mode: ap, bridge: false}"))) == {}
    # One access point alone is a router unless it says otherwise.
    alone = text.replace("  ap2: {position: [60 m, 0 m], radios: {wlan0: {mode: ap}}}\n", "")
    alone = alone.replace("  - {ends: [ap2, lan]}\n", "")
    assert bridges(plan_of(tmp_path, alone)) == {}
    asked = plan_of(tmp_path, alone.replace("mode: ap}", "mode: ap, bridge: true}"))
    assert bridges(asked) == {"ap1": ("wlan0", "eth0")}
    assert subnets(asked) == {"10.0.0.0/24"}


def test_two_ssids_or_two_lans_are_no_distribution_system(tmp_path):
    text = ESS.replace("MORE", "")
    head, _, tail = text.rpartition("mode: ap}")
    ssids = head + "mode: ap, ssid: other}" + tail
    assert bridges(plan_of(tmp_path, ssids)) == {}
    lans = text.replace("switches: {lan: }", "switches: {lan: , far: }").replace("[ap2, lan]", "[ap2, far]")
    assert bridges(plan_of(tmp_path, lans)) == {}


def test_wires_between_access_points_are_a_lan(tmp_path):
    chain = """\
name: chain
media: {air: {radio: {phy: 802.11g, ssid: campus, channel: 1}}}
nodes:
  router: {forwarding: true}
  server:
  ap1: {position: [0 m, 0 m], radios: {wlan0: {mode: ap}}}
  ap2: {position: [60 m, 0 m], radios: {wlan0: {mode: ap}}}
  ap3: {position: [120 m, 0 m], radios: {wlan0: {mode: ap}}}
  sta: {position: [5 m, 0 m], radios: {wlan0: {mode: station}}}
links:
  - {ends: [server, router]}
  - {ends: [router, ap1]}
  - {ends: [ap1, ap2]}
  - {ends: [ap2, ap3]}
"""
    plan = plan_of(tmp_path, chain)
    assert bridges(plan)["ap2"] == ("wlan0", "eth0", "eth1")
    assert subnets(plan) == {"10.0.0.0/30", "10.0.1.0/24"}
    (inside,) = [one.addresses[0] for one in plan.nodes["router"].interfaces if one.name == "eth1"]
    for name, interface in (("sta", "wlan0"), ("ap3", "br0")):
        (route,) = plan.nodes[name].routes
        assert (route.to, route.via, route.interface) == ("default", str(inside.ip), interface)
    assert plan.nodes["server"].routes[0].to == "default"


def test_a_second_router_is_reached_through_the_air_and_the_bridge(tmp_path):
    # Two routers: nodes with several neighbouring routers need the graph of the network.
    more = "  r1: {forwarding: true}\n  r2: {forwarding: true}\n  x:\n  y:\n"
    text = ESS.replace("MORE", "").replace("  server:\n", "  server:\n" + more)
    text += "  - {ends: [r1, lan]}\n  - {ends: [r2, lan]}\n  - {ends: [r1, x]}\n  - {ends: [r2, y]}\n"
    plan = plan_of(tmp_path, text)
    to = {route.to: route.via for route in plan.nodes["sta"].routes}
    lan = {name: str(plan.nodes[name].interfaces[0].addresses[0].ip) for name in ("r1", "r2")}
    assert set(to.values()) == set(lan.values())
    assert "default" in to
