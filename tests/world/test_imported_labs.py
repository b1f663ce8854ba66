"""Laboratories of other tools are imported and run: what their own programs see and do is right."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

import airloom
from airloom.scenario.imports import convert
from airloom.scenario.reader import validated
from airloom.scenario.source import Source

pytestmark = [pytest.mark.world, pytest.mark.timeout(170)]


def logs_of(folder: Path, file: Path, **measurements: object) -> dict[str, str]:
    """Imports and runs a laboratory; returns the outputs of its programs, by log file."""
    draft = convert(file, "netns")
    data = {**draft.data, **measurements}
    scenario = validated(Source(data, None, draft.path.parent))
    airloom.run(scenario, out=folder / "run")
    return {
        str(log.relative_to(folder / "run")): log.read_text()
        for log in (folder / "run" / "nodes").rglob("*.log")
    }


def test_kathara_devices_route_as_their_startup_files_say(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "lab.conf").write_text('pc1[0]="A"\nr1[0]="A"\nr1[1]="B"\npc2[0]="B"\n')
    (lab / "pc1.startup").write_text(
        "ip address add 10.1.0.2/24 dev eth0\nip route add default via 10.1.0.1\n"
        "sleep 1\nping -c 3 -i 0.2 -W 2 10.2.0.2\n"
    )
    (lab / "r1.startup").write_text(
        "ip address add 10.1.0.1/24 dev eth0\nip address add 10.2.0.1/24 dev eth1\n"
    )
    (lab / "pc2.startup").write_text(
        "ip address add 10.2.0.2/24 dev eth0\nip route add default via 10.2.0.1\n"
    )
    logs = logs_of(tmp_path, lab)
    assert any("3 received" in text and "ttl=63" in text for text in logs.values()), logs


def test_core_nodes_have_the_delay_of_their_link(tmp_path: Path) -> None:
    file = tmp_path / "wired.xml"
    file.write_text(
        textwrap.dedent(
            """
            <scenario name="wired">
              <devices>
                <device id="1" name="a" type="PC" class="" image=""><position x="1" y="1"/></device>
                <device id="2" name="b" type="PC" class="" image=""><position x="2" y="1"/></device>
              </devices>
              <links>
                <link node1="1" node2="2">
                  <iface1 id="0" name="eth0" ip4="10.0.7.1" ip4_mask="24"/>
                  <iface2 id="0" name="eth0" ip4="10.0.7.2" ip4_mask="24"/>
                  <options delay="30000" bandwidth="10000000" loss="0" dup="0" jitter="0" unidirectional="0"/>
                </link>
              </links>
            </scenario>
            """
        ).strip()
    )
    draft = convert(file, "netns")
    ping = {"name": "echo", "ping": {"from": "a", "to": "b", "count": 5, "interval": "200 ms"}}
    scenario = validated(Source({**draft.data, "measurements": [ping]}, None, tmp_path))
    result = airloom.run(scenario, out=tmp_path / "run").result
    figures = {one.metric: one.mean for one in result.measurements}
    assert figures["received"] == 5
    assert 60e6 <= (figures["rtt_min"] or 0) < 75e6


def test_shadow_hosts_reach_each_other_over_their_graph(tmp_path: Path) -> None:
    file = tmp_path / "shadow.yaml"
    file.write_text(
        textwrap.dedent(
            """
            general: {stop_time: 6 s, seed: 7}
            network:
              graph:
                type: gml
                inline: |
                  graph [
                    node [ id 0 label "east" host_bandwidth_down "100 Mbit" host_bandwidth_up "20 Mbit" ]
                    node [ id 1 label "west" host_bandwidth_down "1 Gbit" host_bandwidth_up "1 Gbit" ]
                    edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]
                    edge [ source 1 target 1 latency "1 ms" packet_loss 0.0 ]
                    edge [ source 0 target 1 latency "50 ms" packet_loss 0.0 ]
                  ]
            hosts:
              server:
                network_node_id: 0
              client:
                network_node_id: 1
                processes:
                - {path: ping, args: [-c, "3", -i, "0.3", server], start_time: 1s}
            """
        )
    )
    logs = logs_of(tmp_path, file)
    (said,) = [text for text in logs.values() if "ping statistics" in text]
    assert "3 received" in said
    # 50 ms each way.
    least = float(said.rpartition("= ")[2].partition("/")[0])
    assert 100 <= least < 125


def test_miniedit_networks_forward_and_have_their_delay(tmp_path: Path) -> None:
    file = tmp_path / "net.mn"
    network = {
        "application": {"ipBase": "10.0.0.0/8", "switchType": "ovs"},
        "controllers": [],
        "hosts": [
            {"number": "1", "opts": {"hostname": "h1", "nodeNum": 1, "ip": "10.0.0.1"}, "x": "1", "y": "1"},
            {"number": "2", "opts": {"hostname": "h2", "nodeNum": 2, "ip": "10.0.0.9"}, "x": "1", "y": "1"},
        ],
        "links": [
            {"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "15ms"}},
            {"src": "h2", "dest": "s1", "opts": {}},
        ],
        "switches": [
            {
                "number": "1",
                "opts": {"hostname": "s1", "nodeNum": 1, "switchType": "legacySwitch"},
                "x": "1",
                "y": "1",
            }
        ],
        "version": "2",
    }
    file.write_text(json.dumps(network))
    draft = convert(file, "netns")
    ping = {"name": "echo", "ping": {"from": "h1", "to": "h2", "count": 5, "interval": "200 ms"}}
    scenario = validated(Source({**draft.data, "measurements": [ping]}, None, tmp_path))
    figures = {
        one.metric: one.mean for one in airloom.run(scenario, out=tmp_path / "run").result.measurements
    }
    assert figures["received"] == 5
    assert 30e6 <= (figures["rtt_min"] or 0) < 45e6
