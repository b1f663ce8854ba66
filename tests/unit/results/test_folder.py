"""Whose folder it is: one writer at a time, and never runs of two things in one sweep."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from airloom.errors import RunError, ScenarioError
from airloom.results import Ledger, RunReader, RunWriter, SweepWriter, Verdict

TEXT = """\
name: chain
nodes: {a: {}, b: {}}
links:
- ends: [a, b]
  rate: 10 Mbit/s
  loss: 5 %
"""


def single(folder: Path) -> RunWriter:
    return RunWriter(folder, scenario="chain", seed=1, kinds=["netns"])


def sweep(folder: Path, text: str = TEXT, *, resume: bool = True, **more: object) -> SweepWriter:
    said = {"scenario": "chain", "seed": 1, "sweep": {"nodes": [2, 3]}, "inputs": {}} | more
    return SweepWriter(folder, scenario_text=text, resume=resume, **said)


def finish(writer: SweepWriter, most: int = 99) -> None:
    for point in writer.unfinished()[:most]:
        with writer.run(point, kinds=["netns"], seed=1) as one:
            one.record("rtt", "rtt", "ns", [1], [1.0])
            one.finish(Verdict(), Ledger(delivered=1))
    writer.close()


def refused(code: str, make) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        make()
    assert caught.value.code == code
    assert caught.value.exit_code == 2
    assert caught.value.cure
    return caught.value


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    with single(tmp_path / "run") as writer:
        refused("results.locked", lambda: single(tmp_path / "run"))
        refused("results.locked", lambda: sweep(tmp_path / "run"))
        writer.finish(Verdict(), Ledger())
    refused("results.exists", lambda: single(tmp_path / "run"))


def test_a_sweep_is_resumed_by_one_at_a_time(tmp_path: Path) -> None:
    with sweep(tmp_path):
        error = refused("results.locked", lambda: sweep(tmp_path))
        assert str(tmp_path) in str(error)
    finish(sweep(tmp_path))
    assert RunReader(tmp_path).result.verdict.status == "valid"


def test_a_refused_writer_leaves_the_folder_free(tmp_path: Path) -> None:
    finish(sweep(tmp_path))
    refused("results.other-sweep", lambda: sweep(tmp_path, seed=2))
    sweep(tmp_path).close()


@pytest.mark.slow
def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from airloom.results import SweepWriter
        writer = SweepWriter(sys.argv[1], scenario="chain", seed=1, sweep={"nodes": [2, 3]}, inputs={})
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "ready\n"
        refused("results.locked", lambda: sweep(tmp_path, ""))
        process.kill()
        process.wait()
    before = sorted(path.name for path in tmp_path.iterdir())
    sweep(tmp_path, "").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert before == ["result.json", "scenario.yaml", "sweep.json"]


def test_a_sweep_does_not_take_the_folder_of_a_single_run(tmp_path: Path) -> None:
    single(tmp_path).finish(Verdict(), Ledger(delivered=7))
    before = (tmp_path / "result.json").read_text()
    for resume in (False, True):
        error = refused("results.exists", lambda resume=resume: sweep(tmp_path, resume=resume))
        assert "single run" in error.message
    assert (tmp_path / "result.json").read_text() == before
    assert not (tmp_path / "sweep.json").exists()


def test_a_single_run_does_not_take_the_folder_of_a_sweep(tmp_path: Path) -> None:
    finish(sweep(tmp_path))
    (tmp_path / "result.json").unlink()
    assert "sweep" in refused("results.exists", lambda: single(tmp_path)).message


def test_a_sweep_goes_on_only_where_it_is_asked_to(tmp_path: Path) -> None:
    finish(sweep(tmp_path), 1)
    assert "--resume" in str(refused("results.exists", lambda: sweep(tmp_path, resume=False)).cure)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"text": TEXT.replace("10 Mbit/s", "1 Mbit/s")},
            "links[0].rate is '10 Mbit/s' there, '1 Mbit/s' here",
        ),
        ({"text": TEXT.replace("  loss: 5 %\n", "")}, "links[0].loss is '5 %' there, not given here"),
        ({"text": TEXT.replace("{a: {}, b: {}}", "{b: {}, a: {}}")}, "nodes is 'a, b' there, 'b, a' here"),
        ({"text": TEXT + "- ends: [a, b]\n"}, "links is"),
        ({"seed": 2}, "seed is 1 there, 2 here"),
        ({"sweep": {"nodes": [2, 4]}}, "sweep is"),
        ({"repetitions": 2}, "repetitions is 1 there, 2 here"),
        ({"inputs": {"/t/trace": "sha256:1"}}, "/t/trace was not used"),
    ],
)
def test_runs_of_two_scenarios_are_not_mixed(tmp_path: Path, change: dict, told: str) -> None:
    finish(sweep(tmp_path), 1)
    before = (tmp_path / "sweep.json").read_text()
    error = refused("results.other-sweep", lambda: sweep(tmp_path, **change))
    assert told in error.message
    assert (tmp_path / "sweep.json").read_text() == before


def test_the_same_scenario_with_another_file_is_another(tmp_path: Path) -> None:
    finish(sweep(tmp_path, inputs={"/t/a": "sha256:1", "/t/b": "sha256:2"}), 1)
    error = refused(
        "results.other-sweep",
        lambda: sweep(tmp_path, inputs={"/t/a": "sha256:1", "/t/b": "sha256:3"}),
    )
    assert "/t/b has changed since" in error.message
    assert "/t/a" not in error.message


def test_an_edited_scenario_in_the_folder_is_no_way_round(tmp_path: Path) -> None:
    finish(sweep(tmp_path), 1)
    edited = TEXT.replace("10 Mbit/s", "1 Mbit/s")
    (tmp_path / "scenario.yaml").write_text(edited)
    error = refused("results.other-sweep", lambda: sweep(tmp_path, edited))
    assert "scenario.yaml in it is no longer the one that was run" in error.message


def test_a_damaged_scenario_in_the_folder_is_put_right(tmp_path: Path) -> None:
    finish(sweep(tmp_path), 1)
    (tmp_path / "scenario.yaml").write_bytes(b"\xff")
    assert "cannot be read" in refused("results.other-sweep", lambda: sweep(tmp_path, TEXT + "#")).message
    sweep(tmp_path).close()
    assert (tmp_path / "scenario.yaml").read_text() == TEXT


def test_only_the_first_differences_are_told(tmp_path: Path) -> None:
    finish(sweep(tmp_path, inputs={f"/t/{n}": "sha256:1" for n in range(9)}), 1)
    assert "and 6 more" in refused("results.other-sweep", lambda: sweep(tmp_path)).message


@pytest.mark.parametrize("damage", ["folder", "result", "torn"])
def test_a_finished_run_that_is_gone_is_made_again(tmp_path: Path, damage: str) -> None:
    finish(sweep(tmp_path))
    place = tmp_path / "points" / "p0001-r00"
    if damage == "torn":
        (place / "result.json").write_text('{"schema": 1')
    else:
        (place / "result.json").unlink()
    if damage == "folder":
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    again = sweep(tmp_path)
    assert [one.folder for one in again.unfinished()] == ["points/p0001-r00"]
    assert "points/p0001-r00 was finished and is made again" in again.notes[0]
    for point in again.unfinished():
        with again.run(point, kinds=["netns"], seed=1) as one:
            one.finish(Verdict(), Ledger(delivered=1))
    result = again.finish()
    assert result.verdict.status == "valid"
    assert result.verdict.notes == tuple(again.notes)
    assert result.ledger.delivered == 2


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for make in (single, sweep):
        for place in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(RunError) as caught:
                make(place)
            assert caught.value.code == "results.unwritable"
            assert str(place) in str(caught.value)
