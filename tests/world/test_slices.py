"""Slices over shared nodes: isolation on the air, grants that hold, losses in the driver's queue."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import report
from airloom.errors import RunError, ScenarioError
from airloom.scenario.model import Scenario
from helpers.nodes import airloom_in_nodes, eventually

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

PACKAGE = {"PYTHONPATH": str(Path(airloom.__file__).parents[1]), "PATH": os.environ["PATH"]}
DCF_36 = 23.08
"""Mbit/s that one flow of 1470 octets gets at 36 Mbit/s: closed form of the standard's timing."""


def shared(**radio: Any) -> dict[str, Any]:
    radios: dict[str, Any] = {"wlan0": {}, "wlan1": {}}
    return {
        "media": {"air": {"radio": {"rate": "36 Mbit/s", **radio}}},
        "nodes": {
            "n1": {"position": ["0 m", "0 m"], "radios": radios},
            "n2": {"position": ["10 m", "0 m"], "radios": radios},
        },
        "slices": {
            "one": {"grant": {"nodes": ["n1", "n2"], "channels": ["5.18 GHz"]}},
            "two": {"grant": {"nodes": ["n1", "n2"], "channels": ["5.32 GHz", 100], "power": "10 dBm"}},
        },
    }


@pytest.mark.measures
def test_two_slices_on_shared_nodes_have_a_channel_each(tmp_path: Path) -> None:
    flows = [
        {"name": name, "traffic": {"from": f"n1-{name}", "to": f"n2-{name}", "rate": "30 Mbit/s",
                                   "duration": "3 s", "at": "1 s"}}
        for name in ("one", "two")
    ]  # fmt: skip
    result = airloom.run(Scenario(name="slices", measurements=flows, **shared()), out=tmp_path / "out").result
    found = {one.name: one.mean for one in result.measurements if one.metric == "throughput_steady"}
    for name in ("one", "two"):
        assert found[name] / 1e6 == pytest.approx(DCF_36, rel=0.04)
    # What the radio could not take is counted in its own queue, and nowhere else.
    assert set(result.ledger.dropped) == {"radio-queue-full"}
    assert result.ledger.dropped["radio-queue-full"] > 1000


def test_a_flow_states_when_the_other_slice_was_active(tmp_path: Path) -> None:
    flows = [
        {"name": name, "traffic": {"from": f"n1-{name}", "to": f"n2-{name}", "rate": "5 Mbit/s",
                                   "duration": duration, "at": at}}
        for name, at, duration in (("one", "1 s", "5 s"), ("two", "4 s", "2 s"))
    ]  # fmt: skip
    run = airloom.run(Scenario(name="slices", measurements=flows, **shared()), out=tmp_path / "r")
    for metric, least in (("other_airtime", 0.05), ("other_offered", 4e6)):
        rows = run.samples("one", metric, "two")
        before, during = rows[rows.t_ns <= 3e9], rows[(rows.t_ns > 4.5e9) & (rows.t_ns < 5.5e9)]
        assert before.value.max() < least / 10
        assert during.value.mean() > least
    page = report.write([tmp_path / "r"]).read_text()
    assert "Airtime of other slices during a flow" in page


@pytest.mark.measures
def test_two_slivers_of_one_slice_on_a_node_contend_for_its_channel(tmp_path: Path) -> None:
    said = shared()
    said["slices"] = {"one": {"grant": {"nodes": ["n1", "n1", "n2"], "channels": ["5.18 GHz"]}}}
    flows = [
        {"name": source, "traffic": {"from": source, "to": "n2-one", "rate": "20 Mbit/s",
                                     "duration": "3 s", "at": "1 s"}}
        for source in ("n1-one", "n1-one-2")
    ]  # fmt: skip
    scenario = Scenario(name="slices", measurements=flows, **said)
    result = airloom.run(scenario, out=tmp_path / "out").result
    found = [one.mean / 1e6 for one in result.measurements if one.metric == "throughput_steady"]
    # Two saturated contenders get a little less than one alone, each half of it (Bianchi's
    # model). A flow that begins a little later than the other has the channel alone at its end.
    assert sum(found) == pytest.approx(DCF_36, rel=0.12)
    assert min(found) / max(found) > 0.85


def test_a_sliver_reaches_its_own_slice_and_stays_within_its_grant(tmp_path: Path) -> None:
    with airloom.Lab(Scenario(name="slices", **shared()), out=tmp_path / "r") as up:
        assert up["n1-two"].run("ping -c 1 -W 1 n2-two").ok
        assert not up["n1-two"].run("ping -c 1 -W 1 n2-one").ok

        def channel() -> int:
            done = up["n1-two"].run(
                airloom_in_nodes() + " radio info --json", env=PACKAGE, timeout=60, check=True
            )
            return json.loads(done.stdout)[0]["channel"]

        refused = up["n1-two"].run(airloom_in_nodes() + " radio set channel 36", env=PACKAGE)
        assert (refused.code, channel()) == (1, 64)
        assert "channel 36 is outside the grant of 'two' (granted: 64, 100) [slice.grant]" in refused.stderr
        looking = up["n1-two"].run(airloom_in_nodes() + " radio scan 36", env=PACKAGE)
        assert "channel 36 is outside the grant" in looking.stderr
        louder = up["n1-two"].run(airloom_in_nodes() + " radio set power 20 dBm", env=PACKAGE)
        assert "20 dBm is more than the grant of 'two' allows (at most 10 dBm)" in louder.stderr
        assert up["n1-two"].run(airloom_in_nodes() + " radio set channel 100", env=PACKAGE).ok
        assert channel() == 100
        with pytest.raises(RunError, match=r"\[slice.grant\]"):
            up.radio("n1-two").set(channel=36)


@pytest.mark.measures
@pytest.mark.parametrize(("settings", "kept"), [({}, 40), ({"buffers": 1000, "queue": 1000}, 100)])
def test_a_burst_is_lost_or_absorbed_by_the_drivers_queue(
    tmp_path: Path, settings: dict[str, int], kept: int
) -> None:
    trace = tmp_path / "burst"
    trace.write_text("".join(f"{1_000_000_000 + number} 1470\n" for number in range(100)))
    # The channel is far too slow to send more than a few frames while the burst comes in.
    flow = {"from": "n1-one", "to": "n2-one", "pattern": "trace", "trace": str(trace), "duration": "2 s"}
    ping = {"from": "n1-one", "to": "n2-one", "count": 1}
    parts = shared(**settings | {"rate": "6 Mbit/s"})
    measurements = [{"name": "arp", "ping": ping}, {"name": "burst", "traffic": flow}]
    scenario = Scenario(name="burst", measurements=measurements, **parts)
    result = airloom.run(scenario, out=tmp_path / "out").result
    found = {one.metric: one.mean for one in result.measurements if one.name == "burst"}
    assert found["received"] == pytest.approx(kept, abs=8)
    # Of the five packets that mark the end some may find the queue full too.
    refused = result.ledger.dropped.get("radio-queue-full", 0)
    assert found["lost"] <= refused <= found["lost"] + 5


def test_a_running_slice_hands_its_channel_to_another(tmp_path: Path) -> None:
    scenario = shared()
    scenario["slices"]["two"]["grant"]["channels"] = [48]
    with airloom.Lab(Scenario(name="handover", **scenario), out=tmp_path / "out") as lab:
        channel = lambda sliver: lab.radio(sliver).info()["channel"]  # noqa: E731
        with pytest.raises(ScenarioError, match="overlaps channel"):
            lab.change_grants({"two": {"channels": [36]}})
        with pytest.raises(ScenarioError, match="has passed"):
            lab.change_grants({"two": {"power": "3 dBm"}}, at=0)
        assert [channel("n1-one"), channel("n1-two")] == [36, 48]
        lab.change_grants({"one": {"channels": [40]}, "two": {"channels": [36], "power": "3 dBm"}})
        eventually(
            lambda: [channel("n1-one"), channel("n2-one"), channel("n1-two")] == [40, 40, 36], "the handover"
        )
        for name in ("one", "two"):
            assert lab[f"n1-{name}"].run(f"ping -c 2 -i 0.2 -W 2 n2-{name}").ok
        with pytest.raises(RunError, match="is outside the grant of 'one'"):
            lab.radio("n1-one").set(channel=36)
        later = lab.now() + 2_000_000_000
        assert lab.change_grants({"one": {"channels": [44]}}, at=later) == later
        before = channel("n1-one")
        # A busy machine may have answered when the change had happened.
        assert before == 40 or lab.now() >= later
        eventually(lambda: channel("n1-one") == 44, "the later change")
    assert [one.what for one in lab.result.result.violations] == ["setting"], "the one that was refused"
    details = json.loads((tmp_path / "out" / "details.json").read_text())
    said = [one["what"] for one in details["happenings"] if "slice" in one["what"]]
    assert said == [
        "slice one: channels [40]",
        "slice two: channels [36], power 3 dBm",
        "slice one: channels [44]",
    ]


def one_radio_each(**two: Any) -> dict[str, Any]:
    said = shared()
    for node in said["nodes"].values():
        node["radios"] = {"wlan0": {}}
    said["slices"] = {
        "one": {"grant": {"nodes": ["n1", "n2"], "channels": [36]}},
        "two": {"grant": {"nodes": [], "channels": [36], **two}},
    }
    return said


def test_one_slice_pings_until_the_handover_and_then_the_other(tmp_path: Path) -> None:
    at = 2_000_000_000
    pings = [
        {"name": name, "ping": {"from": f"n1-{name}", "to": f"n2-{name}", "count": 40,
                                "interval": "100 ms", "at": "500 ms"}}
        for name in ("one", "two")
    ]  # fmt: skip
    events = [
        {"at": f"{at} ns", "slice": name, "grant": {"nodes": nodes}}
        for name, nodes in (("one", []), ("two", ["n1", "n2"]))
    ]
    scenario = Scenario(name="radios", measurements=pings, events=events, **one_radio_each())
    run = airloom.run(scenario, out=tmp_path / "r")
    answered = {name: run.samples(name, "rtt").t_ns for name in ("one", "two")}
    # At most 16 requests are sent in the 1.5 s before. Those of slice two wait for an answer to its ARP.
    assert 0 < len(answered["one"]) <= 16
    assert answered["two"].min() > at


def test_a_running_slice_is_given_the_radios_of_another(tmp_path: Path) -> None:
    scenario = Scenario(name="radios", **one_radio_each(standby=["n1", "n2"]))
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:

        def reaches(name: str) -> bool:
            return bool(lab[f"n1-{name}"].run(f"ping -c 2 -i 0.2 -W 1 n2-{name}").ok)

        def up() -> list[bool]:
            return [lab.radio(name).is_up for name in ("n1-one", "n2-one", "n1-two", "n2-two")]

        assert [reaches("one"), reaches("two"), up()] == [True, False, [True, True, False, False]]
        done = lab["n1-two"].run(airloom_in_nodes() + " radio up", env=PACKAGE, timeout=60)
        assert (done.code, "'two' does not have the radio n1:wlan0 now" in done.stderr) == (1, True)
        with pytest.raises(RunError, match=r"\[slice.grant\]"):
            lab.radio("n2-two").up()
        with pytest.raises(ScenarioError, match="both claim the radio n1:wlan0"):
            lab.change_grants({"two": {"nodes": ["n1"]}})
        # A node that is off when its slice is given its radio keeps it off until it starts.
        lab.control("n2-two", "stop")
        eventually(lambda: lab["n2-two"].state == "stopped", "the node is off")
        at = lab.change_grants({"one": {"nodes": []}, "two": {"nodes": ["n1", "n2"]}})
        eventually(lambda: lab.now() > at, "it is time")
        assert up() == [False, False, True, False]
        lab.control("n2-two", "start")
        eventually(lambda: up() == [False, False, True, True], "the radio is on with its node")
        eventually(lambda: reaches("two"), "slice two has the radios")
        assert not reaches("one")
    assert set(lab.result.result.ledger.dropped) <= {"radio-off", "out-of-range"}
