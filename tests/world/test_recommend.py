"""A recommendation: the delays of its own calibration, a trial, and corrected values against native ones."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from airloom.bench import calibrate
from airloom.recommend import trials
from airloom.runs.progress import Watcher
from helpers import forked
from helpers.calibrations import made

pytestmark = pytest.mark.world

SCENARIO = """\
name: thin
nodes: {a: , b: }
links: [{ends: [a, b]}]
measurements:
  - {name: flow, traffic: {from: a, to: b, interval: 5 ms, size: 100 B, duration: 2 s}}
"""


@pytest.mark.measures
@pytest.mark.timeout(400)
def test_a_corrected_delay_is_the_native_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # Ceilings and costs correct no delay, and take most of the time; test_calibrating.py measures them.
    monkeypatch.setattr(calibrate, "ceiling", lambda kind, pairs, trials=None: 30_000.0)
    monkeypatch.setattr(calibrate, "cost", lambda kind, rate: 10_000.0)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    trial = trials.prepared(tmp_path / "s.yaml", ["netns"])
    found = trials.recommend(trial, tmp_path / "out", watcher=Watcher(), progress=lambda text: None)
    (answer,) = found.answers
    assert (found.kind, answer.calibration) == ("netns", "short")
    assert answer.verdict("voice") == "harmless"
    assert answer.carried.nodes >= 2
    delay = next(one for one in answer.figures if one.advice.metric == "delay_mean")
    assert delay.native is not None
    assert delay.native_half_width is not None
    assert delay.advice.verdict in ("correctable", "unusable")
    if delay.advice.verdict == "correctable":
        corrected, half = delay.advice.corrected or 0.0, delay.advice.half_width or 0.0
        assert corrected < delay.advice.value
        # Two independent 95 % intervals: twice their combination is four standard errors.
        assert abs(corrected - delay.native) <= 2 * math.hypot(half, delay.native_half_width)


@pytest.mark.timeout(100)
def test_the_command_answers_in_json(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "netns.json").write_text(json.dumps(made().model_dump(mode="json", by_alias=True)))
    words = ["recommend", "s.yaml", "--kind", "netns", "--calibration", "netns.json", "--json", "-"]
    done = forked.run(words, tmp_path, os.environ, timeout=90)
    assert done.returncode == 0, done.stderr
    assert "trying netns: about" in done.stderr
    raw = json.loads(done.stdout)
    assert raw["kind"] == "netns"
    assert raw["relevant"] == ["throughput", "real-time"]
    (kind,) = raw["kinds"]
    assert kind["latency_ns"]["harmless"] == pytest.approx(2.4e6)
    assert kind["carried"]["nodes"] > 2
    assert {one["metric"] for one in kind["figures"]} == {"throughput", "delay_mean", "jitter_mean"}
    assert all(one["native"] for one in kind["figures"])
