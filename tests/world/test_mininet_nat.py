"""Translation of addresses in Mininet's API: out to the machine's network, here one of the test's own, and
between networks of a script.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.errors import HostError, LabError
from airloom.mininet import session
from airloom.mininet.nat import PROGRAM
from airloom.mininet.net import Mininet
from airloom.mininet.node import Node
from airloom.mininet.nodelib import NAT
from airloom.mininet.topo import SingleSwitchTopo
from helpers.machines import Machine, machine

pytestmark = pytest.mark.world
outward = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a machine of the test's own is root's"),
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason=f"sudo apt-get install {PROGRAM}"),
]
ADDRESS, PORT = "203.0.113.9", 8080
EXAMPLE = Path("/usr/lib/python3/dist-packages/mininet/examples/nat.py")
ASK = "c = HTTPConnection('203.0.113.9', 8080, timeout=9); c.request('GET', '/page')"
CODE = f"from http.client import *; {ASK}; print(c.getresponse().read().decode())"
FETCH = f'"$AIRLOOM_PYTHON" -c "{CODE}" 2>/dev/null || echo nothing'
HEAD = f"""
import sys
from airloom.mininet.net import Mininet
from airloom.mininet.node import Host
from airloom.mininet.topo import SingleSwitchTopo

FETCH = {FETCH!r}
"""


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Machine]:
    """A machine that serves a file at an address of its own."""
    (tmp_path / "page").write_text("from outside\n")
    with machine(ADDRESS) as made:
        made.sh(f"ip addr add {ADDRESS}/32 dev lo")
        words = [sys.executable, "-u", "-m", "http.server", "--bind", ADDRESS, str(PORT)]
        server = made.start(words, tmp_path)
        assert server.stdout is not None
        server.stdout.readline()
        yield made
        server.kill()
        server.communicate()


def start(outside: Machine, script: str, folder: Path, stderr: int | None = None) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(HEAD + textwrap.dedent(script))
    words = ["nsenter", "-t", str(outside.process.pid), "-n", sys.executable, str(path)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=stderr, text=True)


def printed(outside: Machine, script: str, folder: Path) -> list[str]:
    with start(outside, script, folder) as process:
        said, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    return said.splitlines()


def stacks(outside: Machine) -> list[str]:
    """The processes of network stacks in a machine's network."""
    own = os.stat(outside.namespace).st_ino
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() == PROGRAM and (folder / "ns/net").stat().st_ino == own:
                found.append(folder.name)
        except OSError:  # it has just ended
            continue
    return found


def changes(outside: Machine) -> str:
    """What NAT could leave behind."""
    return outside.sh("ip -o addr; ip route show table all; ip rule; sysctl net.ipv4; iptables-save || :")


class TestOutward:
    pytestmark = outward

    def test_a_host_fetches_from_the_machine_and_nothing_is_left(self, outside: Machine, tmp_path: Path):
        before = changes(outside)
        script = """
            net = Mininet(topo=SingleSwitchTopo(2))
            net.addNAT().configDefault()
            net.start()
            h1, h2, nat = net.get("h1", "h2", "nat0")
            print(nat.IP(), h1.cmd("ip route show default").strip())
            for node in (h1, h2, nat):
                print(node.cmd(FETCH).strip())
            print(net.pingAll())
            net.stop()
            """
        said = printed(outside, script, tmp_path)
        assert said == ["10.0.0.3 default via 10.0.0.3 dev h1-eth0", *["from outside"] * 3, "0.0"]
        assert stacks(outside) == []
        assert changes(outside) == before

    def test_the_machine_is_as_it_was_while_it_runs(self, outside: Machine, tmp_path: Path):
        before = changes(outside)
        script = """
            net = Mininet(topo=SingleSwitchTopo(1))
            net.addNAT().configDefault()
            print(net["h1"].cmd(FETCH).strip(), flush=True)
            sys.stdin.read()
            """
        with start(outside, script, tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "from outside\n"
            assert len(stacks(outside)) == 1
            assert changes(outside) == before
            process.send_signal(signal.SIGKILL)
        until = time.monotonic() + 20
        while stacks(outside) and time.monotonic() < until:
            time.sleep(0.05)
        assert stacks(outside) == []
        assert changes(outside) == before

    def test_who_is_no_part_of_its_subnet_stays_inside(self, outside: Machine, tmp_path: Path):
        script = """
            net = Mininet()
            switch = net.addSwitch("s1")
            for name, ip in (("in", "10.0.0.1/8"), ("out", "10.0.1.1/8")):
                net.addLink(net.addHost(name, ip=ip), switch)
            net.addNAT("gate", ip="10.0.0.254/8", subnet="10.0.0.0/24")
            net.start()
            for name in ("in", "out"):
                print(net[name].cmd("ip route show default").split()[2], net[name].cmd(FETCH).strip())
            """
        assert printed(outside, script, tmp_path) == ["10.0.0.254 from outside", "10.0.0.254 nothing"]

    def test_the_machines_resolver_answers(self, outside: Machine, tmp_path: Path):
        lines = Path("/etc/resolv.conf").read_text().splitlines()
        named = [line.split()[1] for line in lines if line.startswith("nameserver")]
        if not named or ":" in named[0]:
            pytest.skip("the machine's resolver has no IPv4 address")
        outside.sh(f"ip addr add {named[0]}/32 dev lo")
        script = f"""
            import socket
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind(("{named[0]}", 53))
            net = Mininet(topo=SingleSwitchTopo(1))
            net.addNAT().configDefault()
            h1 = net["h1"]
            h1.sendCmd("exec 3<>/dev/udp/192.0.2.3/53; echo -n name >&3; timeout 10 head -c 14 <&3")
            question, whom = server.recvfrom(99)
            server.sendto(b"answer to " + question, whom)
            print(h1.waitOutput().strip())
            """
        assert printed(outside, script, tmp_path) == ["answer to name"]

    def test_the_option_of_mn(self, outside: Machine):
        words = ["nsenter", "-t", str(outside.process.pid), "-n", sys.executable, "-m", "airloom", "mn"]
        words += ["--nat", "ip=10.0.0.9/8", "--test", "pingall"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        assert "0% dropped (6/6 received)" in done.stderr
        assert stacks(outside) == []

    @pytest.mark.skipif(not EXAMPLE.is_file(), reason="sudo apt-get install mininet")
    def test_mininets_own_example(self, outside: Machine):
        words = ["nsenter", "-t", str(outside.process.pid), "-n", sys.executable, "-m", "airloom", "mn-run"]
        lines = f"pingall\nh1 {FETCH}\nexit\n"
        done = subprocess.run(
            [*words, str(EXAMPLE)], input=lines, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "0% dropped (20/20 received)" in done.stderr
        assert "from outside" in done.stdout

    def test_a_stack_that_dies_is_said_and_senders_are_told(self, outside: Machine, tmp_path: Path):
        script = """
            net = Mininet(topo=SingleSwitchTopo(1))
            net.addNAT().configDefault()
            print(net["h1"].cmd(FETCH).strip(), flush=True)
            sys.stdin.readline()
            print(net["h1"].cmd("ping -c1 -W5 203.0.113.9"), flush=True)
            net.stop()
            """
        with start(outside, script, tmp_path, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "from outside\n"
            (stack,) = stacks(outside)
            os.kill(int(stack), signal.SIGKILL)
            said = process.stderr.readline()
            out, more = process.communicate("\n", timeout=90)
        assert process.returncode == 0
        assert "node nat0: NAT to the networks outside has ended" in said
        assert f"{PROGRAM} was killed by SIGKILL" in said
        assert "Destination Net Unreachable" in out
        assert PROGRAM not in more

    def test_a_stack_that_ends_as_it_should_is_not_said(self, outside: Machine, tmp_path: Path):
        script = """
            net = Mininet(topo=SingleSwitchTopo(1))
            nat = net.addNAT()
            net.start()
            net.delNode(nat)
            net.addNAT("again")
            """
        with start(outside, script, tmp_path, stderr=subprocess.PIPE) as process:
            _, errors = process.communicate(timeout=90)
        assert (process.returncode, errors) == (0, "")

    def test_it_goes_with_its_node(self, outside: Machine, tmp_path: Path):
        script = """
            net = Mininet(topo=SingleSwitchTopo(1))
            nat = net.addNAT()
            nat.configDefault()
            net.delNode(nat)
            print(net["h1"].cmd("ping -c1 -W0.3 10.0.0.2").count("1 received"), flush=True)
            sys.stdin.read()
            """
        with start(outside, script, tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            assert stacks(outside) == []
            process.kill()


def test_a_machine_without_the_stack_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    net = Mininet(topo=SingleSwitchTopo(1))
    try:
        with pytest.raises(HostError, match=f"node nat0: NAT to .* needs the program {PROGRAM}") as caught:
            net.addNAT()
        assert caught.value.cure == f"sudo apt-get install {PROGRAM}"
        assert "nat0" not in Node.standing
    finally:
        net.stop()
        session.close()


def test_mistakes_are_named():
    net = Mininet()
    try:
        with pytest.raises(LabError, match="addNAT: there is no switch for nat0"):
            net.addNAT()
        with pytest.raises(LabError, match="there is no node s9"):
            net.addNAT(connect="s9")
        with pytest.raises(LabError, match=r"nat0: subnet '10\.0\.0\.0/x'"):
            net.addNAT(connect=None, subnet="10.0.0.0/x")
    finally:
        net.stop()
        session.close()


@pytest.mark.skipif(shutil.which("iptables") is None, reason="sudo apt-get install iptables")
def test_between_networks_of_a_script():
    net = Mininet()
    nat = net.addHost("nat", cls=NAT, subnet="192.168.1.0/24", localIntf="nat-eth1", ip="10.0.0.1/8")
    server = net.addHost("server", ip="10.0.0.2/8")
    client = net.addHost("client", ip="192.168.1.2/24", defaultRoute="via 192.168.1.1")
    net.addLink(nat, server)
    net.addLink(nat, client, params1={"ip": "192.168.1.1/24"})
    net.start()
    try:
        assert server.cmd("ip route get 192.168.1.2") == "RTNETLINK answers: Network is unreachable\n"
        assert "1 received" in client.cmd("ping -c1 10.0.0.2")
    finally:
        net.stop()
        session.close()
