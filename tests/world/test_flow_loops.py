"""Loops in the flow tables of real Open vSwitches, which their own trace and a frame confirm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from helpers.nodes import eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
        reason="sudo apt-get install openvswitch-switch",
    ),
]

TRIANGLE = {"s1": "h1", "s2": "h2", "s3": "h3"}


def triangle() -> Scenario:
    """Each switch: port 1 to its host, port 2 to the next switch, port 3 to the one before."""
    ring = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
    return Scenario.model_validate(
        {
            "name": "triangle",
            "nodes": {"h1": {}, "h2": {}, "h3": {}},
            "switches": {name: {"kind": "openvswitch", "fail_mode": "secure"} for name in TRIANGLE},
            "links": [
                *({"ends": [f"{switch}:eth1", host]} for switch, host in TRIANGLE.items()),
                *({"ends": [f"{a}:eth2", f"{b}:eth3"], "rate": "1 Mbit/s"} for a, b in ring),
            ],
        }
    )


def install(lab: airloom.Lab, *, good: bool) -> None:
    """Forwards IPv4 and ARP around the ring, until the destination's switch, or for ever."""
    for number, switch in enumerate(TRIANGLE, 1):
        flows = ["priority=10,ip,actions=output:2", "priority=10,arp,actions=output:2"]
        if good:
            own = f"10.0.0.{number}"
            flows += [
                f"priority=20,ip,nw_dst={own},actions=output:1",
                f"priority=20,arp,arp_tpa={own},actions=output:1",
                "priority=15,in_port=3,ip,nw_dst=10.0.0.0/30,actions=output:2",
                "priority=15,in_port=3,arp,arp_tpa=10.0.0.0/30,actions=output:2",
                "priority=17,ip,nw_dst=10.0.0.0,actions=drop",
                "priority=17,arp,arp_tpa=10.0.0.0,actions=drop",
                "priority=12,in_port=3,actions=drop",
            ]
        for flow in flows:
            lab[switch].run(["ovs-ofctl", "add-flow", "br0", flow], check=True)


def test_a_ring_without_an_exit_is_found_traced_and_real(tmp_path: Path) -> None:
    with airloom.Lab(triangle(), out=tmp_path / "out") as lab:
        assert lab.flow_loops().loops == []
        install(lab, good=False)
        (loop,) = lab.flow_loops().loops
        assert loop.traced
        assert not loop.ends
        assert sorted((hop.switch, hop.in_port, hop.out_port) for hop in loop.hops) == [
            ("s1", 3, 2),
            ("s2", 3, 2),
            ("s3", 3, 2),
        ]
        # One request of ARP stays in the ring: each switch forwards it again and again.
        lab["h1"].run("ping -c 1 -W 0.2 10.0.0.77")

        def count() -> int:
            shown = lab["s2"].run("ovs-ofctl dump-ports br0 2", check=True).stdout
            return int(shown.partition("tx pkts=")[2].partition(",")[0])

        eventually(lambda: count() > 100, "no frame goes round")
    notes = lab.result.result.verdict.notes
    assert any(note.startswith("packets loop: s") for note in notes), notes


def test_a_ring_with_exits_has_no_loop(tmp_path: Path) -> None:
    with airloom.Lab(triangle(), out=tmp_path / "out") as lab:
        install(lab, good=True)
        found = lab.flow_loops()
        assert found.loops == []
        assert found.undecided == []
        for target in ("10.0.0.2", "10.0.0.3"):
            assert lab["h1"].run(["ping", "-c", "1", "-W", "3", target]).ok
    assert lab.result.result.verdict.notes == ()
