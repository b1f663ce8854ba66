"""Permanent neighbour entries of plans that may exceed the kernel's limit."""

from __future__ import annotations

from airloom.planning.gate import check
from airloom.planning.links import neighbours
from airloom.planning.plan import Plan
from airloom.scenario.model import Scenario


def plan(**said: object) -> Plan:
    return check(Scenario.model_validate({"name": "x", **said})).plans[0]


def chain(**said: object) -> Plan:
    links = [{"ends": ["a", "r"]}, {"ends": ["r", "b"]}]
    return plan(nodes={"a": {}, "r": {"forwarding": True}, "b": {}}, links=links, **said)


def star(hosts: int, **said: object) -> Plan:
    links = [{"ends": [f"h{number}", "s"]} for number in range(hosts)]
    return plan(nodes={f"h{n}": {} for n in range(hosts)}, switches={"s": {}}, links=links, **said)


def entries(settled: Plan) -> dict[str, set[str]]:
    return {name: {one.address for one in node.neighbours} for name, node in settled.nodes.items()}


def test_a_plan_below_the_limit_stays_as_it_is() -> None:
    small = chain()
    assert neighbours.settle(small, 4) == neighbours.Settled(small)


def test_the_ends_of_a_link_between_nodes_know_each_other() -> None:
    small = chain()
    settled = neighbours.settle(small, 3)
    address = addresses(small)
    assert entries(settled.plan) == {
        "a": {address["r:eth0"]},
        "r": {address["a:eth0"], address["b:eth0"]},
        "b": {address["r:eth1"]},
    }
    macs = {one.mac for one in settled.plan.nodes["a"].neighbours}
    assert macs == {small.nodes["r"].interfaces[0].mac}
    assert settled.note is not None
    assert "gc_thresh3=16" in settled.note
    assert "may have others" not in settled.note


def addresses(plan: Plan) -> dict[str, str]:
    return {
        f"{node.name}:{interface.name}": str(interface.addresses[0].ip)
        for node in plan.nodes.values()
        for interface in node.interfaces
    }


def test_at_a_switch_the_ends_of_a_measurement_know_each_other() -> None:
    small = star(4, measurements=[{"name": "m", "ping": {"from": "h0", "to": "h3"}}])
    settled = neighbours.settle(small, 3)
    address = addresses(small)
    assert entries(settled.plan) == {
        "h0": {address["h3:eth0"]}, "h1": set(), "h2": set(), "h3": {address["h0:eth0"]}
    }  # fmt: skip
    assert settled.note is not None
    assert "4 interfaces may have others" in settled.note


def test_nodes_with_a_kernel_of_their_own_have_a_table_of_their_own() -> None:
    guests = plan(nodes={"a": {"kind": "uml"}, "b": {"kind": "uml"}}, links=[{"ends": ["a", "b"]}])
    assert neighbours.settle(guests, 1).note is None


def test_more_programs_than_the_limit_that_resolve_addresses_are_refused() -> None:
    programs = [{"node": f"h{number}", "name": f"p{number}", "run": ["true"]} for number in range(4)]
    error = neighbours.lack(star(4, programs=programs), 3)
    assert error is not None
    assert error.exit_code == 3
    assert str(error) == (
        "4 interfaces of nodes with programs need address resolution, and this machine's kernel keeps at "
        "most 3 neighbours for all nodes together "
        "(run `sysctl -w net.ipv4.neigh.default.gc_thresh3=16`) [host.neighbours]"
    )
    assert neighbours.lack(star(4, programs=programs[:3]), 3) is None
    assert neighbours.lack(star(4, programs=programs), 4) is None


def crowd(apart: str, **said: object) -> Plan:
    nodes = {
        f"n{place}": {"position": [f"{place} m", "0 m"], "radios": {"wlan0": {}}, "routing": "none"}
        for place in range(3)
    }
    walk = {"model": "path", "points": [{"at": "0 s", "position": ["900 m", "0 m"]}]}
    walk["points"].append({"at": "9 s", "position": [apart, "0 m"]})  # type: ignore[attr-defined]
    nodes["n2"] = {"radios": {"wlan0": {}}, "routing": "none", "mobility": walk}
    programs = [
        {"node": name, "name": f"p-{name}", "run": "babeld wlan0", "until_end": True} for name in nodes
    ]
    media = {"air": {"propagation": {"model": "disk", "range": "150 m"}, "radio": {"phy": "802.11a"}}}
    return plan(nodes=nodes, media=media, programs=programs, duration="10 s", **said)


def test_radios_that_hear_each_other_on_their_walks_count() -> None:
    # n2 comes near to the two others: three pairs in two directions. If it does not, there is one.
    advice = neighbours.overflow(crowd("10 m"), 4)
    assert advice is not None
    assert advice.startswith("6 pairs of radios")
    assert "gc_thresh3=24" in advice
    assert neighbours.overflow(crowd("10 m"), 6) is None
    assert neighbours.overflow(crowd("800 m"), 4) is None
    assert neighbours.settle(crowd("10 m"), 4).note == advice
