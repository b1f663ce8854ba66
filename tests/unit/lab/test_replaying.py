"""Which runs can be brought back to an instant."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.lab.replaying import begin_of, differing
from airloom.lab.steering import TOUCHED
from airloom.results import RunWriter, Verdict


def run(folder: Path, *, virtual: bool = True, notes: tuple[str, ...] = ()) -> Path:
    """The folder of a run that took 2 s of virtual time; nothing was measured."""
    text = "name: x\nnodes: {h1: {}}\n"
    with RunWriter(folder, scenario="x", seed=3, kinds=["uml"], scenario_text=text) as writer:
        writer.virtual_seconds = 2.0 if virtual else None
        writer.finish(Verdict(notes=notes), writer.ledger)
    return folder


def test_a_run_in_virtual_time_can_up_to_its_end(tmp_path: Path) -> None:
    folder = run(tmp_path / "out")
    begin = begin_of(folder, "1500 ms")
    assert (begin.scenario, begin.seed, begin.until) == (folder / "scenario.yaml", 3, 1_500_000_000)
    assert begin_of(folder, "0 s").until == 0
    assert begin_of(folder, 2_000_000_000).until == 2_000_000_000
    for until in ("2001 ms", -1):
        with pytest.raises(ScenarioError, match="is not within the run, which took 2 s"):
            begin_of(folder, until)


def test_other_runs_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is a run in wall time"):
        begin_of(run(tmp_path / "wall", virtual=False), "1 s")
    with pytest.raises(ScenarioError, match="was steered while it ran"):
        begin_of(run(tmp_path / "touched", notes=("else", f"{TOUCHED}: by hand")), "1 s")


def test_logs_that_do_not_begin_those_of_the_run_are_named(tmp_path: Path) -> None:
    for name, texts in {"run": ["abc", "abc", "abc"], "again": ["ab", "b", ""]}.items():
        for node, text in zip(("h1", "h2", "h3"), texts, strict=True):
            folder = tmp_path / name / "nodes" / node
            folder.mkdir(parents=True)
            (folder / "program.log").write_text(text)
    (tmp_path / "again/nodes/h3/more.log").write_text("new")
    assert differing(tmp_path / "run", tmp_path / "again") == ["nodes/h2/program.log", "nodes/h3/more.log"]
