"""Which frames of a capture a node sends, and what is said of the others."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from airloom.errors import RunError, ScenarioError
from airloom.host.pcap import Captured
from airloom.measure.pcap_sender import load, send
from airloom.measure.rewriting import address_map, must_fit, rewrite
from helpers.pcap_files import ethernet, udp_packet, write

A, B = b"\xc0\0\2\1", b"\xc0\0\2\2"
HERE_A, HERE_B = b"\x0a\0\0\1", b"\x0a\0\0\2"
MAP = {A: HERE_A, B: HERE_B}
MAC = b"\2\0\0\0\0\x0a"


def captured(frame: bytes, at: int = 0, link_type: int = 1) -> Captured:
    return Captured("", at, frame, len(frame), "", link_type)


def towards(address: bytes) -> bytes:
    return b"\2\0" + address


def test_a_node_sends_its_own_part_in_step_with_the_file():
    frames = [
        captured(ethernet(udp_packet(b"answer", B, A)), 1_000),
        captured(ethernet(udp_packet(b"call", A, B)), 3_000),
        captured(b"\xff" * 6 + MAC + b"\x08\x06" + bytes(28), 4_000),
        captured(ethernet(udp_packet(b"other", b"\xc0\0\2\7", B)), 5_000),
        captured(udp_packet(b"raw", A, B), 6_000, link_type=101),
        captured(ethernet(b"")[:12] + b"\x81\0\0\7\x08\0" + udp_packet(b"tagged", A, B), 7_000),
    ]
    found = rewrite(frames, MAP, frozenset([HERE_A]), MAC, towards)
    assert [one.at for one in found.frames] == [3_000, 6_000, 7_000]
    assert found.begin == 1_000
    assert {one.octets[:14] for one in found.frames} == {b"\2\0" + HERE_B + MAC + b"\x08\0"}
    assert {one.octets[26:34] for one in found.frames} == {HERE_A + HERE_B}
    assert found.text == (
        "1 not sent: from hosts that are other nodes; 1 not sent: from hosts that the map does not have; "
        "1 not sent: without IP; 1 sent without VLAN tags"
    )
    out: list[bytes] = []
    send(found.frames, out.append, begin=found.begin)
    assert out == [one.octets for one in found.frames]


def test_octets_that_were_not_captured_are_zeros_under_a_right_checksum():
    whole = ethernet(udp_packet(bytes(100), A, B))
    short = Captured("", 0, whole[:60], len(whole), "")
    same = rewrite([captured(whole)], MAP, frozenset([HERE_A]), MAC, towards).frames[0].octets
    assert rewrite([short], MAP, frozenset([HERE_A]), MAC, towards).frames[0].octets == same


def test_a_map_without_this_node_names_the_hosts_of_the_capture():
    frames = [captured(ethernet(udp_packet(b"", A, B)))] * 3 + [captured(ethernet(udp_packet(b"", B, A)))]
    with pytest.raises(RunError, match="4 from hosts that are other nodes") as caught:
        rewrite(frames, MAP, frozenset([b"\x0a\0\0\3"]), MAC, towards)
    assert caught.value.cure is not None
    assert caught.value.cure.endswith("frames by source: 192.0.2.1 (3), 192.0.2.2 (1)")


def test_frames_that_are_too_long_are_refused_before_any_is_sent():
    with pytest.raises(RunError, match=r"1 frame of up to 1,515 octets .* eth0, whose MTU is 1500"):
        must_fit([captured(bytes(1515)), captured(bytes(1514))], "eth0", 1500)


def test_a_map_of_addresses_and_names():
    assert address_map(["192.0.2.1=10.0.0.1", "2001:db8::1=::1", "192.0.2.9=localhost"]) == {
        A: HERE_A,
        ip_address("2001:db8::1").packed: ip_address("::1").packed,
        b"\xc0\0\2\x09": b"\x7f\0\0\1",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["192.0.2.1"], "--map 192.0.2.1: not an address of the capture, =, and a host"),
        (["h1=10.0.0.1"], "--map h1=10.0.0.1: not an address of the capture, =, and a host"),
        (["192.0.2.1="], "--map 192.0.2.1=: not an address of the capture, =, and a host"),
        (["192.0.2.1=10.0.0.1", "192.0.2.1=10.0.0.2"], "--map: 192.0.2.1 becomes two hosts"),
        (["192.0.2.1=fd00::1"], "--map 192.0.2.1=fd00::1: fd00::1 has no IPv4 address here"),
    ],
)
def test_a_bad_map_is_one_error(words, said):
    with pytest.raises(ScenarioError) as caught:
        address_map(words)
    assert caught.value.message == said


def test_other_link_types_are_taken_if_frames_are_made_anew(tmp_path: Path):
    path = write(tmp_path / "raw.pcap", [(10**18, udp_packet(b"x"))], link_type=101)
    with pytest.raises(RunError, match=r"\[replay.link-type\]"):
        load(path)
    assert len(load(path, rewritten=True)) == 1
