"""Slices with codes from the scenario to the engine: predicted disturbance, and frames that arrive."""

from __future__ import annotations

from math import log10
from pathlib import Path

import pytest

from airloom import _engine
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.radio.interference import disturbances

MS = 1_000_000
SCENARIO = """
name: test
media:
  air:
    propagation: {{model: log-distance}}
    radio: {{rate: 36 Mbit/s}}
    codes: {{spreading: 16, synchronous: {synchronous}}}
nodes:
  a: {{position: [0 m, 0 m], radios: {{wlan0: }}}}
  b: {{position: [20 m, 0 m], radios: {{wlan0: }}}}
  c: {{position: [{near} m, 0 m], radios: {{wlan0: }}}}
  d: {{position: [{near} m, 1 m], radios: {{wlan0: }}}}
slices:
  one: {{grant: {{nodes: [a, b], channels: [36], code: 3}}}}
  two: {{grant: {{nodes: [c, d], channels: [36], code: 5}}}}
"""


def planned(folder: Path, *, near: int, synchronous: bool = False) -> Plan:
    path = folder / "scenario.yaml"
    text = SCENARIO.format(near=near, synchronous=str(synchronous).lower())
    path.write_text(text, encoding="utf-8")
    return check(str(path)).plans[0]


def arrived(plan: Plan) -> int:
    """Frames of slice one that arrive at ``b`` of 50, within 1 s, while slice two sends without a break."""
    medium = plan.media["air"]
    engine = _engine.Engine(plan.seed)
    engine.add_medium("air", medium.settings)
    for radio in medium.radios:
        engine.add_memory_port(radio.port)
        engine.add_radio("air", radio.port, radio.settings, radio.motion, radio.node)
    macs = {radio.port: bytes(radio.settings["mac"]) for radio in medium.radios}
    for number in range(200):
        to = macs["d-two:wlan0"] + macs["c-two:wlan0"]
        engine.offer("c-two:wlan0", number * 5 * MS, to + b"\x08\x00" + bytes(1486))
    for number in range(50):
        to = macs["b-one:wlan0"] + macs["a-one:wlan0"]
        engine.offer("a-one:wlan0", number * 20 * MS, to + b"\x08\x00" + bytes(1000))
    return sum(port == "b-one:wlan0" for port, *_ in engine.step(1_000 * MS))


def test_the_predicted_power_is_that_after_the_correlation(tmp_path: Path) -> None:
    found = {one.source: one for one in disturbances(planned(tmp_path, near=50))}
    two = found["two"]
    # Log-distance, 30 m from c to b; 10 log10(1.5 * 16) dB by the codes.
    assert two.power_dbm == pytest.approx(16 - 46.73 - 30 * log10(30) - 10 * log10(24), abs=0.01)
    assert two.noise_dbm == pytest.approx(-94 - 10 * log10(16), abs=0.05)
    assert two.wanted_dbm == pytest.approx(16 - 46.73 - 30 * log10(20), abs=0.01)
    assert (two.heard, two.effect) == (False, "interferes")


def test_a_near_slice_ends_a_far_link_unless_chips_are_aligned(tmp_path: Path) -> None:
    far, near = planned(tmp_path, near=60), planned(tmp_path, near=22)
    # 36 Mbit/s needs about 14 dB.
    ratios = [one.sinr_db for plan in (far, near) for one in disturbances(plan) if one.victim == "one"]
    assert ratios == [pytest.approx(22.6, abs=0.3), pytest.approx(-16.2, abs=0.3)]
    assert arrived(far) == 50
    assert arrived(near) < 10
    aligned = planned(tmp_path, near=22, synchronous=True)
    assert disturbances(aligned) == []
    assert arrived(aligned) == 50
