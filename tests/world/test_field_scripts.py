"""Needs that users of Mininet reported, as scripts, each with the value that arithmetic gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.mininet import session
from airloom.mininet.link import TCLink
from airloom.mininet.net import Mininet
from helpers.nodes import PYTHON

pytestmark = [pytest.mark.world, pytest.mark.measures, pytest.mark.timeout(170)]

MPTCP_SERVER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.bind(("", 5000)); s.listen()
c = s.accept()[0]
total, begun, last = 0, None, 0.0
while octets := c.recv(65536):
    last = time.monotonic()
    begun = begun or last
    total += len(octets)
print(total * 8 / (last - begun))
"""
MPTCP_CLIENT = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.connect(("10.0.0.2", 5000))
end = time.monotonic() + 8
while time.monotonic() < end:
    s.send(bytes(8192))
s.close()
"""


@pytest.fixture
def net() -> Iterator[Mininet]:
    made = Mininet(link=TCLink)
    yield made
    made.stop()
    session.close()


def rate(said: str) -> float:
    """What iperf3 received, in Mbit/s."""
    found = re.findall(r"([\d.]+) Mbits/sec +receiver", said)
    return float(found[-1]) if found else 0.0


def serve(host: Any) -> None:
    host.cmd("iperf3 -s -D; for i in $(seq 50); do ss -tln | grep -q 5201 && break; sleep 0.1; done")


def test_an_ecn_queue_marks_instead_of_dropping(net: Mininet) -> None:
    """10 Mbit/s, 20 ms round trip, marks from 30 kB on: 24 ms of queue; two CUBIC connections with ECN."""
    h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
    net.addLink(h1, s1, bw=100, delay="5ms")
    link = net.addLink(s1, h2, bw=10, delay="5ms", enable_ecn=True, max_queue_size=1000)
    net.start()
    for host in (h1, h2):
        host.cmd("sysctl -w net.ipv4.tcp_ecn=1")
    serve(h2)
    said = h1.cmd("iperf3 -c 10.0.0.2 -t 5 -C cubic -P 2 -f m | grep SUM")
    account = session.session().world.engine.ledger()["links"][link.engineName]["forward"]
    assert account["marked"] > 10
    # Acknowledgements and repeated segments are not ECN-capable (RFC 3168, 6.1.4 and 6.1.5).
    assert account["dropped"].get("early-drop", 0) < account["marked"] / 5
    assert rate(said) > 7.5


def test_tcp_fills_a_slow_link_behind_a_fast_one_with_a_long_way(net: Mininet) -> None:
    """1 Gbit/s and 150 ms before 50 Mbit/s: 47 Mbit/s once slow start is over."""
    h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
    net.addLink(h1, s1, bw=1000, delay="75ms", max_queue_size=20000)
    net.addLink(s1, h2, bw=50, max_queue_size=4000)
    net.start()
    for host in (h1, h2):
        host.cmd("sysctl -w net.ipv4.tcp_wmem='4096 16384 33554432' net.ipv4.tcp_rmem='4096 131072 33554432'")
    serve(h2)
    assert 40 < rate(h1.cmd("iperf3 -c 10.0.0.2 -t 5 -O 3 -C cubic -f m")) < 48.5


def test_the_links_of_one_mptcp_connection_add_up(net: Mininet, tmp_path: Path) -> None:
    """Four links of 1 Mbit/s: at most 4 x 0.93 Mbit/s of payload; one alone has less than 0.95."""
    count = 4
    h1, h2 = net.addHost("h1", ip=None), net.addHost("h2", ip=None)
    for _ in range(count):
        net.addLink(h1, h2, bw=1, delay="5ms", max_queue_size=50)
    net.build()
    if "No such file" in h1.cmd("cat /proc/sys/net/mptcp/enabled"):
        pytest.skip("the machine's kernel has no MPTCP")
    for host, last in ((h1, 1), (h2, 2)):
        host.cmd("sysctl -w net.mptcp.enabled=1; ip mptcp limits set subflow 8 add_addr_accepted 8")
        for number in range(count):
            host.cmd(f"ip addr add 10.0.{number}.{last}/24 dev {host.name}-eth{number}")
    for number in range(1, count):
        h2.cmd(f"ip mptcp endpoint add 10.0.{number}.2 dev h2-eth{number} signal")
        h1.cmd(f"ip mptcp endpoint add 10.0.{number}.1 dev h1-eth{number} subflow fullmesh")
    for name, program in (("server", MPTCP_SERVER), ("client", MPTCP_CLIENT)):
        (tmp_path / name).write_text(program)
    h2.cmd(f"{PYTHON} {tmp_path}/server > {tmp_path}/rate &")
    h1.cmd(f"for i in $(seq 50); do sleep 0.1; {PYTHON} {tmp_path}/client && break; done")
    h2.cmd("wait")
    assert 0.7 * count * 0.93e6 < float((tmp_path / "rate").read_text()) < 1.02 * count * 0.945e6


def test_jumbo_frames_pass_once_the_hosts_have_set_them(net: Mininet) -> None:
    h1, h2, s1 = net.addHost("h1"), net.addHost("h2"), net.addSwitch("s1")
    for host in (h1, h2):
        net.addLink(host, s1, bw=100)
    net.start()
    for host in (h1, h2):
        host.cmd(f"ip link set {host.name}-eth0 mtu 9000")
    assert " 0% packet loss" in h1.cmd("ping -c 3 -i 0.2 -W 2 -M do -s 8000 10.0.0.2")
    serve(h2)
    # 8948 of 9038 octets.
    assert 90 < rate(h1.cmd("iperf3 -c 10.0.0.2 -t 3 -f m")) < 99.1


def test_a_second_link_between_running_hosts_has_its_delay(net: Mininet) -> None:
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2, bw=10)
    net.build()
    assert " 0% packet loss" in h1.cmd("ping -c 1 10.0.0.2")
    net.addLink(h1, h2, bw=2, delay="10ms")
    for host, last in ((h1, 1), (h2, 2)):
        name = f"{host.name}-eth1"
        host.cmd(f"ip addr add 10.9.0.{last}/24 dev {name}; ip link set {name} up")
    h1.cmd("ping -c 1 -W 5 10.9.0.2")
    # 20 ms, and twice 98 + 24 octets at 2 Mbit/s, which are 0.98 ms.
    found = re.search(r"= ([\d.]+)/", h1.cmd("ping -c 5 -i 0.2 10.9.0.2"))
    assert found is not None
    assert 20.9 < float(found[1]) < 22
