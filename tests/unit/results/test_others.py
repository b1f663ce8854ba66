"""An experiment's results replace its own earlier ones, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.results import RunWriter, SweepWriter
from airloom.results.writer import refuse_others


def test_only_results_of_the_same_experiment_are_replaced(tmp_path: Path) -> None:
    refuse_others(tmp_path / "new", "mine")
    with pytest.raises(RuntimeError), RunWriter(tmp_path / "own", scenario="mine", seed=1, kinds=[]):
        raise RuntimeError
    refuse_others(tmp_path / "own", "mine")
    with (
        pytest.raises(RuntimeError),
        RunWriter(tmp_path / "run", scenario="mine", seed=1, kinds=[], scenario_text="name: mine\n"),
    ):
        raise RuntimeError
    SweepWriter(tmp_path / "sweep", scenario="mine", seed=1, sweep={"a": [1]}).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/result.json").write_text("{")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for folder, name in (("own", "other"), ("run", "mine"), ("sweep", "mine"), ("broken", "mine")):
        with pytest.raises(ScenarioError) as refused:
            refuse_others(tmp_path / folder, name)
        assert (refused.value.code, refused.value.exit_code) == ("results.exists", 2)
    assert {path: path.read_bytes() for path in before} == before
