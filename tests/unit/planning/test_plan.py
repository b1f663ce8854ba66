"""Plans: every generated topology is connected, every address unique, every route leads there."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.routing.reach import Walker
from airloom.scenario.model import Link, Node, Pools, Scenario, Switch, Topology
from airloom.scenario.topology import builders

TOPOLOGIES = [
    builders.chain(2),
    builders.chain(7),
    builders.chain(5, switched=True),
    builders.star(9),
    builders.star(9, switched=True),
    builders.tree(3, 3),
    builders.tree(2, 4, switched=True),
    builders.grid(4, 5),
    builders.ring(3),
    builders.ring(8),
    builders.full_mesh(6),
    builders.fat_tree(4),
    builders.fat_tree(4, switch=Switch(forwarding="shortest-path")),
    builders.random(12, "20 %"),
    builders.random(12, 0),
    builders.random(6, 1),
]


def plan_of(**parts: Any) -> Plan:
    experiment = check(Scenario(name="test", **parts))
    assert len(experiment.plans) == 1
    return experiment.plans[0]


def addresses(plan: Plan) -> list[Any]:
    return [
        address
        for node in plan.nodes.values()
        for interface in node.interfaces
        for address in interface.addresses
    ]


def assert_connected(plan: Plan) -> None:
    """Every node reaches every address of every other, and each step shortens the way."""
    walker = Walker(plan)
    for source in plan.nodes:
        for target in plan.nodes.values():
            for interface in target.interfaces:
                for address in interface.addresses:
                    way = walker.path_to(source, address.ip)
                    assert way is not None, f"{source} does not reach {target.name} at {address}"
                    assert way[-1] == target.name
                    assert len(set(way)) == len(way)


def assert_sound(plan: Plan) -> None:
    assert all(count == 1 for count in Counter(address.ip for address in addresses(plan)).values())
    macs = [interface.mac for node in plan.nodes.values() for interface in node.interfaces]
    assert len(set(macs)) == len(macs)
    for node in plan.nodes.values():
        names = [interface.name for interface in node.interfaces]
        assert len(set(names)) == len(names)
        own = {interface.name: interface for interface in node.interfaces}
        for route in node.routes:
            networks = [
                address.network
                for address in own[route.interface].addresses
                if address.version == ip_address(route.via).version
            ]
            assert any(ip_address(route.via) in network for network in networks)


@pytest.mark.parametrize(
    "shape", TOPOLOGIES, ids=lambda shape: f"{shape.generator}{'-switched' * shape.switched}"
)
@pytest.mark.parametrize("metric", ["hops", "delay"])
def test_every_node_of_a_generated_topology_reaches_every_other(shape: Topology, metric: Any) -> None:
    plan = plan_of(topology=shape, routes=metric, addresses={"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"})
    assert_sound(plan)
    assert_connected(plan)


@pytest.mark.parametrize(
    ("shape", "switches", "links"),
    [
        ({"generator": "fat-tree", "k": 4}, 20, 48),
        ({"generator": "ring", "nodes": 5}, 5, 5),
        ({"generator": "grid", "rows": 3, "columns": 4}, 12, 17),
        ({"generator": "full-mesh", "nodes": 5}, 5, 10),
        ({"generator": "random", "nodes": 6, "probability": 1.0}, 6, 15),
    ],
    ids=lambda part: part["generator"] if isinstance(part, dict) else str(part),
)
def test_generators_make_switches_with_shortest_paths(
    shape: dict[str, Any], switches: int, links: int
) -> None:
    alike = {"forwarding": "shortest-path", "convergence": "7 ms"}
    topology = Topology.model_validate({**shape, "prefix": "s", "switched": True, "switch": alike})
    first = "edge1x1" if shape["generator"] == "fat-tree" else "s1x1" if "rows" in shape else "s1"
    plan = plan_of(topology=topology, nodes={"own": Node()}, links=[Link(ends=("own", first))])
    assert len(plan.switches) == switches
    assert len(plan.links) == links + 1
    table = {"ageing_ns": 300 * 10**9, "addresses": 8192, "convergence_ns": 7 * 10**6}
    assert all(switch.settings == {"shortest-path": table} for switch in plan.switches.values())
    assert_sound(plan)


def test_a_vlan_reaches_all_edges_of_an_area_over_links_without_vlans() -> None:
    alike = Switch(forwarding="shortest-path")
    plan = plan_of(
        nodes={name: Node() for name in ("a1", "a2", "b1", "b2", "c")},
        switches={"s1": alike, "s2": alike, "s3": alike},
        links=[
            Link(ends=("s1", "s2")),
            Link(ends=("s2", "s3")),
            Link(ends=("s3", "s1")),
            Link(ends=("a1", "s1"), vlan=10),
            Link(ends=("a2", "s2"), vlan=10),
            Link(ends=("b1", "s1"), vlan=20),
            Link(ends=("b2", "s3"), vlan=20),
            Link(ends=("c", "s2")),
        ],
    )
    of = {name: node.interfaces[0].addresses[0].network for name, node in plan.nodes.items()}
    assert of["a1"] == of["a2"]
    assert of["b1"] == of["b2"]
    assert len({of["a1"], of["b1"], of["c"]}) == 3


def test_a_chain_is_planned_as_anybody_would_by_hand() -> None:
    plan = plan_of(topology=builders.chain(4))
    assert [str(address) for address in addresses(plan)] == [
        "10.0.0.1/30",
        "10.0.0.2/30",
        "10.0.0.5/30",
        "10.0.0.6/30",
        "10.0.0.9/30",
        "10.0.0.10/30",
    ]
    assert list(plan.links) == ["n1-n2", "n2-n3", "n3-n4"]
    assert [node.forwarding for node in plan.nodes.values()] == [False, True, True, False]
    assert [
        [(route.to, route.via, route.interface) for route in node.routes] for node in plan.nodes.values()
    ] == [
        [("default", "10.0.0.2", "eth0")],
        [("10.0.0.8/30", "10.0.0.6", "eth1")],
        [("10.0.0.0/30", "10.0.0.5", "eth0")],
        [("default", "10.0.0.9", "eth0")],
    ]
    assert plan.hosts == {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.6", "n4": "10.0.0.10"}


def test_hosts_on_a_switch_share_one_network_and_need_no_route() -> None:
    plan = plan_of(
        nodes={"h1": Node(), "h2": Node(), "h3": Node()},
        switches={"s1": Switch()},
        links=[Link(ends=(name, "s1")) for name in ("h1", "h2", "h3")],
    )
    assert [str(address) for address in addresses(plan)] == ["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24"]
    assert not any(node.routes for node in plan.nodes.values())
    assert [(link.a, link.b) for link in plan.links.values()] == [
        ("h1:eth0", "s1"),
        ("h2:eth0", "s1"),
        ("h3:eth0", "s1"),
    ]


def test_given_addresses_stay_and_the_others_come_from_the_same_network() -> None:
    plan = plan_of(
        nodes={"a": Node(), "b": Node(interfaces={"eth0": {"addresses": ["10.0.0.1/29"]}}), "c": Node()},
        links=[Link(ends=("a", "b")), Link(ends=("b", "c"))],
    )
    assert [str(address) for address in addresses(plan)] == [
        "10.0.0.2/29",
        "10.0.0.1/29",
        "10.0.0.9/30",
        "10.0.0.10/30",
    ]
    assert_connected(plan)


def test_routes_by_delay_avoid_the_slow_link() -> None:
    nodes = {name: Node() for name in "abcd"}
    links = [
        Link(ends=("a", "b"), delay="100 ms"),
        Link(ends=("a", "c"), delay="1 ms"),
        Link(ends=("c", "d"), delay="1 ms"),
        Link(ends=("d", "b"), delay="1 ms"),
    ]
    ways = {}
    for metric in ("hops", "delay"):
        plan = plan_of(nodes=nodes, links=links, routes=metric)
        # c lies on the far side: towards its address at the link c-d the metric decides.
        ways[metric] = Walker(plan).path_to("b", plan.nodes["a"].interfaces[1].addresses[0].ip)
    assert ways == {"hops": ["b", "a"], "delay": ["b", "d", "c", "a"]}


def test_packets_live_long_enough_for_a_long_chain() -> None:
    short, long = plan_of(topology=builders.chain(64)), plan_of(topology=builders.chain(80))
    assert not short.nodes["n1"].sysctl
    assert long.nodes["n1"].sysctl == {"net.ipv4.ip_default_ttl": "255"}
    assert Walker(long).path("n1", "n80") is not None
    nodes = {"n1": Node(sysctl={"net.ipv4.ip_default_ttl": 64})}
    stubborn = plan_of(topology=builders.chain(80), nodes=nodes)
    assert stubborn.nodes["n1"].sysctl == {"net.ipv4.ip_default_ttl": "64"}
    # 64 hops cross 63 routers; the 64th router drops the packet.
    assert Walker(stubborn).path("n1", "n65") is not None
    assert Walker(stubborn).path("n1", "n66") is None
    switched = plan_of(topology=builders.chain(80, switched=True))
    assert not switched.nodes["n1"].sysctl


def test_a_pool_that_is_too_small_for_spacious_networks_gets_tight_ones() -> None:
    parts: dict[str, Any] = {
        "nodes": {f"h{number}": Node() for number in range(6)},
        "switches": {"s0": Switch(), "s1": Switch()},
        "links": [Link(ends=(f"h{number}", f"s{number % 2}")) for number in range(6)],
    }
    plan = plan_of(**parts, addresses=Pools.model_validate({"ipv4": "10.0.0.0/28"}))
    assert {str(address.network) for address in addresses(plan)} == {"10.0.0.0/29", "10.0.0.8/29"}
    with pytest.raises(ScenarioError, match="too small"):
        plan_of(**parts, addresses=Pools.model_validate({"ipv4": "10.0.0.0/29"}))


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Connected networks of nodes and switches, links between them in any order and number."""
    count = draw(st.integers(2, 12))
    names = [f"x{number}" for number in range(count)]
    switches = {name for name in names[1:] if draw(st.booleans()) and draw(st.booleans())}
    links = []
    joined = {0}
    for number in range(1, count):
        links.append((names[draw(st.integers(0, number - 1))], names[number]))
        joined.add(number)
    nodes = [name for name in names if name not in switches]
    for _ in range(draw(st.integers(0, 6))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(names))
        if a != b:
            links.append((a, b))
    delays = [draw(st.sampled_from(["0 ns", "1 ms", "7 ms"])) for _ in links]
    return {
        "nodes": {name: Node(forwarding=True) for name in nodes},
        "switches": {name: Switch() for name in sorted(switches)},
        "links": [Link(ends=ends, delay=delay) for ends, delay in zip(links, delays, strict=True)],
        "routes": draw(st.sampled_from(["hops", "delay"])),
        "addresses": draw(
            st.sampled_from(
                [{"ipv4": "10.0.0.0/8"}, {"ipv4": None, "ipv6": "fd00::/48"}, {"ipv6": "fd00::/48"}]
            )
        ),
    }


def distances(plan: Plan, source: str) -> dict[str, int]:
    """Router hops from a node to every other, without the planner: breadth first over shared networks."""
    members: dict[Any, list[str]] = {}
    for node in plan.nodes.values():
        for interface in node.interfaces:
            for address in interface.addresses:
                members.setdefault(address.network, []).append(node.name)
    found = {source: 0}
    queue = [source]
    for here in queue:
        if here != source and not plan.nodes[here].forwarding:
            continue
        for interface in plan.nodes[here].interfaces:
            for address in interface.addresses:
                for name in members[address.network]:
                    if name not in found:
                        found[name] = found[here] + 1
                        queue.append(name)
    return found


@pytest.mark.slow
@given(networks())
@settings(deadline=None)
def test_routes_by_hops_reach_every_network_in_the_fewest_hops(parts: dict[str, Any]) -> None:
    plan = plan_of(**{**parts, "routes": "hops"})
    walker = Walker(plan)
    members: dict[Any, set[str]] = {}
    for node in plan.nodes.values():
        for interface in node.interfaces:
            for address in interface.addresses:
                members.setdefault(address.network, set()).add(node.name)
    for source in plan.nodes:
        away = distances(plan, source)
        for network, inside in members.items():
            if not any(plan.nodes[name].forwarding for name in inside):
                continue
            target = next(
                address.ip
                for name in sorted(inside)
                for interface in plan.nodes[name].interfaces
                for address in interface.addresses
                if address.network == network
            )
            way = walker.path_to(source, target)
            assert way is not None
            first = next(index for index, name in enumerate(way) if name in inside)
            assert first == min(away[name] for name in inside)


@pytest.mark.slow
@given(networks())
@settings(deadline=None)
def test_any_connected_network_of_routers_and_switches_is_reachable_throughout(parts: dict[str, Any]) -> None:
    plan = plan_of(**parts)
    assert_sound(plan)
    assert_connected(plan)


def test_equipment_goes_with_the_wires_that_end_in_it() -> None:
    scenario = Scenario.from_yaml(
        """
        name: test
        nodes:
          h1: {interfaces: {eth0: {adapter: {gap: 4 us, moderation: 50 us, service: {exponential: 20 us}}}}}
          h2: {}
        switches: {s1: {latency: 7 us}}
        links:
          - {ends: [h1, s1], late: slip}
          - {ends: [s1, h2]}
        """
    )
    links = check(scenario).plans[0].links
    assert links["h1-s1"].forward.engine() == {
        "late": "slip",
        "gap_ns": 4_000,
        "receiver": {"latency_ns": 7_000},
    }
    assert links["h1-s1"].backward.engine() == {
        "late": "slip",
        "receiver": {
            "moderation_ns": 50_000,
            "service": {"exponential": {"mean_ns": 20_000}},
        },
    }
    assert links["s1-h2"].forward.engine() == {}
    assert links["s1-h2"].backward.engine() == {"receiver": {"latency_ns": 7_000}}
