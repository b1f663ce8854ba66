"""Coupling of slices in stepped time: exactly none without a common channel, the closed form with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.experiments import orbit
from airloom.experiments.slice_coupling import Coupling, flows, pairs
from airloom.planning.gate import check
from airloom.planning.plan import Plan

pytest.importorskip("airloom._engine")

LOAD = 20
SCENARIO = """\
name: slices
media: {{air: {{propagation: {{model: log-distance}}, radio: {{rate: 36 Mbit/s, buffers: 50, queue: 50}}}}}}
nodes:
  n1: {{position: [0 m, 0 m], radios: {{wlan0: }}}}
  n2: {{position: [0 m, 1 m], radios: {{wlan0: }}}}
  n3: {{position: [{apart} m, 0 m], radios: {{wlan0: }}}}
  n4: {{position: [{apart} m, 1 m], radios: {{wlan0: }}}}
  n5: {{position: [0 m, 3 m], radios: {{wlan0: }}}}
  n6: {{position: [0 m, 4 m], radios: {{wlan0: }}}}
slices:
  one: {{grant: {{nodes: [n1, n2], channels: [36]}}}}
  two: {{grant: {{nodes: [n3, n4], channels: [{channel}]}}}}
  three: {{grant: {{nodes: [n5, n6], channels: [100]}}}}
measurements:
"""
FLOW = "  - {{name: {name}, traffic: {{from: {ends[0]}, to: {ends[1]}, rate: 20 Mbit/s{more}}}}}\n"
ENDS = {"one": ("n1-one", "n2-one"), "two": ("n3-two", "n4-two"), "three": ("n5-three", "n6-three")}


def plan_of(tmp_path: Path, *names: str, apart: int = 3, channel: int = 36, text: str = "") -> Plan:
    file = tmp_path / "s.yaml"
    said = "".join(FLOW.format(name=name, ends=ENDS[name], more="") for name in names)
    file.write_text(SCENARIO.format(apart=apart, channel=channel) + said + text)
    return check(file).plans[0]


def found(plan: Plan, **more: Any) -> dict[tuple[str, tuple[str, ...]], Coupling]:
    return {(one.slice, one.others): one for one in pairs(plan, span=1_000_000_000, **more)}


def test_slices_on_one_channel_share_it_and_the_third_is_not_touched(tmp_path: Path) -> None:
    by = found(plan_of(tmp_path, "one", "two", "three"))
    assert len(by) == 9
    share = 1 - orbit.saturation() / 2 / (LOAD * 1e6)
    for pair in (("one", ("two",)), ("two", ("one",)), ("one", ("two", "three"))):
        assert sum(by[pair].coupling) / 3 == pytest.approx(share, abs=0.03)
        assert min(by[pair].most) > share
        assert min(by[pair].loss) == pytest.approx(share, abs=0.05)
        assert min(by[pair].delay_ns) > 1e6
    for pair in (("three", ("one",)), ("three", ("one", "two")), ("two", ("three",))):
        one = by[pair]
        assert one.coupling == one.loss == (0, 0, 0)
        # Frames of two channels that end at the same instant follow each other by 1 ns.
        assert max(map(abs, one.delay_ns + one.jitter_ns)) < 0.1


@pytest.mark.parametrize("apart", [{"channel": 40}, {"apart": 2_000}], ids=["fdm", "sdm"])
def test_orthogonal_channels_and_distance_leave_no_coupling(tmp_path: Path, apart: dict[str, int]) -> None:
    for one in found(plan_of(tmp_path, "one", "two", **apart)).values():
        assert one.coupling == one.loss == (0, 0, 0)
        # A distant signal and one of the next channel raise the noise, but not to an error.
        assert max(map(abs, one.delay_ns)) < 1_000


def test_equal_flows_count_as_often_as_they_send_at_once(tmp_path: Path) -> None:
    later = FLOW.format(name="later", ends=ENDS["one"], more=", at: 20 s")
    beside = FLOW.format(name="beside", ends=ENDS["one"], more=", at: 1 s")
    assert len(flows(plan_of(tmp_path, "one", "two", text=later))) == 2
    assert len(flows(plan_of(tmp_path, "one", "two", text=later + beside))) == 3


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), FLOW.format(name="tcp", ends=ENDS["one"], more=", protocol: tcp")),
        (("one",), ""),
        (("one",), FLOW.format(name="burst", ends=ENDS["two"], more=", pattern: poisson")),
    ],
    ids=["tcp", "one slice", "no constant rate"],
)
def test_without_flows_of_two_slices_nothing_is_computed(
    tmp_path: Path, names: tuple[str, ...], text: str
) -> None:
    with pytest.raises(ScenarioError, match="fewer than two slices have a flow"):
        pairs(plan_of(tmp_path, *names, text=text))
