"""Filters that this machine's libpcap compiles, as the engine takes and applies them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom import _engine
from airloom.errors import HostError, ScenarioError
from airloom.host import pcap
from airloom.host.packet_filter import ETHERNET, RADIOTAP, compiled
from helpers.pcap_files import ethernet, udp_packet

try:
    compiled("ip", ETHERNET)
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.mark.parametrize(
    ("expression", "passes"),
    [
        ("", [1, 2, 3]),
        ("udp", [1, 2, 3]),
        ("udp port 4000 and ip src 192.0.2.1", [1, 3]),
        ("ip src 192.0.2.9", [2]),
        ("tcp or vlan", []),
        ("udp[8:4] = 0x41424344", [1]),
        ("greater 100", [3]),
        ("ip[2:2] - 28 > 4 and not ip src 192.0.2.9", [3]),
    ],
)
def test_the_engine_applies_what_libpcap_compiles(tmp_path: Path, expression: str, passes: list[int]) -> None:
    frames = {
        1: ethernet(udp_packet(b"ABCD")),
        2: ethernet(udp_packet(b"WXYZ", source=b"\xc0\0\2\x09")),
        3: ethernet(udp_packet(b"0" * 80)),
    }
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    path = tmp_path / "some.pcapng"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    capture = _engine.LiveCapture(engine, descriptor, filters={ETHERNET: compiled(expression, ETHERNET)})
    os.close(descriptor)
    for number, octets in frames.items():
        engine.offer("a", number, octets)
    engine.step(1000)
    assert capture.end()["failed"] is False
    # A frame of a port without a link is there twice: it enters, and is dropped.
    found = dict.fromkeys(one.octets for one in pcap.frames(path))
    assert [number for number, octets in frames.items() if octets in found] == passes


def test_a_filter_is_of_a_link_type() -> None:
    assert compiled("type mgt subtype beacon", RADIOTAP)[-1][0] == 6
    with pytest.raises(ScenarioError, match=r"802\.11 link-layer types"):
        compiled("type mgt", ETHERNET)


@pytest.mark.parametrize("expression", ["tcp prot 80", "port port", "(", "tcp\0"])
def test_what_is_no_filter_is_refused_by_name(expression: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        compiled(expression, ETHERNET)
    assert (caught.value.code, caught.value.exit_code) == ("capture.filter", 2)
