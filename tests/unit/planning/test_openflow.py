"""Slices of flow space, and the flows that hold them apart; the first words of an OpenFlow switch."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom import Scenario, check
from airloom.nodes.network.controller_proxy import _Handshake
from airloom.planning.openflow import flowspace
from airloom.planning.plan import Plan
from airloom.scenario.model import Flow


def plan(**more: Any) -> Plan:
    return check(
        Scenario.model_validate(
            {
                "name": "ovs",
                "nodes": {"h1": {}, "h2": {}, "c1": {}},
                "switches": {"s1": {"kind": "openvswitch"}},
                "links": [{"ends": ["h1", "s1"]}, {"ends": ["s1", "h2"]}],
                **more,
            }
        )
    ).plans[0]


def test_a_switch_is_a_node_with_a_bridge():
    made = plan(switches={"s1": {"kind": "openvswitch", "controllers": ["tcp:c1:6653"], "datapath_id": 255}})
    node = made.nodes["s1"]
    assert node.kind == "openvswitch"
    assert [interface.name for interface in node.interfaces] == ["eth1", "eth2"]
    assert not any(interface.addresses for interface in node.interfaces)
    (bridge,) = node.openvswitch.bridges
    assert bridge.settings["fail_mode"] == "secure"
    assert bridge.settings["other_config:datapath-id"] == "00000000000000ff"
    assert [str(one) for one in bridge.controllers] == ["tcp:c1:6653"]
    assert made.links["h1-s1"].b == "s1:eth1"
    assert "s1" not in made.switches
    assert "s1" not in made.hosts


def test_ports_have_the_numbers_that_ends_name():
    made = plan(links=[{"ends": ["h1", "s1:eth7"]}, {"ends": ["s1", "h2"]}])
    ports = made.nodes["s1"].openvswitch.bridges[0].ports
    assert [(port.name, port.number) for port in ports] == [("eth7", 7), ("eth1", 1)]


def test_the_switches_of_a_topology_are_alike():
    made = check(
        Scenario.model_validate(
            {
                "name": "tree",
                "topology": {
                    "generator": "tree", "depth": 2, "fanout": 2, "switched": True,
                    "switch": {"kind": "openvswitch", "fail_mode": "secure"},
                },
            }
        )
    ).plans[0]  # fmt: skip
    bridges = [node.openvswitch.bridges[0] for node in made.nodes.values() if node.openvswitch]
    assert len(bridges) == 3
    assert [one.settings["other_config:datapath-id"][-1] for one in bridges] == ["1", "2", "3"]
    assert {one.settings["fail_mode"] for one in bridges} == {"secure"}


def test_both_hosts_of_a_switch_are_in_one_network():
    made = plan()
    a, b = (made.nodes[name].interfaces[0].addresses[0].network for name in ("h1", "h2"))
    assert a == b


def test_slices_have_bridges_of_their_own_behind_a_base_without_controller():
    made = plan(
        slices={
            "red": {"controllers": ["tcp:c1:1"], "vlan": 10},
            "blue": {"controllers": ["tcp:c1:2"], "links": ["h1-s1"], "vlan": 20},
        }
    )
    switch = made.nodes["s1"].openvswitch
    assert [bridge.name for bridge in switch.bridges] == ["base", "red", "blue"]
    assert not switch.bridges[0].controllers
    assert [port.number for port in switch.bridges[2].ports] == [1]
    assert switch.flows == (
        "priority=20,in_port=1,dl_vlan=10,actions=pop_vlan,output:3",
        "priority=20,in_port=3,actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:1",
        "priority=20,in_port=1,dl_vlan=20,actions=pop_vlan,output:5",
        "priority=20,in_port=5,actions=push_vlan:0x8100,set_field:4116->vlan_vid,output:1",
        # The second link is of one slice alone.
        "priority=20,in_port=2,actions=output:4",
        "priority=20,in_port=4,actions=output:2",
    )


def test_the_rest_may_not_send_what_another_slice_has():
    made = plan(slices={"web": {"flows": [{"protocol": "arp"}]}, "other": {"rest": True}})
    assert made.nodes["s1"].openvswitch.flows[:5] == (
        "priority=20,in_port=1,vlan_tci=0x0000/0x1000,dl_type=0x0806,actions=output:3",
        "priority=20,in_port=3,vlan_tci=0x0000/0x1000,dl_type=0x0806,actions=output:1",
        "priority=20,in_port=5,vlan_tci=0x0000/0x1000,dl_type=0x0806,actions=drop",
        "priority=10,in_port=1,vlan_tci=0x0000/0x1000,actions=output:5",
        "priority=10,in_port=5,vlan_tci=0x0000/0x1000,actions=output:1",
    )


def test_what_two_slices_could_claim_by_its_two_ends_belongs_to_neither():
    web, safe = Flow(protocol="tcp", port=80), Flow(protocol="tcp", port=443)
    assert not flowspace.overlap(web, safe)
    found = [flowspace.text(match) for match in flowspace.contested([[web], [safe]])]
    assert "dl_type=0x0800,nw_proto=6,tp_src=80,tp_dst=443" in found
    assert "dl_type=0x0800,nw_proto=6,tp_src=443,tp_dst=80" in found
    assert len(found) == 4  # IPv6 too


def test_a_network_has_its_arp():
    found = [flowspace.text(match) for match in flowspace.matches(Flow(network="10.1.0.0/16"))]
    assert found == [
        "dl_type=0x0800,nw_src=10.1.0.0/16,nw_dst=10.1.0.0/16",
        "dl_type=0x0806,arp_spa=10.1.0.0/16,arp_tpa=10.1.0.0/16",
    ]


PROTOCOLS = [None, "arp", "ipv4", "ipv6", "icmp", "icmp6", "tcp", "udp"]
PREFIXES = ["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "192.168.0.0/24"]


@st.composite
def flows(draw: Any) -> Flow:
    protocol = draw(st.sampled_from(PROTOCOLS))
    port = draw(st.sampled_from([None, 80, 443])) if protocol in ("tcp", "udp") else None
    network = draw(st.sampled_from([None, *PREFIXES]))
    return Flow(protocol=protocol, port=port, network=network)


@given(flows(), flows())
def test_flows_that_are_apart_share_only_what_is_contested(a: Flow, b: Flow):
    common = [
        both
        for one, other in product(flowspace.matches(a), flowspace.matches(b))
        if (both := flowspace.both(one, other)) is not None
    ]
    if not flowspace.overlap(a, b):
        lost = flowspace.contested([[a], [b]])
        assert all(match in lost for match in common)
    assert flowspace.overlap(a, b) == flowspace.overlap(b, a)


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 4, kind, 8 + len(body), 1) + body


@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_the_introduction_is_seen_however_it_comes(step):
    octets = message(0, bytes(8)) + message(2, b"\x06" * 40) + message(6, bytes(24))
    handshake = _Handshake()
    seen = [handshake.over(octets[at : at + step]) for at in range(0, len(octets), step)]
    # The header of the third message ends at 16 + 48 + 8 octets.
    assert seen.index(True) == (16 + 48 + 8 - 1) // step


@given(st.lists(st.binary(max_size=64)))
def test_foreign_octets_are_heard_without_harm(pieces):
    handshake = _Handshake()
    for piece in pieces:
        if handshake.over(piece):
            break
