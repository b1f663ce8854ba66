"""Real Open vSwitches: in nodes of their own, with flow tables, controllers and slices."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import airloom
from airloom import RunError, Scenario

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
        reason="sudo apt-get install openvswitch-switch",
    ),
]


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


def answers(lab: airloom.Lab, source: str, target: str, wait: float = 3.0) -> bool:
    return lab[source].run(["ping", "-c", "1", "-W", str(wait), target]).ok


def test_its_own_tools_speak_to_the_switch_in_its_node(tmp_path):
    with airloom.Lab(scenario(), out=tmp_path / "out") as lab:
        assert answers(lab, "h1", "h2")
        shown = lab["s1"].run("ovs-ofctl show br0", check=True).stdout
        assert "dpid:0000000000000001" in shown
        assert "1(eth1)" in shown
        assert "2(eth2)" in shown
        lab["s1"].run("ovs-ofctl add-flow br0 priority=9,icmp,actions=drop", check=True)
        assert not answers(lab, "h1", "h2", wait=0.5)
        lab["s1"].run("ovs-ofctl -O OpenFlow13 del-flows br0 icmp", check=True)
        assert answers(lab, "h1", "h2")
        assert lab["s1"].run("ovs-ofctl -O OpenFlow14 show br0").code != 0


def test_tcp_passes_with_right_checksums_whole_and_in_segments(tmp_path):
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
