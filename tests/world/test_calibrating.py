"""Calibrating the cheapest kind, and what a run then says of its figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from airloom.bench import calibrate
from airloom.calibration import model
from airloom.results import RunReader
from airloom.scenario.model import Scenario

pytestmark = pytest.mark.world


@pytest.mark.measures
@pytest.mark.timeout(240)
def test_figures_of_a_kind_and_the_guidance_that_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(calibrate, "TRIALS", 1)
    made = calibrate.calibrate("netns", lambda text: None, rounds=1, seconds=1)
    assert made.native_ceiling.value > 1_000
    assert made.ceilings[1].value > 1_000
    assert made.cost_ns.value > 0
    # The way through a TAP and the engine is longer than a bare wire.
    assert made.delay_ns.value > 0
    model.keep(made)
    flow = {"from": "a", "to": "b", "interval": "5 ms", "size": "100 B", "duration": "1 s"}
    scenario = {
        "name": "guided",
        "nodes": {"a": {}, "b": {}},
        "links": [{"ends": ["a", "b"], "delay": "20 ms"}],
        "measurements": [{"name": "flow", "traffic": flow}],
    }
    airloom.run(Scenario.model_validate(scenario), out=tmp_path / "out")
    advice = {one.metric: one.verdict for one in RunReader(tmp_path / "out").details.guidance}
    assert advice["throughput"] == "harmless"
    assert advice["delay_mean"] in ("harmless", "correctable")
