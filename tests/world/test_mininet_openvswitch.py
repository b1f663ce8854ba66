"""Mininet's API with real Open vSwitches and real controllers."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
from functools import partial
from pathlib import Path

import pytest

from airloom.errors import LabError
from airloom.mininet import session
from airloom.mininet.cli import CLI
from airloom.mininet.default_switch import DefaultSwitch
from airloom.mininet.log import setLogLevel
from airloom.mininet.net import Mininet
from airloom.mininet.node import (
    Controller,
    OVSBridge,
    OVSController,
    OVSSwitch,
    RemoteController,
    UserSwitch,
)
from airloom.mininet.topo import LinearTopo, SingleSwitchTopo
from airloom.mininet.topolib import TorusTopo
from helpers import forked
from helpers.nodes import eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None
        or shutil.which("ovs-testcontroller") is None,
        reason="sudo apt-get install openvswitch-switch openvswitch-testcontroller",
    ),
]


@pytest.fixture(autouse=True)
def _clean():
    setLogLevel("warning")
    yield
    session.close()


def test_who_names_a_controller_gets_flow_tables():
    assert type(Mininet(topo=SingleSwitchTopo(1))["s1"]) is DefaultSwitch
    session.close()
    assert type(Mininet(topo=SingleSwitchTopo(1), controller=Controller)["s1"]) is OVSSwitch


@pytest.mark.parametrize("switch", [OVSSwitch, UserSwitch])
def test_the_test_controller_makes_them_learn(switch):
    net = Mininet(topo=LinearTopo(2), switch=switch, controller=OVSController, waitConnected=True)
    net.start()
    assert net.pingAll() == 0
    assert "actions=output" in net["s1"].dpctl("dump-flows")
    assert int(net["s2"].cmd("ovs-vsctl get Interface s2-eth2 ofport")) == 2
    net.stop()


def test_a_user_switch_has_one_controller_at_a_time():
    log = Path("/tmp/s71-ofp.log")

    def met() -> list[str]:
        return re.findall(r"tcp:127\.0\.0\.1:(\d+): connected", log.read_text())

    net = Mininet(switch=partial(UserSwitch, opts="--inactivity-probe=5 --max-backoff=1"), controller=None)
    for number in (1, 2):
        net.addLink(net.addHost(f"h{number}"), net["s71"] if number == 2 else net.addSwitch("s71"))
    first, second, third = (
        net.addController(f"c{port}", Controller, port=port) for port in (7001, 7002, 7003)
    )
    net.start()
    assert net.waitConnected(timeout=30)
    assert met() == ["7001"]
    rows = net["s71"].cmd("ovs-vsctl --format=csv --no-headings --columns=inactivity_probe list controller")
    assert rows.split() == ["5000"], "one channel"
    for gone, port in ((first, "7002"), (second, "7003"), (third, None)):
        before = met()
        gone.stop()
        if port is None:
            eventually(lambda: log.read_text().count("connection lost") == 3, "the end of the last one")
        else:
            eventually(lambda before=before: met() != before, f"the controller at port {port}")
            assert met() == [*before, port]
            assert net.pingAll() == 0
    assert not net["s71"].connected()
    net.stop()
    assert not log.exists()


def test_more_switches_than_one_test_controller_takes():
    net = Mininet(topo=LinearTopo(18), switch=OVSSwitch, controller=Controller)
    net.start()
    assert net.waitConnected(timeout=30)
    assert net.ping([net["h1"], net["h18"]], timeout=10) == 0
    net.stop()


def test_without_a_controller_flows_decide():
    net = Mininet(topo=SingleSwitchTopo(2), controller=None)
    net.start()
    assert net.pingAll(timeout=0.5) == 100
    net["s1"].dpctl("add-flow", "actions=normal")
    assert net.pingAll() == 0
    net.stop()


@pytest.mark.parametrize("tree", ["stp", "rstp"])
def test_a_spanning_tree_in_a_torus(tree):
    net = Mininet(topo=TorusTopo(3, 3), switch=partial(OVSBridge, **{tree: True}))
    net.start()
    assert net.waitConnected(timeout=90)
    assert net.ping([net["h1x1"], net["h2x2"]], timeout=5) == 0
    net.stop()


def test_a_loop_of_bridges_without_one_is_refused():
    with pytest.raises(LabError, match="loop"):
        Mininet(topo=TorusTopo(3, 3), switch=OVSBridge)


def test_a_remote_controller_that_is_a_program_of_a_host():
    net = Mininet(controller=RemoteController)
    host = net.addHost("c", ip="10.0.0.9/8")
    for number in (1, 2):
        net.addLink(net.addHost(f"h{number}"), net["s1"] if "s1" in net else net.addSwitch("s1"))
    net.addLink(host, net["s1"])
    net.addController("c0", ip="10.0.0.9", port=6699)
    net.build()
    host.cmd("ovs-testcontroller --unixctl=/tmp/c.ctl ptcp:6699 > /dev/null 2>&1 &")
    net.start()
    assert net.waitConnected(timeout=20)
    assert net.ping([net["h1"], net["h2"]]) == 0
    net.stop()


def test_a_remote_controller_that_nobody_is():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    net = Mininet(topo=SingleSwitchTopo(2), controller=lambda name: RemoteController(name, port=port))
    with pytest.raises(LabError, match=f"no controller answers at tcp:127.0.0.1:{port}") as caught:
        net.start()
    assert caught.value.where.startswith("test_mininet_openvswitch.py:")


def test_a_controller_of_ones_own(tmp_path):
    class Own(Controller):
        def start(self):
            control = tmp_path / "control"
            self.cmd(f"ovs-testcontroller --unixctl={control} ptcp:{self.port} > /dev/null 2>&1 &")

    net = Mininet(topo=SingleSwitchTopo(2), controller=Own)
    net.start()
    assert net.waitConnected(timeout=20)
    assert net.pingAll() == 0
    net.stop()


def test_a_controller_that_is_not_installed_is_named():
    net = Mininet(topo=SingleSwitchTopo(1), controller=lambda name: Controller(name, command="no-such"))
    with pytest.raises(LabError, match="needs the program no-such") as caught:
        net.start()
    assert caught.value.exit_code == 3


def test_the_prompt_speaks_to_the_flow_tables(capfd):
    net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge)
    net.start()
    lines = ["dpctl dump-flows", "sh ovs-ofctl show s1", "s1 ovs-vsctl list-br", "exit"]
    CLI(net, stdin=io.StringIO("\n".join(lines)))
    said = capfd.readouterr().out
    assert "priority=0 actions=NORMAL" in said
    assert "dpid:0000000000000001" in said
    assert "\ns1\n" in said
    net.stop()


def test_links_come_and_go_while_it_runs():
    net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge)
    net.start()
    assert net.pingAll() == 0
    late = net.addHost("h3", ip="10.0.0.3/8")
    link = net.addLink(late, net["s1"])
    late.setIP("10.0.0.3/8")
    assert net.pingAll() == 0
    net.delLink(link)
    assert net["s1"].cmd("ovs-vsctl list-ports s1").split() == ["s1-eth1", "s1-eth2"]
    net.stop()


def mn(*words):
    return forked.run(("mn", *words), Path.cwd(), os.environ, timeout=100)


def test_options_of_mn():
    done = mn("--switch", "ovs", "--controller", "ovsc", "--topo", "linear,2", "--wait", "--test", "pingall")
    assert done.returncode == 0, done.stderr
    assert "0% dropped (2/2 received)" in done.stderr


def test_an_option_that_names_a_controller_that_nobody_is():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = mn("--controller", f"remote,ip=127.0.0.1,port={port}", "--test", "pingall")
    assert done.returncode == 2
    assert f"airloom: c0: no controller answers at tcp:127.0.0.1:{port}: connection refused" in done.stderr


EXAMPLES = Path("/usr/lib/python3/dist-packages/mininet/examples")


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="sudo apt-get install mininet")
@pytest.mark.parametrize("name", ["controllers.py", "numberedports.py"])
def test_published_examples(name):
    done = forked.run(("mn-run", str(EXAMPLES / name)), Path.cwd(), os.environ, 100, input="pingall\n")
    assert done.returncode == 0, done.stderr
    assert "0% dropped" in done.stderr
    assert "WARNING" not in done.stderr


@pytest.mark.parametrize("batch", [True, False])
def test_switches_start_with_the_same_result(batch: bool) -> None:
    switch = partial(OVSSwitch, batch=batch)
    net = Mininet(topo=LinearTopo(2), switch=switch, controller=OVSController, waitConnected=True)
    net.start()
    try:
        assert net.pingAll() == 0
    finally:
        net.stop()


def test_folder_of_a_controller(tmp_path: Path) -> None:
    controller = partial(OVSController, cdir=str(tmp_path))
    net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=controller, waitConnected=True)
    net.start()
    try:
        assert net.pingAll() == 0
        assert net.controllers[0].cmd("readlink /proc/$!/cwd").strip() == str(tmp_path)
    finally:
        net.stop()


def test_pauses_of_the_channel_are_noted() -> None:
    net = Mininet(topo=SingleSwitchTopo(1), switch=partial(OVSSwitch, reconnectms=5000), controller=None)
    net.start()
    notes = session.session().verdict().notes
    net.stop()
    assert [one for one in notes if "reconnectms=5000 has no effect" in one]
