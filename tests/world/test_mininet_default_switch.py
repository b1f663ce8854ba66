"""A switch without a class: of the engine until its flow table is used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from airloom.mininet import session
from airloom.mininet.link import TCLink
from airloom.mininet.net import Mininet
from airloom.mininet.topo import SingleSwitchTopo, Topo
from airloom.nodes.all_nodes import KINDS

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def needs_openvswitch() -> Iterator[None]:
    for lacking in KINDS["openvswitch"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    yield
    session.close()


class Ring(Topo):
    """Three switches in a ring, each with a host."""

    def build(self) -> None:
        switches = [self.addSwitch(f"s{number}") for number in (1, 2, 3)]
        for number, switch in enumerate(switches, 1):
            self.addLink(self.addHost(f"h{number}"), switch)
        for one, other in ((0, 1), (1, 2), (0, 2)):
            self.addLink(switches[one], switches[other])


def reaches(net: Mininet, one: str, other: str) -> bool:
    return "1 received" in net[one].cmd(f"ping -c 1 -W 2 {net[other].IP()}")


def test_a_rule_of_another_process_makes_it_an_open_vswitch() -> None:
    net = Mininet(topo=SingleSwitchTopo(2))
    net.start()
    assert reaches(net, "h1", "h2")
    assert net["s1"].pid is None, "of the engine"
    rule = "ovs-ofctl add-flow s1 priority=65000,in_port=1,actions=drop"
    assert os.system(rule) == 0
    assert not reaches(net, "h1", "h2")
    shown = subprocess.run(
        "ovs-ofctl dump-flows s1", shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert "priority=65000" in shown.stdout
    assert os.system("ovs-ofctl del-flows s1 in_port=1") == 0
    assert reaches(net, "h1", "h2"), "it still learns by itself"
    assert "s1-eth1" in net["s1"].cmd("ovs-vsctl show")
    net.stop()


def test_a_command_in_another_terminal_or_in_the_script_does_too() -> None:
    net = Mininet(topo=SingleSwitchTopo(2))
    net.start()
    words = [sys.executable, "-m", "airloom", "exec", "--lab", str(os.getpid()), "s1", "--"]
    done = subprocess.run(
        [*words, "ovs-ofctl", "show", "s1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert "dpid:0000000000000001" in done.stdout, done.stderr
    assert "(s1-eth2)" in done.stdout
    assert reaches(net, "h1", "h2")
    net.stop()
    net = Mininet(topo=SingleSwitchTopo(2))
    net.start()
    assert "actions=NORMAL" in net["s1"].dpctl("dump-flows")
    assert "s1-eth1" in net["s1"].cmd("ip -o link show s1-eth1")
    assert reaches(net, "h2", "h1")
    net.stop()


def test_links_keep_what_shapes_them() -> None:
    net = Mininet(topo=SingleSwitchTopo(2), link=TCLink)
    for link in net.links:
        link.intf1.config(bw=10, delay="20ms")
    net.start()
    before = net["h1"].cmd("ping -c 3 10.0.0.2")
    net["s1"].dpctl("show")
    after = net["h1"].cmd("ping -c 3 10.0.0.2")
    for said in (before, after):
        # 20 ms on each of two links, in one direction.
        least = float(said.rpartition("= ")[2].partition("/")[0])
        assert 40 <= least < 80, said
    net.stop()


def test_a_ring_forwards_by_its_rules_alone() -> None:
    net = Mininet(topo=Ring(), autoStaticArp=True)
    net.start()
    assert all(net[f"s{number}"].pid is not None for number in (1, 2, 3))
    assert not reaches(net, "h1", "h2")
    for number, rules in {1: ((1, 2), (2, 1)), 2: ((1, 2), (2, 1))}.items():
        for into, out in rules:
            assert os.system(f"ovs-ofctl add-flow s{number} in_port={into},actions=output:{out}") == 0
    assert reaches(net, "h1", "h2")
    assert not reaches(net, "h1", "h3")
    net.stop()
