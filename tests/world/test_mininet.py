"""Mininet's API, with real hosts: what scripts do with nodes, links, tests and the prompt."""

from __future__ import annotations

import io
import multiprocessing
import os
import re
import socket
import subprocess
import textwrap
from functools import partial
from pathlib import Path

import pytest

from airloom.errors import LabError, RunError
from airloom.host.programs import search_path
from airloom.mininet import session, tool_server
from airloom.mininet.cli import CLI
from airloom.mininet.link import Link, TCIntf, TCLink
from airloom.mininet.net import Mininet
from airloom.mininet.node import (
    Controller,
    CPULimitedHost,
    Host,
    LinuxBridge,
    Node,
    NullController,
    OVSBridge,
    OVSSwitch,
)
from airloom.mininet.topo import LinearTopo, SingleSwitchTopo, Topo
from airloom.mininet.topolib import TorusTopo, TreeTopo
from airloom.mininet.util import pmonitor, waitListening
from helpers import forked

pytestmark = pytest.mark.world


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    session.close()
    assert session.current() is None


@pytest.fixture
def net():
    net = Mininet(topo=SingleSwitchTopo(3), autoSetMacs=True)
    net.start()
    yield net
    net.stop()


def rtt(source: Node, target: Node) -> float:
    said = source.cmd(f"ping -c 3 -i 0.05 {target.IP()}")
    return float(re.search(r"= ([\d.]+)/", said).group(1))


@pytest.mark.quick
def test_names_addresses_and_reach(net):
    h1, s1 = net.get("h1", "s1")
    assert (h1.IP(), h1.MAC(), h1.intfNames()) == ("10.0.0.1", "00:00:00:00:00:01", ["h1-eth0"])
    said = h1.cmd("ip -o addr show h1-eth0; ip link show h1-eth0")
    assert "10.0.0.1/8" in said
    assert "00:00:00:00:00:01" in said
    assert s1.intfNames() == ["lo", "s1-eth1", "s1-eth2", "s1-eth3"]
    assert s1.intf() is s1.controlIntf is s1.intfs[0]
    assert net.pingAll() == 0
    assert h1.connectionsTo(s1) == [(h1.intf(), s1.intf("s1-eth1"))]
    assert sorted(net) == ["c0", "h1", "h2", "h3", "s1"]


def test_the_shell_stays(net):
    h1 = net["h1"]
    assert h1.cmd("cd /usr; X=5") == ""
    assert h1.cmd("echo $PWD $X") == "/usr 5\n"
    assert h1.cmd("echo wrong >&2") == "wrong\n"
    assert h1.cmd("echo", "several", 2, "words") == "several 2 words\n"
    assert len(h1.cmd("echo " + "x" * 20_000)) == 20_001
    assert h1.cmd("cat <<END\na\nb\nEND") == "a\nb\n"
    assert h1.cmd("echo $$") == f"{h1.shell.pid}\n"
    assert h1.shell.poll() is None


def test_background_jobs(net):
    h1 = net["h1"]
    h1.cmd("sleep 60 &")
    pid = h1.lastPid
    assert h1.cmd(f"test -d /proc/{pid} && echo runs") == "runs\n"
    h1.cmd("kill %sleep")
    h1.cmd("wait")
    assert h1.cmd(f"test -d /proc/{pid} || echo ended") == "ended\n"


def test_send_monitor_and_interrupt(net):
    h1 = net["h1"]
    h1.sendCmd("echo first; sleep 60")
    seen = ""
    while "first" not in seen:
        seen += h1.monitor()
    assert h1.waiting
    with pytest.raises(AssertionError):
        h1.cmd("true")
    h1.sendInt()
    h1.waitOutput()
    assert not h1.waiting
    assert Node.outToNode[h1.stdout.fileno()] is h1


def test_popens_environment_is_the_one_that_is_given(net):
    h1 = net["h1"]
    # No PATH: programs are looked for where they are by default.
    given, _ = h1.popen(["env"], env={"ONE": "1", "TWO": "a b"}).communicate()
    assert sorted(given.decode().split("\n")) == ["", "ONE=1", "TWO=a b"]
    assert h1.pexec("env", env={}) == ("", "", 0)
    out, _, _ = h1.pexec("env")
    folders = [folder for folder in search_path().split(":") if folder != str(tool_server.MACHINE)]
    assert "PATH=" + ":".join([str(tool_server.NODE), *folders]) in out.split("\n")


def test_popen_pexec_and_pmonitor(net):
    h1, h2 = net.get("h1", "h2")
    popen = h1.popen("cat; exit 3", shell=True, stdin=subprocess.PIPE)
    assert popen.communicate(b"given") == (b"given", b"")
    assert popen.returncode == 3
    assert h1.pexec("sh -c 'echo out; echo err >&2; exit 4'") == ("out\n", "err\n", 4)
    popens = {host: host.popen(f"echo {host.name}", shell=True) for host in (h1, h2)}
    lines = {(host, line) for host, line in pmonitor(popens) if host}
    assert {(h1, "h1\n"), (h2, "h2\n")} <= lines
    sleeper = h1.popen(["sleep", "60"])
    assert sleeper.poll() is None
    sleeper.terminate()
    assert sleeper.wait() == -15


def test_the_machines_files_are_shared(net, tmp_path):
    net["h1"].cmd(f"echo seen > {tmp_path}/note")
    assert (tmp_path / "note").read_text() == "seen\n"


def test_iperf(net):
    server, client = net.iperf(seconds=1)
    assert re.fullmatch(r"[\d.]+ [GM]bits/sec", server)
    assert re.fullmatch(r"[\d.]+ [GM]bits/sec", client)
    assert net.iperf(l4Type="UDP", udpBw="1M", seconds=1)[0] == "1M"


def test_waiting_until_a_program_listens(net, capfd):
    h1, h2 = net.get("h1", "h2")
    assert not waitListening(h1, h2, 5001, timeout=0)
    h2.cmd("iperf3 -s -p 5001 > /dev/null &")
    assert waitListening(h1, h2, 5001, timeout=20)
    assert waitListening(h1, "10.0.0.2", 5001, timeout=20)
    assert waitListening(server=h2, port=5001, timeout=20)
    assert not waitListening(h1, "192.168.7.7", 5001)
    assert "no route to 192.168.7.7" in capfd.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert waitListening(port=own.getsockname()[1], timeout=20)


@pytest.mark.measures
def test_links_have_rate_and_delay_and_change():
    net = Mininet(topo=SingleSwitchTopo(2), link=partial(TCLink, delay="5ms", bw=10))
    net.start()
    h1, h2 = net.get("h1", "h2")
    assert net.pingAll() == 0
    assert 20 <= rtt(h1, h2) < 24
    assert 5 < float(net.iperf(seconds=1)[0].split()[0]) <= 9.6
    h1.intf().config(delay="15ms")
    assert 30 <= rtt(h1, h2) < 34
    net.stop()


@pytest.mark.measures
def test_interfaces_by_class_and_parameters():
    net = Mininet(intf=partial(TCIntf, delay="3ms"))
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2)
    net.start()
    assert 6 <= rtt(h1, h2) < 9
    net.stop()


def test_links_down_and_up(net):
    h1, h2 = net.get("h1", "h2")
    net.configLinkStatus("h1", "s1", "down")
    assert net.ping([h1, h2], timeout="0.3") == 100
    net.configLinkStatus("h1", "s1", "up")
    assert net.ping([h1, h2]) == 0
    with pytest.raises(RunError, match="no link joins"):
        net.configLinkStatus("h1", "h2", "down")


def test_ports_of_a_switch_are_detached_and_attached(net):
    h1, h2, s1 = net.get("h1", "h2", "s1")
    s1.detach("s1-eth1")
    assert net.ping([h1, h2], timeout="0.3") == 100
    s1.attach(s1.intf("s1-eth1"))
    assert net.ping([h1, h2]) == 0
    with pytest.raises(RunError, match="switch s1 has no port s9"):
        s1.attach("s9")


def test_a_host_without_interfaces_is_not_counted_as_lost(net):
    assert net.ping([net["h1"], net["h2"]]) == 0
    assert net.ping([net["h1"], net.addHost("alone")]) == 100  # only what it sends itself
    assert net.ping([net["h1"], net["h2"], net["alone"]]) == 50


def test_hosts_and_links_come_and_go_while_it_runs(net):
    h4 = net.addHost("h4")
    net.addLink(h4, net["s1"])
    h4.configDefault()
    assert net.ping([net["h1"], h4]) == 0
    s2 = net.addSwitch("s2")
    net.addLink(s2, net["s1"])
    s2.start(net.controllers)
    h1 = net["h1"]
    net.delLinkBetween(h1, net["s1"])
    assert "does not exist" in h1.cmd("ip -o link show h1-eth0 2>&1")
    link = net.addLink(h1, s2)
    h1.setIP("10.0.0.1/8")
    assert net.ping([h1, net["h2"]]) == 0
    net.delLink(link)
    net.delHost(net["h3"])
    assert "h3" not in net
    assert net.ping([net["h2"], h4]) == 0


def test_a_host_lives_before_there_is_a_link():
    h1, h2 = Host("h1"), Host("h2")
    assert h1.cmd("hostname") == "h1\n"
    Link(h1, h2)
    h1.setIP("192.168.5.1/24")
    h2.setIP("192.168.5.2", 24)
    assert "1 received" in h1.cmd(f"ping -c1 {h2.IP()}")
    h1.terminate()
    h2.terminate()
    assert session.current() is None


def test_an_address_is_taken_away(net):
    h1 = net["h1"]
    h1.setIP("0.0.0.0")
    assert h1.cmd("ip -4 -o addr show dev h1-eth0") == ""
    h1.setIP("10.0.0.1/8")
    assert net.ping([h1, net["h2"]]) == 0


def test_a_forked_process_is_told_and_ends_nothing(net, tmp_path):
    h1, note = net["h1"], tmp_path / "note"

    def ask():
        try:
            h1.cmd("true")
        except RunError as error:
            note.write_text(error.message)

    child = multiprocessing.get_context("fork").Process(target=lambda: (ask(), session.close()))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert "node h1 belongs to process" in note.read_text()
    assert h1.cmd("echo still") == "still\n"


def test_a_router():
    class Router(Node):
        def config(self, **params):
            super().config(**params)
            self.cmd("sysctl -w net.ipv4.ip_forward=1")

    class Own(Topo):
        def build(self, **_opts):
            router = self.addNode("r0", cls=Router, ip="192.168.1.1/24")
            for i in (1, 2):
                switch = self.addSwitch(f"s{i}")
                params = {"ip": f"192.168.{i}.1/24"}
                self.addLink(switch, router, intfName2=f"r0-eth{i}", params2=params)
                host = self.addHost(f"h{i}", ip=f"192.168.{i}.100/24", defaultRoute=f"via 192.168.{i}.1")
                self.addLink(host, switch)

    net = Mininet(topo=Own())
    net.start()
    assert net["r0"].intfNames() == ["r0-eth1", "r0-eth2"]
    assert net.pingAll() == 0
    net.stop()


def test_static_arp():
    net = Mininet(topo=SingleSwitchTopo(2), autoStaticArp=True)
    net.start()
    assert "PERMANENT" in net["h1"].cmd("ip neigh show 10.0.0.2")
    net.stop()


@pytest.mark.parametrize("switch", [OVSBridge, LinuxBridge, partial(OVSSwitch, failMode="standalone")])
def test_switches_that_learn_alone(switch):
    net = Mininet(topo=LinearTopo(2), switch=switch, controller=NullController)
    net.start()
    assert net.pingAll() == 0
    net.stop()


def test_a_cpu_share():
    net = Mininet(topo=SingleSwitchTopo(2), host=partial(CPULimitedHost, cpu=0.05))
    net.start()
    notes = [note for host in net.hosts for note in host.handle.notes]
    if notes:
        net.stop()
        pytest.skip(notes[0])
    assert all(share < 10 for share in net.runCpuLimitTest(cpu=0.05, duration=1))
    net.stop()


def test_private_folders():
    net = Mininet(topo=SingleSwitchTopo(1), host=partial(Host, privateDirs=["/var/log"]))
    net.start()
    net["h1"].cmd("echo mine > /var/log/airloom-own")
    assert net["h1"].cmd("cat /var/log/airloom-own") == "mine\n"
    assert not Path("/var/log/airloom-own").exists()
    net.stop()


def test_two_networks_after_each_other():
    for _ in range(2):
        assert Mininet(topo=TreeTopo(1, 2)).run(lambda: 5) == 5


# Refusals


def refused(act) -> LabError:
    with pytest.raises(LabError) as caught:
        act()
    assert caught.value.where.startswith("test_mininet.py:")
    return caught.value


def test_loops_are_refused():
    assert "loop" in refused(lambda: Mininet(topo=TorusTopo(3, 3), switch=LinuxBridge)).message


def test_what_needs_flow_tables_is_refused_of_a_bridge():
    net = Mininet(topo=SingleSwitchTopo(1), switch=LinuxBridge)
    assert "ovs-ofctl" in refused(lambda: net["s1"].cmd("ovs-ofctl dump-flows s1")).message
    assert "Open vSwitch" in refused(lambda: net["s1"].dpctl("dump-flows")).message

    class Own(Controller):
        """Whatever it does, only flow tables would show it."""

    own = net.addController("c1", controller=Own)
    assert "Own" in refused(lambda: net["s1"].start([own])).message
    net.stop()


def test_mistakes_are_named(net):
    assert "already" in refused(lambda: net.addHost("h1")).message
    assert "15 octets" in refused_anywhere(lambda: net.addLink(net.addHost("h" * 20), net["s1"]))
    assert "prefix" in refused(lambda: net["h1"].intf().setIP("10.0.0.1")).message
    assert "port 1" in refused(lambda: net.addLink(net["h1"], net["s1"], port2=1)).message


def refused_anywhere(act) -> str:
    with pytest.raises(LabError) as caught:
        act()
    return caught.value.message


# The prompt, and scripts as they are


def test_the_prompt(net, capfd):
    lines = [
        "nodes",
        "h1 ping -c1 h2",
        "py h1.IP()",
        "px x = 5",
        "py x",
        "link h1 s1 down",
        "h1 ping -c1 -W0.3 h2",
        "nonsense",
        "exit",
        "h1 echo not reached",
    ]

    class Own(CLI):
        def do_hello(self, line):
            self.say(f"hello {line}")

    Own(net, stdin=io.StringIO("\n".join(["hello you", *lines])))
    said = capfd.readouterr().out
    for words in (
        "hello you",
        "c0 h1 h2 h3 s1",
        "64 bytes from 10.0.0.2",
        "10.0.0.1\n5\n",
        "Network is unreachable",
        "neither a command nor a node",
    ):
        assert words in said
    assert "not reached" not in said


def airloom(*words: str) -> subprocess.CompletedProcess[str]:
    return forked.run(words, Path.cwd(), os.environ, timeout=100)


def test_a_script_unchanged(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            from mininet.net import Mininet
            from mininet.topo import SingleSwitchTopo
            from mininet.util import dumpNodeConnections

            if __name__ == "__main__":
                net = Mininet(SingleSwitchTopo(int(sys.argv[1])))
                net.start()
                dumpNodeConnections(net.hosts)
                print("lost", net.pingAll())
                net.stop()
                net["s1"].cmd("ovs-vsctl show")
            """
        )
    )
    done = airloom("mn-run", str(script), "2")
    assert done.returncode == 1
    assert done.stdout == "lost 0.0\n"
    assert "h1 h1-eth0:s1-eth1" in done.stderr
    assert "script.py:13: node s1 is not up" in done.stderr


def test_an_error_of_a_script_is_shown_from_the_script_on(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def divide():\n    return 1 / 0\n\n\ndivide()\n")
    done = airloom("mn-run", str(script))
    assert done.returncode == 1
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        f'  File "{script}", line 5, in <module>',
    ]
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_the_options_of_mn(tmp_path):
    custom = tmp_path / "own.py"
    custom.write_text(
        "from mininet.topo import LinearTopo\ntopos = {'own': LinearTopo}\n"
        "tests = {'who': lambda net: print(*net)}\n"
    )
    done = airloom(
        "mn", "--custom", str(custom), "--topo", "own,2", "--mac", "--test", "pingAll", "--test", "who"
    )
    assert done.returncode == 0, done.stderr
    assert "0% dropped (2/2 received)" in done.stderr
    assert done.stdout == "h1 h2 s1 s2 c0\n"
    assert airloom("mn", "--controller", "nox", "--test", "none").returncode == 2
    assert airloom("mn", "--topo", "tree,nonsense=2").returncode == 2
    assert airloom("mn", "--test", "nonsense").returncode == 2
