"""Real Open vSwitches: in nodes of their own, with flow tables, controllers and slices."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import RunError, Scenario, ScenarioError
from helpers import REPOSITORY
from helpers.nodes import eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
        reason="sudo apt-get install openvswitch-switch",
    ),
]

needs_controller = pytest.mark.skipif(
    shutil.which("ovs-testcontroller") is None, reason="sudo apt-get install openvswitch-testcontroller"
)


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "ovs",
            "nodes": {"h1": {}, "h2": {}},
            "switches": {"s1": {"kind": "openvswitch"}},
            "links": [{"ends": ["h1", "s1"]}, {"ends": ["s1", "h2"]}],
            **more,
        }
    )


def figure(result: airloom.RunResult, name: str, metric: str) -> float:
    (found,) = [one.mean for one in result.result.measurements if (one.name, one.metric) == (name, metric)]
    assert found is not None
    return found


def answers(lab: airloom.Lab, source: str, target: str, wait: float = 3.0) -> bool:
    return lab[source].run(["ping", "-c", "1", "-W", str(wait), target]).ok


@pytest.mark.quick
def test_its_own_tools_speak_to_the_switch_in_its_node(tmp_path):
    with airloom.Lab(scenario(), out=tmp_path / "out") as lab:
        assert answers(lab, "h1", "h2")
        shown = lab["s1"].run("ovs-ofctl show br0", check=True).stdout
        assert "dpid:0000000000000001" in shown
        assert "1(eth1)" in shown
        assert "2(eth2)" in shown
        lab["s1"].run("ovs-ofctl add-flow br0 priority=9,icmp,actions=drop", check=True)
        # The data path learns of it at its next revalidation.
        eventually(lambda: not answers(lab, "h1", "h2", wait=0.5), "the flow drops nothing")
        lab["s1"].run("ovs-ofctl -O OpenFlow13 del-flows br0 icmp", check=True)
        assert answers(lab, "h1", "h2")
        assert lab["s1"].run("ovs-ofctl -O OpenFlow14 show br0").code != 0


@pytest.mark.measures
def test_tcp_passes_with_right_checksums_whole_and_in_segments(tmp_path: Path):
    links = [{"ends": ["h1", "s1"], "rate": "50 Mbit/s"}, {"ends": ["s1", "h2"]}]
    asked = [
        {"name": "there", "iperf3": {"from": "h1", "to": "h2", "duration": "1 s"}},
        {"name": "back", "iperf3": {"from": "h2", "to": "h1", "duration": "1 s"}},
    ]
    result = airloom.run(scenario(links=links, measurements=asked), out=tmp_path / "out")
    rates = {one.name: one.mean for one in result.result.measurements if one.metric == "throughput"}
    # The link is the bottleneck: 50 Mbit/s less headers is 47 (TCP counts octets of its own).
    assert 20e6 < rates["there"] < 48e6
    assert 20e6 < rates["back"] < 48e6


def test_jumbo_frames_pass_whole(tmp_path):
    links = [{"ends": ["h1", "s1"], "mtu": 9000}, {"ends": ["s1", "h2"], "mtu": 9000}]
    with airloom.Lab(scenario(links=links), out=tmp_path / "out") as lab:
        assert lab["h1"].run("ping -c 2 -W 3 -M do -s 8972 h2").ok


DAEMON = "$(cat /run/openvswitch/ovs-vswitchd.pid)"
FLOOD = """
import socket
s = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(30000):
    s.sendto(bytes(1000), ("{}", 9))
"""


def test_what_its_sockets_cannot_hold_is_loss_of_the_host(tmp_path):
    with airloom.Lab(scenario(), out=tmp_path / "out") as lab:
        assert answers(lab, "h1", "h2")
        assert not any("socket of s1" in reason for reason in lab.verdict().reasons)
        lab["s1"].run(f"kill -STOP {DAEMON}", check=True)
        lab["h1"].run(["python3", "-c", FLOOD.format(lab.addresses["h2"])], check=True)
        found = lab.verdict()
        lab["s1"].run(f"kill -CONT {DAEMON}", check=True)
        assert found.status == "invalid"
        assert any("socket of s1:eth1" in reason for reason in found.reasons)


def test_a_switch_that_was_off_comes_back(tmp_path):
    with airloom.Lab(scenario(), out=tmp_path / "out") as lab:
        lab["s1"].stop()
        assert not answers(lab, "h1", "h2", wait=0.5)
        lab["s1"].restart()
        assert answers(lab, "h1", "h2")


def test_the_end_of_its_daemon_is_the_end_of_the_run(tmp_path):
    broken = scenario(
        duration="20 s",
        programs=[{"node": "s1", "run": "sh -c 'kill -9 $(cat /run/openvswitch/ovs-vswitchd.pid)'"}],
    )
    with pytest.raises(RunError, match="node s1 failed: ovs-vswitchd has ended"):
        airloom.run(broken, out=tmp_path / "out")


def test_a_spanning_tree_makes_a_loop_harmless(tmp_path):
    ring = {
        "switches": {f"s{i}": {"kind": "openvswitch", "spanning_tree": "rstp"} for i in (1, 2, 3)},
        "links": [
            *({"ends": [f"s{i}", f"s{i % 3 + 1}"]} for i in (1, 2, 3)),
            {"ends": ["h1", "s1"]},
            {"ends": ["h2", "s2"]},
        ],
    }
    with airloom.Lab(scenario(**ring), out=tmp_path / "out") as lab:
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(20))
        # A frame that circled would be there again and again.
        done = lab["h1"].run("ping -c 5 -i 0.2 -b 10.0.0.255")
        assert "+5 duplicates" not in done.stdout
        frames = lab.ledger()["delivered"]
        assert frames < 2000


def test_a_queue_of_a_port_holds_its_rate(tmp_path):
    with airloom.Lab(scenario(), out=tmp_path / "out") as lab:
        qos = "--id=@q create qos type=linux-htb other-config:max-rate=5000000"
        lab["s1"].run(f"ovs-vsctl set port eth2 qos=@q -- {qos}", check=True)
        if "htb" not in lab["s1"].run("tc qdisc show dev eth2").stdout:
            pytest.skip("this kernel has no HTB")
        reading = lab.measure("load", iperf3={"from": "h1", "to": "h2", "duration": "2 s"})
        rate = next(metric.value for metric in reading.metrics() if metric.name == "throughput")
        assert 1e6 < rate < 6e6


# Controllers

HOSTILE = (REPOSITORY / "tests/helpers/hostile.py").read_text()
TEST_CONTROLLER = {
    "run": "ovs-testcontroller --unixctl=/tmp/ctl ptcp:6653",
    "ready": {"port": 6653},
    "until_end": True,
}


def learning(node: str) -> dict[str, Any]:
    return {"node": node, "name": f"{node}-learning", "expect": None, **TEST_CONTROLLER}


def hostile(node: str, what: str) -> dict[str, Any]:
    run = ["python3", "-c", HOSTILE, "6653", what]
    return {
        "node": node,
        "name": f"{node}-hostile",
        "run": run,
        "expect": None,
        "ready": {"port": 6653},
        "until_end": True,
    }


@needs_controller
@pytest.mark.parametrize("version", ["OpenFlow10", "OpenFlow13"])
def test_a_controller_in_a_node_teaches_the_switch(tmp_path, version):
    asked = scenario(
        nodes={"h1": {}, "h2": {}, "c0": {}},
        switches={"s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"], "protocols": [version]}},
        programs=[learning("c0")],
        measurements=[{"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 10, "interval": "50 ms"}}],
    )
    result = airloom.run(asked, out=tmp_path / "out")
    assert figure(result, "rtt", "received") >= 9


def counter(lab: airloom.Lab, host: str, file: str, group: str, name: str) -> int:
    """A counter of the kernel's TCP in a node."""
    lines = lab[host].run(f"grep ^{group}: /proc/net/{file}").stdout.splitlines()
    names, values = (line.split() for line in lines)
    return int(dict(zip(names, values, strict=True))[name])


@needs_controller
def test_connections_open_through_a_controller_without_a_repetition(tmp_path):
    nodes = {"h1": {}, "h2": {}, "c0": {}}
    switches = {"s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"]}}
    asked = scenario(nodes=nodes, switches=switches, programs=[learning("c0")])
    with airloom.Lab(asked, out=tmp_path / "out") as lab:
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(15))
        lab["h2"].start("python3 -m http.server 8000", ready={"port": 8000})
        # ovs-testcontroller makes a flow for each connection: its first frames go by the controller.
        page = f"http://{lab['h2'].address}:8000/"
        for _ in range(3):
            assert "Directory" in lab["h1"].run(["curl", "-s", page]).stdout
        # On a busy machine data may be repeated, but no connection waits for its first frame's repetition.
        for host in ("h1", "h2"):
            assert counter(lab, host, "snmp", "Tcp", "InCsumErrors") == 0
            assert counter(lab, host, "netstat", "TcpExt", "TCPSynRetrans") == 0


@needs_controller
def test_without_its_controller_a_switch_forwards_nothing_until_one_answers(tmp_path):
    nodes = {"h1": {}, "h2": {}, "c0": {}}
    switches = {"s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"]}}
    with airloom.Lab(scenario(nodes=nodes, switches=switches), out=tmp_path / "out") as lab:
        assert not answers(lab, "h1", "h2", wait=1)
        lab["c0"].start("ovs-testcontroller --unixctl=/tmp/ctl ptcp:6653")
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(15))


def test_a_controller_that_never_answers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("airloom.runs.runner.ANSWER", 1_000_000_000)
    asked = scenario(
        nodes={"h1": {}, "h2": {}, "c0": {}},
        switches={"s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"]}},
        measurements=[{"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 1}}],
    )
    with pytest.raises(
        RunError, match=r"switch s1: tcp:c0:6653: no controller answers there: connection refused"
    ):
        airloom.run(asked, out=tmp_path / "out")


def test_a_controller_outside_must_be_there_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    switches = {"s1": {"kind": "openvswitch", "controllers": [f"tcp:127.0.0.1:{port}"]}}
    with pytest.raises(ScenarioError, match=f"no controller answers at tcp:127.0.0.1:{port}") as caught:
        airloom.run(scenario(switches=switches), out=tmp_path / "out")
    assert caught.value.exit_code == 2


@needs_controller
def test_a_controller_outside_the_laboratory(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = ["ovs-testcontroller", f"ptcp:{port}:127.0.0.1", f"--unixctl={tmp_path}/ctl"]
    with subprocess.Popen(program) as controller:
        try:
            switches = {"s1": {"kind": "openvswitch", "controllers": [f"tcp:127.0.0.1:{port}"]}}
            until = time.monotonic() + 10
            while time.monotonic() < until:
                try:
                    lab = airloom.Lab(scenario(switches=switches), out=tmp_path / "out")
                    lab.__enter__()
                    break
                except ScenarioError:  # it does not listen yet
                    time.sleep(0.1)
            with contextlib.ExitStack() as stack:
                stack.push(lab)
                assert any(answers(lab, "h1", "h2", wait=1) for _ in range(10))
        finally:
            controller.terminate()


# Slices


def sliced(first: str, second: str, **more: Any) -> Scenario:
    """Two slices with two hosts each on two switches, whose link they share."""
    return scenario(
        nodes={"h1": {}, "h2": {}, "h3": {}, "h4": {}, "c1": {}, "c2": {}},
        switches={"s1": {"kind": "openvswitch"}, "s2": {"kind": "openvswitch"}},
        links=[
            {"ends": [one, two]}
            for one, two in (("h1", "s1"), ("s2", "h2"), ("h3", "s1"), ("s2", "h4"), ("s1", "s2"))
        ],
        slices={
            "red": {"controllers": ["tcp:c1:6653"], "links": ["h1-s1", "s2-h2", "s1-s2"], "vlan": 10},
            "blue": {"controllers": ["tcp:c2:6653"], "links": ["h3-s1", "s2-h4", "s1-s2"], "vlan": 20},
        },
        **more,
    )


def received(lab: airloom.Lab, node: str) -> int:
    return lab[node].counters()["eth0"]["rx_packets"]


def settled(lab: airloom.Lab) -> None:
    """Waits until all controllers have met their switches; the first flows may come a little later."""
    eventually(lambda: not lab.unmet_controllers(), "controllers meet their switches")


@needs_controller
def test_two_slices_each_with_a_controller_do_not_hear_each_other(tmp_path):
    with airloom.Lab(
        sliced("red", "blue", programs=[learning("c1"), learning("c2")]), out=tmp_path / "out"
    ) as lab:
        settled(lab)
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(5))
        assert any(answers(lab, "h3", "h4", wait=1) for _ in range(5))
        for one, other in (("h1", "h3"), ("h1", "h4"), ("h3", "h2")):
            assert not answers(lab, one, other, wait=0.3)
        flows = lab["s1"].run("ovs-ofctl dump-flows red", check=True).stdout
        assert "n_packets" in flows
        tagged = lab["s1"].run("ovs-ofctl -O OpenFlow13 dump-flows base", check=True).stdout
        assert "dl_vlan=10" in tagged


@needs_controller
@pytest.mark.parametrize("what", ["drop", "flood"])
def test_a_hostile_controller_reaches_its_own_slice_alone(tmp_path, what):
    with airloom.Lab(
        sliced("red", "blue", programs=[learning("c1"), hostile("c2", what)]), out=tmp_path / "out"
    ) as lab:
        settled(lab)
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(5))
        before = received(lab, "h1"), received(lab, "h2")
        lab["h3"].run("ping -c 5 -i 0.2 -W 1 h4")
        assert lab["h3"].run("ping -c 1 -W 1 h4").ok == (what == "flood")
        # Neither what it sent out of all ports nor what its hosts did came to the other slice's.
        assert received(lab, "h1") - before[0] <= 2
        assert received(lab, "h2") - before[1] <= 2
        done = lab["h1"].run("ping -c 10 -i 0.1 h2")
        assert "10 received" in done.stdout
        said = (tmp_path / "out" / "nodes" / "c2" / "c2-hostile.log").read_text()
        assert said.count("flows 1\n") == 2
        assert said.count("ports [2, 3]\n") == 2
        assert "ports [1" not in said


SERVER = "import socket,sys;s=socket.create_server(('',int(sys.argv[1])))\nwhile True: s.accept()"
CLIENT = "import socket,sys;socket.create_connection((sys.argv[1],int(sys.argv[2])),float(sys.argv[3]))"


@needs_controller
def test_a_slice_of_the_flow_space_is_held_in_both_directions(tmp_path):
    web = scenario(
        nodes={"h1": {}, "h2": {}, "c1": {}, "c2": {}},
        slices={
            "web": {"controllers": ["tcp:c1:6653"], "flows": [{"protocol": "tcp", "port": 80}]},
            "other": {"controllers": ["tcp:c2:6653"], "rest": True},
        },
        programs=[hostile("c1", "drop"), learning("c2")],
    )
    with airloom.Lab(web, out=tmp_path / "out") as lab:
        settled(lab)
        assert any(answers(lab, "h1", "h2", wait=1) for _ in range(5))
        for port in ("80", "81"):
            for host in ("h1", "h2"):
                lab[host].start(["python3", "-c", SERVER, port])
        until = time.monotonic() + 10
        while not all(lab[host].listens(port) for host in ("h1", "h2") for port in (80, 81)):
            assert time.monotonic() < until
            time.sleep(0.05)

        def opens(source: str, target: str, port: int, wait: float) -> bool:
            address = lab.addresses[target]
            return lab[source].run(["python3", "-c", CLIENT, address, str(port), str(wait)]).ok

        for source, target in (("h1", "h2"), ("h2", "h1")):
            assert opens(source, target, 81, wait=5)
            assert not opens(source, target, 80, wait=0.7)
        # The other slice would let it through by its own flows, but never has such a frame.
        lab["s1"].run("ovs-ofctl add-flow other priority=65535,actions=flood", check=True)
        assert not opens("h1", "h2", 80, wait=0.7)
        lab["s1"].run("ovs-ofctl del-flows --strict web priority=65535", check=True)
        lab["s1"].run("ovs-ofctl add-flow web priority=65535,actions=normal", check=True)
        assert opens("h1", "h2", 80, wait=5)
