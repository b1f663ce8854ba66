"""Hopping slices from the scenario to the engine: predicted meetings, and channels in use; no real time."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import pytest

from airloom import _engine
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.radio.interference import disturbances
from airloom.planning.slices import hopping

MS = 1_000_000
DWELL = 10 * MS
CHANNELS = [36, 44, 52, 60, 100, 108]
SCENARIO = """
name: test
media:
  air:
    propagation: {{model: log-distance}}
    radio: {{rate: 36 Mbit/s}}
    hops:
      {{dwell: 10 ms, sets: {{A: {{channels: {channels}}}, B: {{channels: {channels}, step: 5}}}}}}
nodes:
  a: {{position: [0 m, 0 m], radios: {{wlan0: }}}}
  b: {{position: [2 m, 0 m], radios: {{wlan0: }}}}
  c: {{position: [4 m, 0 m], radios: {{wlan0: }}}}
  d: {{position: [6 m, 0 m], radios: {{wlan0: }}}}
slices:
  one: {{grant: {{nodes: [a, b], channels: {channels}, hops: {{set: A, sequence: {one}}}}}}}
  two: {{grant: {{nodes: [c, d], channels: {channels}{two}}}}}
"""


def planned(folder: Path, one: int, two: str) -> Plan:
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO.format(channels=CHANNELS, one=one, two=two), encoding="utf-8")
    return check(str(path)).plans[0]


@pytest.mark.parametrize("other", range(6))
def test_slices_of_two_sets_meet_as_often_as_the_closed_form_says(tmp_path: Path, other: int) -> None:
    found = disturbances(planned(tmp_path, 1, f", hops: {{set: B, sequence: {other}}}"))
    # (1 - 5) n = other - 1 (mod 6): gcd(4, 6) = 2 solutions, or none.
    divisor = math.gcd(5 - 1, len(CHANNELS))
    if (other - 1) % divisor:
        assert found == []
        return
    assert [one.dwells for one in found] == [pytest.approx(divisor / len(CHANNELS))] * 2
    assert {one.effect for one in found} == {"contends, 33.3 % of dwells"}


def test_slices_of_one_set_never_meet(tmp_path: Path) -> None:
    assert disturbances(planned(tmp_path, 1, ", hops: {set: A, sequence: 4}")) == []


def test_a_slice_that_stays_is_met_in_one_dwell_of_all(tmp_path: Path) -> None:
    found = disturbances(planned(tmp_path, 1, ""))
    assert [one.dwells for one in found] == [pytest.approx(1 / 6)] * 2
    assert {one.channel for one in found} <= set(CHANNELS)


def test_the_engine_is_on_the_channels_of_the_plan(tmp_path: Path) -> None:
    plan = planned(tmp_path, 2, ", hops: {set: B, sequence: 3}")
    medium = plan.media["air"]
    engine = _engine.Engine(plan.seed)
    engine.add_medium("air", medium.settings)
    for radio in medium.radios:
        engine.add_memory_port(radio.port)
        engine.add_radio("air", radio.port, radio.settings, radio.motion, radio.node)
        assert radio.grant is not None
        engine.police(radio.port, radio.grant.engine())
    macs = {radio.port: bytes(radio.settings["mac"]) for radio in medium.radios}
    hops = {radio.port: hopping.channels(radio.settings["hops"]) for radio in medium.radios}
    pairs = [("a-one:wlan0", "b-one:wlan0"), ("c-two:wlan0", "d-two:wlan0")]
    for at in range(0, 10 * DWELL, DWELL // 5):
        for sender, receiver in pairs:
            engine.offer(sender, at, macs[receiver] + macs[sender] + b"\x08\x00" + bytes(1000))
    expected: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for dwell in range(10):  # the first beacon would be sent after 102.4 ms
        arrived = engine.step((dwell + 1) * DWELL)
        assert len(arrived) == 10, dwell
        for sender, _ in pairs:
            expected[sender][hops[sender][dwell % len(CHANNELS)]] += 5
    used = {
        radio["port"]: {one["channel"]: one["frames"] for one in radio["uses"]}
        for radio in engine.radios()
        if radio["port"] in expected
    }
    assert used == expected
