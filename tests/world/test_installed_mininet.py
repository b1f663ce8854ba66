"""The installed Mininet as a peer: it runs by itself, and its link is what the study says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloom.bench.peers import installed_mininet, mininet_scenario
from airloom.bench.peers.mininet_scenario import Shaping
from airloom.errors import HostError
from airloom.scenario.model import Scenario

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root"),
]
installed = pytest.mark.skipif(
    installed_mininet.python() is None, reason=f"no Mininet: {installed_mininet.CURE}"
)


@installed
def test_both_run_the_same_script(tmp_path: Path) -> None:
    for side in (installed_mininet.on_mininet, installed_mininet.on_airloom):
        said = side("standing", 3)
        assert said["answered"]
        assert said["up"] > 0


@installed
def test_a_flow_over_its_link_is_recorded_at_both_ends_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(os.listdir("/sys/class/net"))
    traffic = {"from": "h1", "to": "h3", "frame": "1518 B", "rate": "100 Mbit/s", "duration": "0.3 s"}
    scenario = Scenario.model_validate(
        {
            "name": "row",
            "addresses": {"ipv4": None, "ipv6": "fd00::/48"},
            "nodes": {"h1": {}, "h2": {}, "h3": {}},
            "switches": {"s1": {}, "s2": {}},
            "links": [
                {"ends": ends, "rate": "10 Mbit/s", "mtu": 1500}
                for ends in (["h1", "s1"], ["h2", "s1"], ["s1", "s2"], ["s2", "h3"])
            ],
            "programs": [{"node": "h2", "name": "late", "run": ["echo", "here"], "at": "0.2 s"}],
            "measurements": [{"name": "flow", "traffic": {**traffic, "at": "0.1 s"}}],
        }
    )
    mininet_scenario.run(scenario, tmp_path)
    assert (tmp_path / "nodes" / "h2" / "late.log").read_text() == "here\n"
    reading = mininet_scenario.flow(tmp_path, "flow")
    assert reading.received > 100
    rate = (reading.received - 1) * 1518 * 8e9 / float(np.ptp(reading.arrived_at))
    assert 5e6 < rate < 15e6, "two switches do not remove the shaping of the links"
    assert set(os.listdir("/sys/class/net")) == before


def _pair(measurements: list[dict[str, Any]]) -> Scenario:
    links = [{"ends": ends, "rate": "10 Mbit/s", "mtu": 1500} for ends in (["h1", "s1"], ["s1", "h2"])]
    nodes = {"nodes": {"h1": {}, "h2": {}}, "switches": {"s1": {}}}
    return Scenario.model_validate({"name": "pair", **nodes, "links": links, "measurements": measurements})


@installed
def test_its_links_can_be_shaped_further(tmp_path: Path) -> None:
    traffic = {"from": "h1", "to": "h2", "frame": "1518 B", "rate": "8 Mbit/s", "duration": "1 s"}
    slower = "tc class change dev {eth} parent 5: classid 5:1 htb rate 2mbit burst 2k"
    scenario = _pair([{"name": "flow", "traffic": traffic}])
    mininet_scenario.run(scenario, tmp_path, [Shaping("s1", "h2", slower)])
    reading = mininet_scenario.flow(tmp_path, "flow")
    assert (reading.received - 1) * 1518 * 8e9 / float(np.ptp(reading.arrived_at)) < 2.5e6


@installed
def test_a_receiver_whose_end_marks_are_lost_ends_like_one_of_a_run(tmp_path: Path) -> None:
    traffic = {"from": "h1", "to": "h2", "frame": "1518 B", "rate": "1 Mbit/s", "duration": "0.3 s"}
    drops_udp = [
        "tc class add dev {eth} parent 5: classid 5:9 htb rate 1mbit",
        "tc qdisc add dev {eth} parent 5:9 pfifo limit 0",
        "tc filter add dev {eth} parent 5: protocol ip u32 match ip protocol 17 0xff flowid 5:9",
    ]
    scenario = _pair([{"name": "flow", "traffic": traffic}])
    mininet_scenario.run(scenario, tmp_path, [Shaping("s1", "h2", command) for command in drops_udp])
    reading = mininet_scenario.flow(tmp_path, "flow")
    assert reading.sent > 20
    assert reading.received == 0


@installed
def test_what_it_says_of_a_failure_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="tc class add nonsense"):
        mininet_scenario.run(_pair([]), tmp_path, [Shaping("s1", "h2", "tc class add nonsense")])


def test_a_peer_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_mininet, "required", lambda: "sleep")
    monkeypatch.setattr(installed_mininet, "SCRIPT", "60")
    with pytest.raises(HostError, match=r"has not ended after 1 s"):
        installed_mininet.on_mininet(timeout=1)


def test_a_machine_without_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_mininet, "python", lambda: None)
    with pytest.raises(HostError, match=r"Mininet is not installed .*apt-get install mininet"):
        installed_mininet.required()
