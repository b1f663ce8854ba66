"""IP packets with other addresses: every checksum that covers them is right."""

from __future__ import annotations

import contextlib
import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.measure.rewritten_packets import Unsuitable, is_later_fragment, rewritten

A4, B4, C4, D4 = (ip_address(one).packed for one in ("192.0.2.1", "192.0.2.2", "10.1.255.254", "10.0.0.9"))
A6, B6, C6, D6 = (ip_address(one).packed for one in ("2001:db8::1", "2001:db8::2", "fd00::ffff", "fd00:1::9"))
MAP = {A4: C4, B4: D4, A6: C6, B6: D6}
GROUP4, GROUP6 = ip_address("224.0.0.9").packed, ip_address("ff02::9").packed
ICMP, TCP, UDP, ICMPV6, UDP_LITE = 1, 6, 17, 58, 136
SIZES = {ICMP: 8, TCP: 20, UDP: 8, ICMPV6: 8, UDP_LITE: 8}
PLACES = {ICMP: 2, TCP: 16, UDP: 6, ICMPV6: 2, UDP_LITE: 6}


def is_right(octets: bytes) -> bool:
    """An independent test of the Internet checksum: 2^16 is 1 modulo 2^16 - 1, so that the ones'
    complement sum of 16-bit words is zero exactly if the whole, as one number, is divisible by it."""
    return int.from_bytes(octets + bytes(len(octets) % 2), "big") % 0xFFFF == 0


def put(octets: bytes, at: int, value: int) -> bytes:
    return octets[:at] + value.to_bytes(2, "big") + octets[at + 2 :]


def made_right(octets: bytes, at: int, pseudo: bytes = b"") -> bytes:
    """Returns octets with the checksum at ``at`` that :func:`is_right` accepts."""
    zero = pseudo + put(octets, at, 0)
    return put(octets, at, -int.from_bytes(zero + bytes(len(zero) % 2), "big") % 0xFFFF or 0xFFFF)


def layer_4(protocol: int, payload: bytes) -> bytes:
    header = bytearray(range(1, SIZES[protocol] + 1))
    if protocol in (UDP, UDP_LITE):
        header[4:6] = (8 + len(payload)).to_bytes(2, "big")
    if protocol in (ICMP, ICMPV6):
        header[0] = {ICMP: 8, ICMPV6: 128}[protocol]
    return bytes(header) + payload


def ipv4(protocol: int, data: bytes, *, source=A4, to=B4, options=b"", fragment=0) -> bytes:
    words = 5 + len(options) // 4
    total = 4 * words + len(data)
    return (
        struct.pack("!BBHHHBBH", 0x40 | words, 0, total, 7, fragment, 64, protocol, 0xBAD)
        + source
        + to
        + options
        + data
    )


def ipv6(protocol: int, data: bytes, *, source=A6, to=B6) -> bytes:
    return struct.pack("!IHBB", 6 << 28, len(data), protocol, 64) + source + to + data


def pseudo(packet: bytes, protocol: int, length: int) -> bytes:
    addresses = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
    return addresses + struct.pack("!II", length, protocol)


@given(
    protocol=st.sampled_from([TCP, UDP, ICMP]),
    payload=st.binary(max_size=64),
    options=st.binary(max_size=3).map(lambda one: bytes([1] * 4 * len(one))),
    trailer=st.binary(max_size=6),
)
def test_checksums_of_ipv4_are_right(protocol, payload, options, trailer):
    data = layer_4(protocol, payload)
    packet = ipv4(protocol, data, options=options)
    made = rewritten(packet + trailer, MAP)
    header = 20 + len(options)
    assert made[12:20] == C4 + D4
    assert is_right(made[:header])
    begin = b"" if protocol == ICMP else pseudo(made, protocol, len(data))
    assert is_right(begin + made[header : header + len(data)])
    kept = put(put(made, 10, 0), header + PLACES[protocol], 0)
    same = put(put(packet[:12] + C4 + D4 + packet[20:], 10, 0), header + PLACES[protocol], 0)
    assert kept == same + trailer


@given(
    protocol=st.sampled_from([TCP, UDP, ICMPV6]),
    payload=st.binary(max_size=64),
    extensions=st.lists(st.sampled_from([0, 60]), max_size=2),
)
def test_checksums_of_ipv6_are_right(protocol, payload, extensions):
    data = layer_4(protocol, payload)
    chain, first = data, protocol
    for kind in extensions:
        chain, first = bytes([first, 0, 1, 4, 0, 0, 0, 0]) + chain, kind
    made = rewritten(ipv6(first, chain), MAP)
    assert made[8:40] == C6 + D6
    assert is_right(pseudo(made, protocol, len(data)) + made[-len(data) :])


@given(payload=st.binary(max_size=64), protocol=st.sampled_from([TCP, UDP]))
def test_the_first_fragment_keeps_a_right_checksum_of_the_whole_datagram(payload, protocol):
    whole = layer_4(protocol, payload + bytes(range(200)))
    right = made_right(whole, PLACES[protocol], A4 + B4 + struct.pack("!II", len(whole), protocol))
    first = rewritten(ipv4(protocol, right[:48], fragment=0x2000), MAP)
    later = rewritten(ipv4(protocol, right[48:], fragment=6), MAP)
    assert is_right(first[:20])
    assert is_right(later[:20])
    assert later[20:] == right[48:]
    assert is_right(pseudo(first, protocol, len(whole)) + first[20:] + later[20:])
    assert (is_later_fragment(first), is_later_fragment(later)) == (False, True)


def test_fragments_of_ipv6():
    whole = layer_4(UDP, bytes(range(200)))
    right = made_right(whole, 6, A6 + B6 + struct.pack("!II", len(whole), UDP))
    first = rewritten(ipv6(44, struct.pack("!BBHI", UDP, 0, 1, 5) + right[:48]), MAP)
    later = rewritten(ipv6(44, struct.pack("!BBHI", UDP, 0, 48, 5) + right[48:]), MAP)
    assert is_right(pseudo(first, UDP, len(whole)) + first[48:] + later[48:])
    assert (is_later_fragment(first), is_later_fragment(later)) == (False, True)


def test_a_checksum_of_a_part_follows_the_addresses():
    data = layer_4(UDP_LITE, b"covered or not")
    right = made_right(data, 6, A4 + B4 + struct.pack("!II", len(data), UDP_LITE))
    made = rewritten(ipv4(UDP_LITE, right), MAP)
    assert is_right(pseudo(made, UDP_LITE, len(data)) + made[20:])


def test_a_datagram_without_a_checksum_stays_without():
    assert rewritten(ipv4(UDP, put(layer_4(UDP, b"x"), 6, 0)), MAP)[26:28] == b"\0\0"


def test_a_checksum_of_zero_is_sent_as_its_complement():
    for number in range(0x10000):
        made = rewritten(ipv4(UDP, layer_4(UDP, number.to_bytes(2, "big"))), MAP)
        assert made[26:28] != b"\0\0"
        if made[26:28] == b"\xff\xff":
            return
    pytest.fail("one of all payloads has it")


def test_an_icmp_error_quotes_the_packet_that_was_sent_here():
    quoted = made_right(ipv4(UDP, layer_4(UDP, b""), source=B4, to=A4)[:20], 10) + layer_4(UDP, b"")
    made = rewritten(ipv4(ICMP, bytes([3, 3, 0, 0, 0, 0, 0, 0]) + quoted), MAP)
    assert made[28 + 12 : 28 + 20] == D4 + C4
    assert is_right(made[28:48])
    assert is_right(made[20:])
    cut = rewritten(ipv4(ICMP, bytes([3, 3, 0, 0, 0, 0, 0, 0]) + quoted[:10]), MAP)
    assert cut[28:] == quoted[:10]


def test_groups_stay():
    assert rewritten(ipv4(UDP, layer_4(UDP, b""), to=GROUP4), MAP)[12:20] == C4 + GROUP4
    assert rewritten(ipv6(UDP, layer_4(UDP, b""), to=GROUP6), MAP)[8:40] == C6 + GROUP6


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (ipv4(UDP, layer_4(UDP, b""), source=D4), "from hosts that the map does not have"),
        (ipv4(UDP, layer_4(UDP, b""), to=C4), "to hosts that the map does not have"),
        (put(ipv4(UDP, layer_4(UDP, b"")), 2, 0), "with a wrong length"),
        (put(ipv4(UDP, layer_4(UDP, b"")), 24, 900), "with a wrong length"),
        (ipv4(TCP, bytes(10)), "with a wrong length"),
        (ipv4(UDP, layer_4(UDP, b""), options=b"\x83\x07\x04" + D4 + b"\0"), "with a source route"),
        (ipv4(51, bytes(24)), "with authenticated addresses"),
        (ipv6(51, bytes(24)), "with authenticated addresses"),
        (ipv6(43, bytes([UDP, 0, 2, 1, 0, 0, 0, 0]) + layer_4(UDP, b"")), "with a source route"),
        (ipv6(0, b"\x11"), "with a wrong length"),
        (ipv6(60, bytes([UDP, 9, 0, 0, 0, 0, 0, 0])), "with a wrong length"),
        (ipv6(ICMPV6, bytes([135]) + bytes(23)), "of neighbour discovery"),
        (put(ipv6(UDP, layer_4(UDP, b"")), 4, 99), "with a wrong length"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(packet, reason):
    with pytest.raises(Unsuitable, match=f"^{reason}$"):
        rewritten(packet, MAP)


@given(st.binary(max_size=80), st.sampled_from([b"\x45", b"\x60", b"\x4f"]))
def test_foreign_octets_give_a_packet_or_a_reason(octets, first):
    packet = (first + octets).ljust(40, b"\0")
    known = {packet[12:16]: C4, packet[16:20]: D4, packet[8:24]: C6, packet[24:40]: D6}
    with contextlib.suppress(Unsuitable):
        assert len(rewritten(packet, known)) == len(packet)
        is_later_fragment(packet)
