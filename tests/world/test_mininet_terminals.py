"""A running script from other terminals: ``airloom exec`` and ``airloom node``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.host import pcap
from airloom.lab import running
from airloom.mininet import session
from airloom.mininet.net import Mininet
from airloom.mininet.node import OVSSwitch
from airloom.mininet.topo import SingleSwitchTopo
from airloom.nodes.all_nodes import KINDS

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]


@pytest.fixture(params=[None, OVSSwitch], ids=["learning", "openvswitch"])
def net(request: pytest.FixtureRequest) -> Iterator[Mininet]:
    for lacking in KINDS["openvswitch"].lacks() if request.param else ():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    made = Mininet(topo=SingleSwitchTopo(2), switch=request.param)
    made.start()
    yield made
    made.stop()
    session.close()


def airloom(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as another terminal does."""
    command = [sys.executable, "-m", "airloom", words[0], "--lab", str(os.getpid()), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_programs_run_in_nodes_of_the_script(net: Mininet) -> None:
    assert os.getpid() in [lab.pid for lab in running.running()]
    said = airloom("exec", "h1", "--", "ip", "-o", "addr", "show", "h1-eth0")
    assert "10.0.0.1/8" in said.stdout, said.stderr
    wrong = airloom("exec", "h9", "--", "true")
    assert "there is no node h9" in wrong.stderr
    kill = airloom("node", "h1", "kill")
    assert "end and start by the script" in kill.stderr
    assert net["h1"].cmd("echo on").strip() == "on"


def test_frames_of_an_interface_are_captured(net: Mininet, tmp_path: Path) -> None:
    path = tmp_path / "h1.pcapng"
    words = ["capture", "--lab", str(os.getpid()), "h1-eth0", "--out", str(path)]
    client = subprocess.Popen([sys.executable, "-m", "airloom", *words], stderr=subprocess.PIPE, text=True)
    while not path.exists() or path.stat().st_size < 500:
        assert client.poll() is None, client.communicate()
        net.ping([net["h1"], net["h2"]], timeout=1)
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    captured = list(pcap.frames(path))
    assert {one.direction for one in captured if one.octets[23:24] == b"\x01"} == {"in", "out"}
    assert {one.port.partition(".")[0] for one in captured} == {"h1:h1-eth0"}


def test_flows_of_a_switch_are_set_from_another_terminal(net: Mininet) -> None:
    rule = ("ovs-ofctl", "add-flow", "s1", "priority=65000,in_port=1,actions=drop")
    said = airloom("exec", "s1", "--", *rule)
    assert said.returncode == 0, said.stderr
    assert "priority=65000" in net["s1"].cmd("ovs-ofctl dump-flows s1")
    assert net.ping([net["h1"], net["h2"]], timeout=1) == 100


def test_the_end_of_the_network_is_the_end_of_its_door(net: Mininet) -> None:
    net.stop()
    session.close()
    assert os.getpid() not in [lab.pid for lab in running.running()]
