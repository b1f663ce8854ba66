"""Points of a sweep in virtual time: several at once, with the results of one after the other."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import airloom
from airloom.errors import RunError, ScenarioError
from airloom.runs.progress import Watcher
from helpers.kernels import needs_virtual_time
from helpers.virtual import assert_same, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

PING = {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 3, "interval": "200 ms"}}
SWEEP = {"links[0].delay": ["1 ms", "2 ms", "5 ms"]}


class Told(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.points: list[str] = []
        self.names: list[str] = []
        self.problems: list[str] = []

    def point(self, number: int, total: int, text: str) -> None:
        self.points.append(f"{number} of {total}: {text}")

    def measured(self, name: str, metrics: object) -> None:
        self.names.append(name)

    def problem(self, text: str) -> None:
        self.problems.append(text)


@needs_virtual_time
def test_results_are_those_of_one_after_the_other(tmp_path: Path) -> None:
    told = Told()
    swept = scenario(sweep=SWEEP, measurements=[PING])
    at_once = airloom.run(swept, out=tmp_path / "two", jobs=2, watcher=told)
    airloom.run(swept, out=tmp_path / "one", jobs=1)
    assert at_once.verdict.status == "valid"
    smallest = {
        row.labels["links[0].delay"]: (row.mean or 0) // 1e6
        for row in at_once.result.measurements
        if row.metric == "rtt_min"
    }
    assert smallest == {"1 ms": 2, "2 ms": 4, "5 ms": 10}, "two crossings"
    for number in range(3):
        assert_same(tmp_path / f"one/points/p000{number}-r00", tmp_path / f"two/points/p000{number}-r00")
    assert told.points == [
        f"{number} of 3: links[0].delay={delay}" for number, delay in enumerate(["1 ms", "2 ms", "5 ms"], 1)
    ]
    assert sorted(told.names) == [f"rtt (links[0].delay={delay})" for delay in ("1 ms", "2 ms", "5 ms")]
    index = json.loads((tmp_path / "two/sweep.json").read_text())
    assert [point["state"] for point in index["points"]] == ["finished"] * 3


@needs_virtual_time
def test_a_failed_point_is_named_and_the_others_stay(tmp_path: Path) -> None:
    told = Told()
    program = {"node": "h1", "name": "p", "run": "true"}
    swept = scenario(
        sweep={"programs[0].run": ["true", "false", "sleep 0"]}, programs=[program], measurements=[PING]
    )
    with pytest.raises(RunError) as caught:
        airloom.run(swept, out=tmp_path / "out", jobs=2, watcher=told)
    assert caught.value.code == "sweep.failed"
    assert "1 of 3 runs failed, first points/p0001-r00" in str(caught.value)
    assert any("run=false: " in problem for problem in told.problems)
    index = json.loads((tmp_path / "out/sweep.json").read_text())
    assert [point["state"] for point in index["points"]] == ["finished", "waiting", "finished"]


@needs_virtual_time
def test_a_signal_stops_all_and_the_sweep_goes_on_later(tmp_path: Path) -> None:
    long = {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 100000, "interval": "10 ms"}}
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario(sweep=SWEEP, measurements=[long]).to_yaml())
    words = [sys.executable, "-m", "airloom", "run", str(file), "--jobs", "2", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 120
        while len(begun(tmp_path)) < 2:
            assert time.monotonic() < until
            assert running.poll() is None
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert "stopped by SIGINT" in said
    index = json.loads((tmp_path / "out/sweep.json").read_text())
    assert [point["state"] for point in index["points"]] == ["waiting"] * 3
    short = scenario(sweep=SWEEP, measurements=[PING])
    with pytest.raises(ScenarioError) as caught:
        airloom.run(short, out=tmp_path / "out", resume=True)
    assert caught.value.code == "results.other-sweep"


def begun(folder: Path) -> list[Path]:
    """The points whose measurement has begun."""
    return list((folder / "out").glob("points/*/nodes/h1/*"))


def test_several_at_once_are_refused_in_wall_time_and_beside_the_live_page(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario(time="wall", sweep=SWEEP).to_yaml())
    for more, said in (
        ([], "2 runs at once in wall time would disturb each other"),
        (["--time", "virtual", "--web"], "the live page shows one run at a time"),
    ):
        words = [sys.executable, "-m", "airloom", "run", str(file), "--jobs", "2", *more]
        done = subprocess.run(
            [*words, "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()
