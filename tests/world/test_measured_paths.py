"""Losses and pauses that an account must have: before a node's interface, and of a stopped program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario

pytestmark = pytest.mark.world


def measured(folder: Path, family: str, **said: Any) -> tuple[dict[str, float], airloom.RunResult]:
    """Figures of a flow that sends 1 MB in the two round trips of an address resolution."""
    flow = {"from": "a", "to": "b", "rate": "20 Mbit/s", "duration": "1 s", **said}
    scenario = {
        "name": "far",
        "addresses": {"ipv4": "10.0.0.0/16"} if family == "ipv4" else {"ipv4": None, "ipv6": "fd00::/48"},
        "nodes": {"a": {}, "r": {"forwarding": True}, "b": {}},
        "links": [{"ends": ["a", "r"], "delay": "200 ms"}, {"ends": ["r", "b"], "delay": "200 ms"}],
        "measurements": [{"name": "flow", "traffic": flow}],
    }
    result = airloom.run(Scenario.model_validate(scenario), out=folder)
    return {one.metric: one.mean or 0.0 for one in result.result.measurements}, result


@pytest.mark.measures
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_no_packet_of_a_measured_path_waits_for_an_address(tmp_path: Path, family: str) -> None:
    found, result = measured(tmp_path / "run", family)
    assert found["lost"] == found["host_lost"]
    assert found["goodput"] == pytest.approx(found["offered"] * (1 - found["loss"]))
    assert not [note for note in result.verdict.notes if "before their interfaces" in note]


@pytest.mark.measures
def test_packets_that_a_kernel_drops_before_its_interface_are_named(tmp_path: Path) -> None:
    found, result = measured(tmp_path / "run", "ipv4", resolution="during")
    missing = found["lost"] - found["host_lost"]
    assert missing > 300
    [note] = [note for note in result.verdict.notes if "before their interfaces" in note]
    named = dict(part.split() for part in note.rpartition(": ")[2].split(", "))
    # The router asks for its neighbour too, when what the sender kept arrives.
    assert set(named) == {"a", "r"}
    assert 0.95 * missing <= sum(map(int, named.values())) <= 1.05 * missing


@pytest.mark.measures
def test_a_receiver_that_somebody_stops_is_no_valid_measurement(tmp_path: Path) -> None:
    scenario = {
        "name": "stopped",
        "nodes": {"a": {}, "b": {}},
        "links": [{"ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "1 ms"}],
        "programs": [
            {
                "node": "b",
                "name": "who",
                "at": "1 s",
                "run": "pkill -STOP iperf3; sleep 2; pkill -CONT iperf3",
            }
        ],
        "measurements": [{"name": "load", "iperf3": {"from": "a", "to": "b", "duration": "4 s"}}],
    }
    verdict = airloom.run(Scenario.model_validate(scenario), out=tmp_path / "run").verdict
    assert verdict.status != "valid"
    [reason] = [one.sentence for one in verdict.causes if one.code == "measure.stopped"]
    assert reason.startswith("iperf3, the server of load in node b, was stopped")


@pytest.mark.measures
def test_full_packets_pass_a_trace_at_its_rate(tmp_path: Path) -> None:
    """Of 2 packets of 1500 octets each millisecond none is lost, of 3 a third."""
    (tmp_path / "trace").write_text("1\n1\n")
    scenario = {
        "name": "trace",
        "nodes": {"a": {}, "b": {}},
        "links": [
            {"ends": ["a", "b"], "trace": str(tmp_path / "trace"), "queue": {"packets": 40}, "delay": "1 ms"}
        ],
        "measurements": [
            {"name": "full", "traffic": {"from": "a", "to": "b", "interval": "500 us", "size": "1472 B"}},
            {"name": "over", "traffic": {"from": "a", "to": "b", "interval": "333 us", "size": "1472 B"}},
        ],
    }
    for one in scenario["measurements"]:  # type: ignore[attr-defined]
        one["traffic"]["duration"] = "2 s"
    result = airloom.run(Scenario.model_validate(scenario), out=tmp_path / "run").result
    loss = {one.name: one.mean or 0.0 for one in result.measurements if one.metric == "loss"}
    assert loss["full"] < 0.01, "with the octets of frames it is 2.2 %"
    assert loss["over"] == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.measures
@pytest.mark.parametrize("forwarding", ["learning", "shortest-path"])
def test_a_flow_to_an_end_that_never_sends_is_not_flooded(tmp_path: Path, forwarding: str) -> None:
    scenario = {
        "name": "quiet",
        "nodes": {"a": {}, "b": {}, "c": {}},
        "switches": {"s": {"forwarding": forwarding}, "t": {"forwarding": forwarding}},
        "links": [{"ends": ends} for ends in (["a", "s"], ["s", "t"], ["b", "t"], ["c", "t"])],
        "measurements": [
            {
                "name": "flow",
                "traffic": {"at": "100 ms", "from": "a", "to": "b", "interval": "5 ms", "duration": "1 s"},
            }
        ],
    }
    run = airloom.run(Scenario.model_validate(scenario), out=tmp_path / "run")
    octets = run.samples("link", "rate").groupby("node", observed=True)["value"].sum()
    assert octets["b-t backward"] > 0
    assert octets.get("c-t backward", 0) < octets["b-t backward"] / 10
