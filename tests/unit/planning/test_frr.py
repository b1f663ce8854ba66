"""Generated configurations of FRR: neighbours, areas, autonomous systems, and when a daemon is ready."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.scenario import read
from airloom.scenario.model import Scenario


def plan(**said: Any) -> Plan:
    return check(Scenario.model_validate({"name": "x", **said})).plans[0]


def chain(routing: Any, **more: Any) -> Plan:
    """h1 - r1 - r2 - r3 - h2."""
    names = ["h1", "r1", "r2", "r3", "h2"]
    links = [{"ends": pair} for pair in pairwise(names)]
    return plan(routing=routing, nodes={name: {} for name in names}, links=links, **more)


def configuration(found: Plan, node: str, daemon: str) -> str:
    return found.nodes[node].files[f"/etc/frr/{daemon}.conf"]


def interface(text: str, name: str) -> list[str]:
    match = re.search(rf"^interface {name}\n((?: .*\n)+)", text, re.MULTILINE)
    assert match is not None
    return [line.strip() for line in match[1].splitlines()]


def ready(found: Plan, program: str) -> str:
    (one,) = [one for one in found.scenario.programs if one.name == program]
    assert one.ready is not None
    assert one.ready.command is not None
    return one.ready.command


@pytest.mark.parametrize(
    ("routing", "daemon", "number"), [("ospf", "ospfd", 188), ("isis", "isisd", 187), ("bgp", "bgpd", 186)]
)
def test_routers_run_the_protocol_and_hosts_do_not(routing: str, daemon: str, number: int) -> None:
    found = chain(routing)
    programs = {(program.node, program.name) for program in found.scenario.programs}
    assert programs == {(node, f"{node}-{one}") for node in ("r1", "r2", "r3") for one in ("zebra", daemon)}
    assert found.nodes["r2"].routes == ()
    assert [route.to for route in found.nodes["h1"].routes] == ["default"]
    assert all(found.nodes[name].forwarding for name in ("r1", "r2", "r3"))
    # h1-r1 and r1-r2 are r1's own; r2-r3 and r3-h2 come by the protocol.
    assert ready(found, f"r1-{daemon}") == f'test "$(ip -4 -o route show proto {number} | wc -l)" -ge 2'


def test_a_network_of_hosts_is_advertised_without_hellos() -> None:
    text = configuration(chain("ospf"), "r1", "ospfd")
    assert "ip ospf passive" in interface(text, "eth0")
    assert "ip ospf passive" not in interface(text, "eth1")
    assert "ip ospf network point-to-point" in interface(text, "eth1")
    text = configuration(chain("isis"), "r1", "isisd")
    assert "isis passive" in interface(text, "eth0")
    assert "isis passive" not in interface(text, "eth1")


def test_routers_on_a_switch_share_a_broadcast_network() -> None:
    found = plan(
        routing="ospf",
        nodes={name: {"forwarding": True} for name in "abc"},
        switches={"s": {}},
        links=[{"ends": [name, "s"]} for name in "abc"],
    )
    lines = interface(configuration(found, "a", "ospfd"), "eth0")
    assert not any("point-to-point" in line or "passive" in line for line in lines)


def test_a_link_of_two_areas_is_outside_the_backbone() -> None:
    found = chain("ospf", topology=None)
    assert "ip ospf area 0" in interface(configuration(found, "r2", "ospfd"), "eth0")
    nodes: dict[str, Any] = {name: {} for name in ("a", "b", "c")}
    nodes["c"] = {"routing": {"protocol": "ospf", "area": 5}}
    found = plan(
        routing="ospf",
        nodes={**nodes, "b": {"forwarding": True}, "a": {"forwarding": True}},
        links=[{"ends": ["a", "b"]}, {"ends": ["b", "c"]}],
    )
    border = configuration(found, "b", "ospfd")
    assert "ip ospf area 0" in interface(border, "eth0")
    assert "ip ospf area 5" in interface(border, "eth1")
    assert "ip ospf area 5" in interface(configuration(found, "c", "ospfd"), "eth0")


def test_intervals_are_those_of_the_scenario() -> None:
    said = {"hello": "2 s", "dead": "9 s"}
    text = configuration(chain({"protocol": "ospf", **said}), "r2", "ospfd")
    assert {"ip ospf hello-interval 2", "ip ospf dead-interval 9"} <= set(interface(text, "eth0"))
    text = configuration(chain({"protocol": "isis", **said}), "r2", "isisd")
    assert {"isis hello-interval 2", "isis hello-multiplier 4"} <= set(interface(text, "eth0"))
    assert " timers bgp 2 9\n" in configuration(chain({"protocol": "bgp", **said}), "r2", "bgpd")


def test_each_router_is_an_autonomous_system_unless_the_scenario_says() -> None:
    found = chain("bgp")
    systems = [f"router bgp {64512 + number}\n" for number in range(3)]
    assert all(
        system in configuration(found, node, "bgpd")
        for system, node in zip(systems, ("r1", "r2", "r3"), strict=True)
    )
    own = {"routing": {"protocol": "bgp", "as": 65000}}
    found = plan(
        routing="bgp",
        nodes={"a": own, "b": own, "c": {"forwarding": True}},
        links=[{"ends": ["a", "b"]}, {"ends": ["b", "c"]}],
    )
    text = configuration(found, "b", "bgpd")
    near, far = (found.nodes[name].interfaces[0].addresses[0].ip for name in ("a", "c"))
    assert f" neighbor {near} remote-as 65000\n" in text
    assert f" neighbor {far} remote-as 64514\n" in text
    assert f"neighbor {near} next-hop-self" in text
    assert f"neighbor {far} next-hop-self" not in text


def test_ipv6_is_routed_too() -> None:
    pools = {"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"}
    found = chain("ospf", addresses=pools)
    assert "ipv6 ospf6 area 0" in interface(configuration(found, "r1", "ospf6d"), "eth1")
    assert ready(found, "r1-ospf6d") == 'test "$(ip -6 -o route show proto 188 | wc -l)" -ge 2'
    text = configuration(chain("bgp", addresses=pools), "r2", "bgpd")
    assert re.search(r"address-family ipv6 unicast\n  redistribute connected\n  neighbor fd00:", text)


def test_a_link_that_soon_goes_down_is_not_awaited() -> None:
    found = chain("ospf", events=[{"at": "1 s", "link": "r2-r3", "action": "down"}])
    assert ready(found, "r1-ospfd").endswith("-ge 0")
    found = chain("ospf", events=[{"at": "30 s", "link": "r2-r3", "action": "down"}])
    assert ready(found, "r1-ospfd").endswith("-ge 2")


def test_the_checked_scenario_holds_the_configuration() -> None:
    found = chain("ospf")
    (again,) = check(read(found.scenario.to_yaml())).plans
    assert again.nodes == found.nodes
    assert [one.name for one in again.scenario.programs] == [one.name for one in found.scenario.programs]


def test_generated_nodes_run_it_with_settings_of_their_own() -> None:
    found = plan(
        routing="ospf",
        topology={"generator": "ring", "nodes": 3},
        nodes={"n2": {"sysctl": {"net.ipv4.ip_default_ttl": 33}}},
    )
    assert set(found.nodes) == {"n1", "n2", "n3"}
    assert found.nodes["n2"].sysctl["net.ipv4.ip_default_ttl"] == "33"
    assert "/etc/frr/ospfd.conf" in found.nodes["n2"].files
