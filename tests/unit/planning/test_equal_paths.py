"""Computed routes over all paths of equal cost."""

from __future__ import annotations

from typing import Any

import pytest

from airloom.nodes.spec import spec_of
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.scenario.model import Scenario


def plan(**said: Any) -> Plan:
    (found,) = check(Scenario(name="x", **said)).plans
    return found


def hops(found: Plan, node: str, to: str) -> set[str]:
    """The interfaces on which a node sends to the first network of another."""
    target = found.nodes[to].interfaces[0].addresses[0].network
    routes = [route for route in found.nodes[node].routes if _covers(route.to, target)]
    (route,) = [one for one in routes if one.to != "default"] or routes
    return {route.interface, *(interface for _, interface in route.more)}


def _covers(prefix: str, target: Any) -> bool:
    from ipaddress import ip_network

    return prefix == "default" or target.subnet_of(ip_network(prefix))


def test_a_fat_tree_uses_all_ways_up_and_one_way_down() -> None:
    found = plan(topology={"generator": "fat-tree", "k": 4})
    assert hops(found, "edge1x1", "n9") == {"eth0", "eth1"}
    assert len(hops(found, "agg1x1", "n9")) == 2
    assert len(hops(found, "core1", "n9")) == 1
    assert [route.more for route in found.nodes["n1"].routes] == [()]
    single = plan(topology={"generator": "fat-tree", "k": 4}, equal_paths="one")
    assert all(not route.more for node in single.nodes.values() for route in node.routes)


def test_parallel_links_and_a_ring_are_used_on_both_sides() -> None:
    pairs = [["a", "r1"], ["r1", "r2"], ["r1", "r2"], ["r1", "r2"], ["r2", "b"]]
    links = [{"ends": ends} for ends in pairs]
    found = plan(nodes={name: {} for name in ("a", "b", "r1", "r2")}, links=links)
    assert len(hops(found, "r1", "b")) == 3
    ring = plan(topology={"generator": "ring", "nodes": 4})
    far = {
        str(address.network) for interface in ring.nodes["n3"].interfaces for address in interface.addresses
    }
    assert all(len(route.more) in (0, 1) for route in ring.nodes["n1"].routes)
    assert {route.to for route in ring.nodes["n1"].routes if route.more} <= far


def test_delays_decide_with_their_metric() -> None:
    links = [
        {"ends": ["s", "a"], "delay": "1 ms"},
        {"ends": ["s", "b"], "delay": "1 ms"},
        {"ends": ["a", "t"], "delay": "1 ms"},
        {"ends": ["b", "t"], "delay": "2 ms"},
        {"ends": ["t", "h"]},
        {"ends": ["g", "s"]},
    ]
    nodes = {name: {} for name in "sabthg"}
    assert len(hops(plan(nodes=nodes, links=links), "s", "h")) == 2
    assert len(hops(plan(nodes=nodes, links=links, routes="delay"), "s", "h")) == 1


def test_routers_behind_a_switch_share_an_interface() -> None:
    links = [
        {"ends": ["s", "lan"]},
        {"ends": ["a", "lan"]},
        {"ends": ["b", "lan"]},
        {"ends": ["a", "t"]},
        {"ends": ["b", "t"]},
        {"ends": ["t", "h"]},
        {"ends": ["s", "g"]},
    ]
    found = plan(nodes={name: {} for name in "sabthg"}, switches={"lan": {}}, links=links)
    target = found.nodes["h"].interfaces[0].addresses[0].network
    (route,) = [one for one in found.nodes["s"].routes if one.to != "default" and _covers(one.to, target)]
    assert len({route.via, *(via for via, _ in route.more)}) == 2
    assert {name for _, name in route.more} == {route.interface}


def test_a_guest_of_uml_has_one_way() -> None:
    said = {"topology": {"generator": "fat-tree", "k": 4, "node": {"kind": "uml"}}}
    assert all(not route.more for node in plan(**said).nodes.values() for route in node.routes)


def test_every_node_divides_flows_by_a_seed_of_its_own() -> None:
    found = plan(topology={"generator": "fat-tree", "k": 4})
    settings = [spec_of(found.nodes[name], set())["sysctl"] for name in ("edge1x1", "agg1x1")]
    assert [one["net.ipv4.fib_multipath_hash_policy"] for one in settings] == ["1", "1"]
    seeds = [one.get("net.ipv4.fib_multipath_hash_seed") for one in settings]
    assert seeds[0] != seeds[1] or seeds == [None, None]
    assert "net.ipv4.fib_multipath_hash_policy" not in spec_of(found.nodes["n1"], set())["sysctl"]


@pytest.mark.parametrize(
    "generator", [{"generator": "grid", "rows": 4, "columns": 5}, {"generator": "full-mesh", "nodes": 6}]
)
def test_every_next_hop_is_nearer_to_the_destination(generator: dict[str, Any]) -> None:
    found = plan(topology=generator)
    owner = {
        str(address.ip): node.name
        for node in found.nodes.values()
        for interface in node.interfaces
        for address in interface.addresses
    }

    def ways(node: str, to: str, seen: tuple[str, ...] = ()) -> None:
        networks = [one.network for each in found.nodes[node].interfaces for one in each.addresses]
        targets = [one for each in found.nodes[to].interfaces for one in each.addresses]
        if any(target.network in networks for target in targets):
            return
        assert node not in seen, f"a loop: {seen}"
        for route in found.nodes[node].routes:
            if _covers(route.to, targets[0].network):
                for via in (route.via, *(via for via, _ in route.more)):
                    ways(owner[via], to, (*seen, node))

    for node in found.nodes:
        for to in found.nodes:
            if node != to:
                ways(node, to)
