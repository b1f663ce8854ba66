"""Reports of real runs: what was measured stands on the page, and every frame is accounted for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import airloom
from airloom import Scenario, report
from airloom.compare.runs import compare
from airloom.report import tables
from airloom.results import RunReader

pytestmark = pytest.mark.world


def lossy(seed: int = 1) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "lossy-pair",
            "seed": seed,
            "nodes": {"a": {}, "b": {}},
            "links": [{"ends": ["a", "b"], "rate": "20 Mbit/s", "delay": "3 ms", "loss": "5 %"}],
            "measurements": [
                {"name": "echo", "ping": {"from": "a", "to": "b", "count": 100, "interval": "5 ms"}},
                {"name": "flow", "traffic": {"from": "a", "to": "b", "rate": "4 Mbit/s", "duration": "1 s"}},
            ],
        }
    )


def test_every_frame_of_a_real_run_is_accounted_for(tmp_path: Path) -> None:
    airloom.run(lossy(), out=tmp_path / "out")
    run = RunReader(tmp_path / "out")
    account = tables.ledger(run)
    assert "Offered + copied = delivered + lost + in flight" in account.note
    assert "NOT CLOSED" not in account.note
    assert run.result.ledger.dropped["random-loss"] > 0
    page = report.write([tmp_path / "out"]).read_text()
    for title in ("One-way delay over time", "Round-trip time, distribution", "Lateness of deliveries"):
        assert title in page
    assert "Every link: 20 Mbit/s, 3 ms." in page
    assert "http" + "://" not in page


@pytest.mark.measures
def test_two_seeds_differ_by_chance_only(tmp_path: Path) -> None:
    runs = [airloom.run(lossy(seed), out=tmp_path / str(seed)).folder for seed in (1, 2)]
    rows = {(row.name, row.metric): row for row in compare(*runs).rows}
    assert rows[("flow", "offered")].ratio == pytest.approx(1, abs=0.05)
    assert rows[("echo", "rtt_min")].ratio == pytest.approx(1, abs=0.1)


def test_a_killed_run_keeps_its_finished_measurements(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "name: killed\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\nmeasurements:\n"
        "  - {name: first, ping: {from: a, to: b, count: 5, interval: 10 ms}}\n"
        "  - {name: second, ping: {from: a, to: b, count: 1000, interval: 100 ms}}\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-m", "airloom", "run", str(scenario), "--out", str(out), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with process:
        try:
            while process.poll() is None and not list((out / "samples.parts").glob("*.parquet")):
                time.sleep(0.05)
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
    run = RunReader(out)
    assert not run.finished
    assert run.result.verdict.status == "invalid"
    assert len(run.samples("first", "rtt")) == 5
    assert {one.name for one in run.result.measurements} <= {"first"}
    assert "has not finished" in report.write([out]).read_text()
