"""Loops of flow tables on made-up tables: classes of packets, priorities, rewriting, several tables."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from airloom.planning.openflow.flow_loops import FlowLoops, FlowSwitch, find, packet_text
from airloom.planning.openflow.flow_tables import rules
from airloom.planning.openflow.header_classes import Class

RING = ("a", "b", "c")


def ring(tables: Mapping[str, str], *, floods: bool = True, most: int = 100_000) -> FlowLoops:
    """Three switches: port 1 to a host, port 2 to the next switch, port 3 to the one before."""
    links = {}
    for place, name in enumerate(RING):
        following = RING[(place + 1) % 3]
        links |= {(name, 2): (following, 3), (following, 3): (name, 2)}
    switches = {name: FlowSwitch((1, 2, 3), rules(tables[name]), floods) for name in RING}
    return find(switches, links, [(name, 1) for name in RING], most=most)


def same(text: str) -> dict[str, str]:
    return dict.fromkeys(RING, text)


def test_the_cycle_has_switch_ports_rules_and_a_packet() -> None:
    found = ring(same("priority=5,ip,nw_dst=10.0.0.0/24 actions=output:2\n"))
    (loop,) = found.loops
    assert {(hop.switch, hop.in_port, hop.out_port) for hop in loop.hops} == {(one, 3, 2) for one in RING}
    assert {hop.rule for hop in loop.hops} == {"priority=5,ip,nw_dst=10.0.0.0/24 actions=output:2"}
    assert packet_text(loop.packet) == "dl_type=0x0800,nw_dst=10.0.0.2"
    assert loop.entry == ("a", 1)
    assert str(loop) == (
        "b (port 3 to 2) -> c (port 3 to 2) -> a (port 3 to 2) -> b, "
        "for example dl_type=0x0800,nw_dst=10.0.0.2 from a port 1"
    )
    assert found.undecided == []


def test_higher_priorities_take_packets_out_until_none_are_left() -> None:
    around = "priority=1,ip actions=output:2\n"
    low = "priority=9,ip,nw_dst=0.0.0.0/1 actions=output:1\n"
    high = "priority=9,ip,nw_dst=128.0.0.0/1 actions=drop\n"
    (loop,) = ring({"a": around, "b": around, "c": around + low}).loops
    assert loop.packet["nw_dst"] >= 2**31, "only the upper half goes round"
    assert ring({"a": around, "b": around + high, "c": around + low}).loops == []


def test_a_packet_that_is_rewritten_back_loops_and_one_that_is_not_does_not() -> None:
    def flows(match: str, to: str) -> str:
        return f"ip,nw_dst={match} actions=mod_nw_dst:{to},output:2\n"

    turned = {"a": flows("10.0.0.1", "10.0.0.2"), "b": flows("10.0.0.2", "10.0.0.3")}
    assert ring({**turned, "c": flows("10.0.0.3", "10.0.0.4")}).loops == []
    (loop,) = ring({**turned, "c": flows("10.0.0.3", "10.0.0.1")}).loops
    seen = {hop.switch: packet_text(hop.packet).rpartition("=")[2] for hop in loop.hops}
    assert seen == {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}


def test_tags_that_are_pushed_and_popped_are_followed() -> None:
    push = "priority=2,in_port=1,vlan_tci=0x0000/0x1000 actions=push_vlan:0x8100,"
    push += "set_field:4106->vlan_vid,output:2\n"
    around = "priority=1,in_port=3,dl_vlan=10 actions=output:2\n"
    (loop,) = ring({"a": push + around, "b": around, "c": around}).loops
    assert all(hop.packet["vlan_tci"] == 0x100A for hop in loop.hops)
    popped = "priority=1,in_port=3,dl_vlan=10 actions=strip_vlan,output:2\n"
    assert [one.entry for one in ring({"a": push + around, "b": around, "c": popped}).loops] == []


def test_tables_action_sets_and_resubmits_are_followed() -> None:
    text = (
        "table=0, ip actions=write_actions(output:2),goto_table:1\n"
        "table=0, arp actions=resubmit(,2)\n"
        "table=1, priority=9,tcp,tp_dst=80 actions=clear_actions\n"
        "table=1, priority=1 actions=drop\n"
        "table=2, actions=output:2\n"
    )
    found = ring(same(text))
    (loop,) = found.loops
    assert found.undecided == []
    quiet = text.replace("output:2),goto_table", "output:1),goto_table").replace("arp ", "rarp,arp_op=1 ")
    assert ring(same(quiet.replace("table=2, actions=output:2", "table=2, actions=drop"))).loops == []
    assert loop.hops


def test_a_packet_does_not_leave_where_it_came_in_unless_it_is_told_to() -> None:
    ends = {"b": "actions=drop\n", "c": "actions=drop\n"}
    assert ring({"a": "actions=output:2\n", **ends}).loops == []
    back = {"a": "in_port=1 actions=output:2\nin_port=2 actions=IN_PORT\n", "b": "actions=IN_PORT\n"}
    (loop,) = ring({**back, "c": "actions=drop\n"}).loops
    assert {hop.switch for hop in loop.hops} == {"a", "b"}


def test_normal_floods_group_addresses_unless_a_spanning_tree_decides() -> None:
    found = ring(same("priority=0 actions=NORMAL\n"))
    assert found.loops
    assert all(loop.packet["eth_dst"] & 1 << 40 for loop in found.loops)
    assert "a: not followed: learnt addresses: priority=0 actions=NORMAL" in found.undecided
    found = ring(same("priority=0 actions=NORMAL\n"), floods=False)
    assert found.loops == []
    assert "a: not followed: the spanning tree: priority=0 actions=NORMAL" in found.undecided


@pytest.mark.parametrize(
    ("flow", "what"),
    [
        ("ip actions=group:5", "the action group:5: ip actions=group:5"),
        ("ip actions=learn(table=1),output:2", "the action learn: ip actions=learn(table=1),output:2"),
        ("ct_state=+trk,ip actions=output:2", "a match on ct_state=+trk: ct_state=+trk,ip actions=output:2"),
    ],
)
def test_what_is_not_followed_is_named(flow: str, what: str) -> None:
    found = ring(same(flow))
    assert found.loops == []
    assert f"a: not followed: {what}" in found.undecided


def test_a_loop_that_uses_up_the_ttl_says_so() -> None:
    (loop,) = ring(same("ip actions=dec_ttl,output:2\n")).loops
    assert loop.ends
    assert "until its TTL is used up" in str(loop)


def test_a_search_that_is_too_long_ends_and_says_so() -> None:
    found = ring(same("ip actions=output:1\n"), most=4)
    assert found.undecided == ["the search ended early, after 4 rules applied to classes of packets"]


def test_a_class_is_empty_exactly_if_no_packet_is_left() -> None:
    """Against all 256 packets of one field of 8 bits."""
    rng = random.Random(1)
    for _ in range(300):
        cubes = [
            (value & mask, mask)
            for value, mask in ((rng.randrange(256), rng.randrange(256)) for _ in range(rng.randrange(1, 9)))
        ]
        packets = Class().within({"nw_proto": cubes[0]})
        assert packets is not None
        for cube in cubes[1:]:
            packets = packets.outside({"nw_proto": cube})
        left = [
            one
            for one in range(256)
            if one & cubes[0][1] == cubes[0][0] and all(one & mask != value for value, mask in cubes[1:])
        ]
        sample = packets.sample()
        assert (sample is None) == (not left)
        assert sample is None or sample["nw_proto"] in left
