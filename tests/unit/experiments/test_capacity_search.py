"""Searching the largest size that is good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from airloom.experiments import capacity_search
from airloom.planning.gate import check
from airloom.results import Ledger, RunReader, RunWriter, Verdict
from airloom.runs import batch
from airloom.scenario.model import Scenario

LADDER = (2, 4, 8, 16, 32)


@pytest.mark.parametrize("limit", range(1, 33))
def test_halving_finds_the_border(limit: int) -> None:
    tried: list[int] = []

    def good(size: int) -> bool:
        tried.append(size)
        return size <= limit

    assert capacity_search.search(LADDER, good, halve=True) == min(limit, 32)
    assert len(tried) == len(set(tried)), "no size is tried twice"


@pytest.mark.parametrize(("limit", "found"), [(1, 1), (3, 2), (9, 8), (100, 32)])
def test_without_halving_the_last_good_rung_stands(limit: int, found: int) -> None:
    assert capacity_search.search(LADDER, lambda size: size <= limit, halve=False) == found


def test_a_line_keeps_its_gaps() -> None:
    line = capacity_search.line("RTT", "measured", [2, 3], [1e6, None], 1e6)
    assert line.x == (2.0, 3.0)
    assert line.y == (1.0, None)


def test_intervals_count_by_their_lengths() -> None:
    ends = [100, 1_000, 1_100, 1_200, 1_225]
    samples = pd.DataFrame(
        {
            "metric": ["throughput"] * 5 + ["offered"],
            "t_ns": [end * 1_000_000 for end in [*ends, 1_200]],
            "value": [7.0, 7.0, 90.0, 100.0, 60.0, 1_000.0],
        }
    )
    assert capacity_search.settled(samples) == pytest.approx((90 * 100 + 100 * 100 + 60 * 25) / 225)
    assert capacity_search.settled(samples[:1]) is None


def scenario(duration: str) -> Scenario:
    return Scenario.model_validate({"name": "one", "nodes": {"a": {}}, "duration": duration})


def test_a_run_is_kept_for_the_same_scenario_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run(what: Scenario, *, out: Path, capture: bool, tries: Any) -> RunReader:
        made.append(str(what.duration))
        assert not out.exists(), "what an earlier run left is gone"
        text = what.to_yaml()
        with RunWriter(out, scenario="one", seed=1, kinds=["netns"], scenario_text=text) as writer:
            if what.duration.text != "3 s":
                writer.finish(Verdict(status="valid"), Ledger())
        return RunReader(out)

    monkeypatch.setattr(batch, "run", run)
    for duration in ("1 s", "1 s", "2 s", "2 s", "3 s", "3 s"):
        capacity_search.point(tmp_path, "one", scenario(duration))
    # A quick one is not taken for a full one, and one that was cut short is made again.
    assert [int(one) // 10**9 for one in made] == [1, 2, 3, 3]


def test_a_run_in_virtual_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stored scenario is the checked one, whose nodes are in guests."""
    made: list[str] = []

    def run(what: Scenario, *, out: Path, capture: bool, tries: Any) -> RunReader:
        made.append(what.name)
        (plan,) = check(what).plans
        text = plan.scenario.to_yaml()
        assert text != what.to_yaml()
        with RunWriter(out, scenario="one", seed=1, kinds=["uml"], scenario_text=text) as writer:
            writer.finish(Verdict(status="valid"), Ledger())
        return RunReader(out)

    monkeypatch.setattr(batch, "run", run)
    for _ in range(2):
        capacity_search.point(tmp_path, "one", scenario("1 s").model_copy(update={"time": "virtual"}))
    assert made == ["one"]


def test_a_campaigns_verdict_is_of_its_own_runs(tmp_path: Path) -> None:
    for name, status in (("mine", "valid"), ("other", "invalid")):
        place = tmp_path / capacity_search.POINTS / name
        with RunWriter(place, scenario=name, seed=1, kinds=["netns"], scenario_text="") as writer:
            writer.finish(Verdict(status=status, reasons=("so",) * (status != "valid")), Ledger())
    assert capacity_search.whole(tmp_path, {"mine"})[0].status == "valid"
    assert capacity_search.whole(tmp_path)[0].status == "invalid"
