"""Jain's index: its definition, and which flows are a group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airloom.results import Ledger, Measurement, RunReader, RunWriter, Verdict
from airloom.results.fairness import jain


def test_the_index_is_that_of_the_definition() -> None:
    assert jain([5.0, 5.0, 5.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    # (1 + 2 + 3)^2 / (3 * (1 + 4 + 9))
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / 42)
    assert jain([0.0, 0.0]) is None
    assert jain([]) is None


def test_only_flows_that_ran_together_are_a_group(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", scenario="s", seed=1, kinds=["netns"])
    second = 1_000_000_000
    for name, begin, rate in (("a", 0, 1e6), ("b", 1, 3e6), ("later", 20, 5e6)):
        t = begin * second + np.arange(100) * second // 10
        writer.record(name, "throughput", "bit/s", t, np.full(100, rate))
        writer.measured(Measurement(name=name, metric="throughput", unit="bit/s", mean=rate))
    writer.finish(Verdict(status="valid"), Ledger())
    run = RunReader(tmp_path / "run")
    [found] = run.fairness
    assert (found.name, found.metric, found.unit, found.n) == ("a, b", "fairness", "1", 2)
    assert found.mean == pytest.approx(16 / 20)
    assert "fairness" in set(run.measurements["metric"])


def test_one_flow_has_no_fairness(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", scenario="s", seed=1, kinds=["netns"])
    writer.measured(Measurement(name="a", metric="throughput", unit="bit/s", mean=1e6))
    writer.finish(Verdict(status="valid"), Ledger())
    assert RunReader(tmp_path / "run").fairness == ()
