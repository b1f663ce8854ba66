"""Parameters of Mininet's links, by what they do to traffic."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.mininet import session
from airloom.mininet.link import TCLink, TCULink
from airloom.mininet.net import Mininet
from airloom.mininet.node import Host
from helpers import wire_frames
from helpers.nodes import PYTHON

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

PROGRAM = Path(wire_frames.__file__).read_text()
BURST = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"", (sys.argv[1], 9))
for _ in range(int(sys.argv[2])):
    s.sendto(bytes(1472), (sys.argv[1], 9))
"""
"""Datagrams that fill frames of 1514 octets, as fast as they go."""
CAPABLE = BURST.replace("s.sendto", "s.setsockopt(0, 1, 2)\ns.sendto", 1)
"""The same, ECN-capable."""
SLOW = 1
"""Mbit/s at which a frame of 1514 octets takes 12 ms, so that a burst is one also on a busy machine."""


@pytest.fixture
def net() -> Iterator[Mininet]:
    made = Mininet(link=TCLink)
    yield made
    made.stop()
    session.close()


def joined(net: Mininet, **params: Any) -> tuple[Any, Any, Any]:
    """Two hosts and the link between them."""
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    link = net.addLink(h1, h2, **params)
    net.build()
    h1.cmd("ping -c 1 -w 5 10.0.0.2")
    return h1, h2, link


def burst(link: Any, program: str = BURST) -> dict[str, Any]:
    """Sends 61 datagrams from the first host; returns the account of their direction once all have come."""
    h1, h2 = link.intf1.node, link.intf2.node
    for host in (h1, h2):  # neither discovery nor routers of IPv6, whose frames are not ECN-capable
        host.cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
    before = forward(link)["entered"]
    h1.cmd(f"{PYTHON} -c '{program}' {h2.IP()} 60")
    until = time.monotonic() + 60
    while forward(link)["entered"] < before + 61:
        assert time.monotonic() < until, "datagrams did not come to the link"
        time.sleep(0.02)
    return forward(link)


def forward(link: Any) -> dict[str, Any]:
    """The engine's account of the direction from the first host."""
    account: dict[str, Any] = session.session().world.engine.ledger()["links"][link.engineName]["forward"]
    return account


def counted(sender: Any, receiver: Any, folder: Path) -> dict[str, dict[str, int]]:
    """Transfers 2 MB by TCP; returns what raw sockets at both ends saw."""
    program, output = folder / "wire_frames.py", folder / "received"
    program.write_text(PROGRAM)
    receiver.cmd(f"{PYTHON} {program} {receiver.intf()} > {output} &")
    until = time.monotonic() + 30
    while not receiver.listens(wire_frames.PORT) and time.monotonic() < until:
        time.sleep(0.05)
    sent = sender.cmd(f"{PYTHON} {program} {sender.intf()} {receiver.IP()}")
    receiver.cmd("wait")
    return {"sender": json.loads(sent), "receiver": json.loads(output.read_text())}


@pytest.mark.parametrize("switched", [False, True])
def test_tculink_has_no_offloads(net: Mininet, switched: bool, tmp_path: Path) -> None:
    net.link = TCULink
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    for pair in ((h1, net.addSwitch("s1")), (h2, net["s1"])) if switched else ((h1, h2),):
        net.addLink(*pair, bw=50)
    net.start()
    for counts in counted(h1, h2, tmp_path).values():
        assert counts["frames"] > 100
        assert (counts["long"], counts["wrong"]) == (0, 0)


def test_a_switch_sends_without_offloads(net: Mininet, tmp_path: Path) -> None:
    # Only the switch's port: what the host receives, and not what it sends.
    h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
    net.addLink(h1, s1, bw=50)
    net.addLink(s1, h2, bw=50, params1={"txo": False})
    net.start()
    found = counted(h1, h2, tmp_path)
    assert found["sender"]["long"] > 0
    assert found["receiver"]["long"] == 0


def test_offloads_change_at_run_time(net: Mininet, tmp_path: Path) -> None:
    h1, h2, _ = joined(net, bw=50)
    assert counted(h1, h2, tmp_path)["receiver"]["long"] > 0
    for host in (h1, h2):
        host.intf().config(txo=False, rxo=False)
    for counts in counted(h1, h2, tmp_path).values():
        assert (counts["long"], counts["wrong"]) == (0, 0)
    assert "tx-checksumming: off" in h1.cmd("ethtool -k h1-eth0")


@pytest.mark.parametrize("mark", [True, False])
def test_red_above_its_upper_threshold(net: Mininet, mark: bool) -> None:
    # 60 frames of 1514 octets at once: the mean with weight 1/2 is above 35,000 octets from about the
    # 25th on. Datagrams that are ECN-capable are marked and none is lost; others are dropped.
    link = joined(net, bw=SLOW, enable_ecn=True)[2]
    account = burst(link, CAPABLE if mark else BURST)
    dropped = account["dropped"].get("early-drop", 0)
    assert (dropped == 0) is mark
    assert (account["marked"] > 25) is mark
    assert account["queue_highest"] > 55 if mark else account["queue_highest"] < 30


def test_a_token_bucket_limits_the_queue_by_its_latency(net: Mininet) -> None:
    # 1 Mbit/s: 15,000 octets in 120 ms, and the bucket's 15,000: 19 frames of 1514 octets, and one on
    # the wire.
    account = burst(joined(net, bw=SLOW, use_tbf=True)[2])
    assert account["queue_highest"] in (18, 19)
    assert account["dropped"]["queue-full"] >= 30


def test_speedup_is_the_rate_of_a_switch(net: Mininet) -> None:
    h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
    link = net.addLink(s1, h1, bw=10, speedup=40)
    net.addLink(h2, s1)
    net.start()
    assert (link.intf1._shaped.rate, link.intf2._shaped.rate) == (40_000_000, 10_000_000)
    h2.cmd("ping -c 1 -w 5 10.0.0.1")
    # 1472 octets of payload are 1538 on the wire: 1.23 ms at 10 and 0.31 ms at 40 Mbit/s.
    said = h2.cmd("ping -c 20 -i 0.02 -s 1472 10.0.0.1")
    least = float(re.search(r"= ([\d.]+)/", said)[1])  # type: ignore[index]
    assert 1.53 < least < 2.4


def test_none_and_zero_change_nothing(net: Mininet, capsys: pytest.CaptureFixture[str]) -> None:
    h1, _, link = joined(net, bw=10, loss=50)
    for given in ({"bw": None}, {"loss": 0}, {"delay": None, "jitter": "1ms"}):
        h1.intf().config(**given)
        assert (link.intf1._shaped.rate, link.intf1._shaped.loss) == (10_000_000, 0.5)
    said = h1.cmd("ping -c 200 -i 0.005 -W 1 10.0.0.2")
    received = int(re.search(r"(\d+) received", said)[1])  # type: ignore[index]
    # A quarter: half of the requests, and half of the answers.
    assert 20 < received < 85
    h1.intf().config(delay="5ms")
    assert link.intf1._shaped.rate is None
    notes = session.session().verdict().notes
    assert any("loss=0 has no effect without" in note for note in notes)


def test_what_has_no_effect_is_noted(net: Mininet) -> None:
    net.addHost("h0", cls=Host, cpu=0.5)
    joined(net, bw=10, burst="15k", r2q=10)
    notes = "\n".join(session.session().verdict().notes)
    assert "Host h0: cpu=0.5 has no effect: only a `CPULimitedHost` has a share" in notes
    assert "TCLink: burst='15k' has no effect: there is no such parameter" in notes
    assert "r2q" in notes


def test_hosts_have_ipv6_addresses(net: Mininet) -> None:
    h1, h2 = net.addHost("h1", ip="fd00::1/64"), net.addHost("h2", ip="fd00::2/64")
    net.addLink(h1, h2)
    net.build()
    assert h1.IP() == "fd00::1"
    assert net.pingAll() == 0
    h1.setIP("fd00::7", 64)
    said = h1.cmd("ip -6 -o addr show scope global")
    assert "fd00::7/64" in said
    assert "fd00::1/" not in said


def test_an_interface_may_be_down_at_first(net: Mininet) -> None:
    h1, h2 = net.addHost("h1", ip=None), net.addHost("h2", ip=None)
    net.addLink(h1, h2, params1={"up": False})
    assert not h1.intf().isUp()
    assert h2.intf().isUp()


def test_red_without_marks_drops(net: Mininet) -> None:
    account = burst(joined(net, bw=SLOW, enable_red=True)[2], CAPABLE)
    assert account["dropped"].get("early-drop", 0) > 10, "also of ECN-capable datagrams"
    assert account["marked"] == 0


def test_hfsc_has_no_bucket(net: Mininet) -> None:
    # With a token bucket 30 and more of the 60 frames find the queue full.
    account = burst(joined(net, bw=SLOW, use_tbf=True, use_hfsc=True)[2])
    assert account["dropped"] == {}
    assert account["queue_highest"] > 50


@pytest.mark.parametrize("fast", [True, False])
def test_interfaces_are_in_their_nodes_at_once(net: Mininet, fast: bool) -> None:
    h1, h2, _ = joined(net, fast=fast)
    assert "h1-eth0" in h1.cmd("ip -br link")
    assert ", 0% packet loss" in h1.cmd(f"ping -c 1 -w 5 {h2.IP()}")


@pytest.mark.parametrize(
    ("said", "fits"), [(["mtu", "1000"], False), ("up", True), ("down", False)], ids=["mtu", "up", "down"]
)
def test_ifconfig_of_an_interface(net: Mininet, said: Any, fits: bool) -> None:
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2)
    net.build()
    h1.intf().config(ifconfig=said)
    reply = h1.cmd("ping -c 1 -W 2 -M do -s 1200 10.0.0.2")
    assert (", 0% packet loss" in reply) is fits, reply
    small = h1.cmd("ping -c 1 -W 2 -s 100 10.0.0.2")
    assert (", 0% packet loss" in small) is (said != "down"), small


@pytest.mark.parametrize("state", ["up", "down"])
def test_state_of_the_loopback_interface(net: Mininet, state: str) -> None:
    h1 = net.addHost("h1", lo=state)
    net.addLink(h1, net.addHost("h2"))
    net.build()
    reply = h1.cmd("ping -c 1 -W 2 127.0.0.1")
    assert (", 0% packet loss" in reply) is (state == "up"), reply
