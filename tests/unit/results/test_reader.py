"""Reading what is left of a folder that was damaged, or whose writer was killed."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from airloom import report
from airloom.compare.render import render
from airloom.compare.runs import compare
from airloom.results import Ledger, Measurement, RunReader, RunWriter, SweepWriter, Verdict

pytestmark = pytest.mark.slow

TEXT = "name: chain\nnodes: {1: {}, b: {}}\n"


def fill(writer: RunWriter) -> None:
    writer.record("rtt", "rtt", "ns", [1, 2], [10.0, 20.0], node="a")
    writer.flush()
    writer.record("rtt", "rtt", "ns", [3], [30.0], node="a")
    writer.flush()
    writer.measured(Measurement(name="rtt", metric="rtt_mean", unit="ns", mean=20.0, n=3))


def run(folder: Path, *, finished: bool = True) -> Path:
    writer = RunWriter(folder, scenario="chain", seed=1, kinds=["netns"], scenario_text=TEXT)
    fill(writer)
    if finished:
        writer.finish(Verdict(), Ledger(delivered=1))
    return folder


def sweep(folder: Path, *, finished: int = 3) -> Path:
    """A sweep of three points; the one after the finished ones has been begun."""
    writer = SweepWriter(folder, scenario="chain", seed=1, sweep={"nodes": [2, 3, 4]}, scenario_text=TEXT)
    for number, point in enumerate(writer.unfinished()):
        if number < finished:
            with writer.run(point, kinds=["netns"], seed=1) as one:
                fill(one)
                one.finish(Verdict(), Ledger(delivered=1))
        elif number == finished:
            writer.run(point, kinds=["netns"], seed=1)
    writer.close()
    return folder


def all_that_is_shown(folder: Path) -> tuple[str, str]:
    """What the terminal and the page say of a folder."""
    text = io.StringIO()
    Console(file=text, width=400).print(report.on_terminal(folder))
    return text.getvalue(), report.write([folder]).read_text()


def notes_of(folder: Path) -> list[str]:
    """Its notes, which everybody who looks into it must be told."""
    notes = RunReader(folder).notes
    shown = all_that_is_shown(folder)
    text = io.StringIO()
    found = compare(folder, folder)
    Console(file=text, width=400).print(render(found))
    told = json.loads(found.to_json())["first"]["notes"]
    assert told == notes
    for note in notes:
        assert all(note.split(":")[0] in where for where in (*shown, text.getvalue()))
    for where in shown:
        assert ("not read" in where.lower()) == bool(notes)
    return notes


def test_a_whole_folder_has_nothing_to_note(tmp_path: Path) -> None:
    assert notes_of(run(tmp_path / "run")) == []
    assert notes_of(sweep(tmp_path / "sweep")) == []
    assert notes_of(run(tmp_path / "killed", finished=False)) == []


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_a_sweep_that_was_cut_short_is_read(tmp_path: Path, finished: int) -> None:
    folder = sweep(tmp_path, finished=finished)
    reader = RunReader(folder)
    assert len(reader.samples("rtt")) == 3 * finished
    assert reader.samples("nothing").empty
    assert len(reader.points) == finished + 1
    assert reader.result.verdict.codes[0] == "sweep.unfinished"
    assert len(reader.measurements) == finished
    assert notes_of(folder) == []


def test_columns_have_one_type_whether_there_are_rows_or_not(tmp_path: Path) -> None:
    full = RunReader(run(tmp_path / "run"))
    empty = RunReader(sweep(tmp_path / "sweep", finished=0))
    assert full.table().schema.equals(empty.table().schema)
    assert full.table("nothing").schema.equals(full.table().schema)
    assert pa.types.is_dictionary(empty.table().schema.field("measurement").type)
    of_empty, of_full = empty.samples().drop(columns="nodes").dtypes, full.samples().dtypes
    assert [one.name for one in of_empty] == [one.name for one in of_full]


def test_swept_values_are_columns_of_the_samples(tmp_path: Path) -> None:
    frame = RunReader(sweep(tmp_path / "sweep")).samples("rtt")
    assert frame.groupby("nodes", observed=True)["value"].sum().to_dict() == {2: 60.0, 3: 60.0, 4: 60.0}
    assert RunReader(sweep(tmp_path / "none", finished=0)).samples()["nodes"].empty
    assert "nodes" not in RunReader(run(tmp_path / "run")).samples()


def test_a_swept_value_may_be_a_mapping(tmp_path: Path) -> None:
    queues = [{"packets": 10}, {"packets": 20}]
    writer = SweepWriter(tmp_path, scenario="chain", seed=1, sweep={"links[a].queue": queues})
    for point in writer.unfinished():
        with writer.run(point, kinds=["netns"], seed=1) as one:
            fill(one)
            one.finish(Verdict(), Ledger())
    frame = RunReader(tmp_path).samples("rtt")
    assert frame["links[a].queue"].tolist() == [queues[0]] * 3 + [queues[1]] * 3


@pytest.mark.parametrize("octets", [0, 3, 300])
def test_damaged_samples_are_left_out_with_a_note(tmp_path: Path, octets: int) -> None:
    folder = run(tmp_path)
    path = folder / "samples.parquet"
    path.write_bytes(path.read_bytes()[:octets])
    assert RunReader(folder).samples().empty
    (note,) = notes_of(folder)
    assert note.startswith("samples.parquet cannot be read, its samples are missing: ")
    assert RunReader(folder).measurements["mean"].tolist() == [20.0]


def test_samples_damaged_in_their_middle_are_noted_when_they_are_read(tmp_path: Path) -> None:
    folder = run(tmp_path)
    path = folder / "samples.parquet"
    octets = bytearray(path.read_bytes())
    octets[4:200] = bytes(196)
    path.write_bytes(octets)
    reader = RunReader(folder)
    assert len(reader.table()) < 3
    assert reader.notes[0].startswith("samples.parquet cannot be read")


def test_a_damaged_part_costs_no_other(tmp_path: Path) -> None:
    folder = run(tmp_path, finished=False)
    (folder / "samples.parts" / "000001.parquet").write_bytes(b"PAR1")
    assert RunReader(folder).samples()["value"].tolist() == [30.0]
    (note,) = notes_of(folder)
    assert note.startswith("samples.parts/000001.parquet cannot be read")


def test_samples_that_are_gone_are_missed(tmp_path: Path) -> None:
    folder = run(tmp_path)
    (folder / "samples.parquet").unlink()
    assert notes_of(folder) == ["samples.parquet is missing: there are no samples"]


def test_a_missing_point_is_left_out_with_a_note(tmp_path: Path) -> None:
    folder = sweep(tmp_path)
    shutil.rmtree(folder / "points" / "p0001-r00")
    (folder / "points" / "p0002-r00" / "result.json").write_text('{"schema": 1, ')
    reader = RunReader(folder)
    assert [run.name for run in reader.points] == ["p0000-r00"]
    assert len(reader.samples()) == 3
    assert len(reader.measurements) == 3
    gone, torn = notes_of(folder)
    assert gone == "points/p0001-r00 is left out: there is no result.json"
    assert torn.startswith("points/p0002-r00 is left out: result.json cannot be read")


def test_damage_in_a_point_names_the_point(tmp_path: Path) -> None:
    folder = sweep(tmp_path)
    (folder / "points" / "p0001-r00" / "samples.parquet").write_bytes(b"")
    assert len(RunReader(folder).samples()) == 6
    (note,) = notes_of(folder)
    assert note.startswith("points/p0001-r00/samples.parquet cannot be read")


def test_a_sweep_without_its_own_result_is_put_together(tmp_path: Path) -> None:
    folder = sweep(tmp_path)
    before = RunReader(folder).result
    (folder / "result.json").unlink()
    reader = RunReader(folder)
    assert reader.result == before
    assert notes_of(folder)[0].startswith("result.json is put together from the runs")


@pytest.mark.parametrize("octets", [b"name: \xff\xfe", b"a: [", b"a: b: c", b"\x00"])
def test_a_damaged_scenario_is_noted(tmp_path: Path, octets: bytes) -> None:
    for folder in (run(tmp_path / "run"), sweep(tmp_path / "sweep")):
        (folder / "scenario.yaml").write_bytes(octets)
        assert RunReader(folder).scenario == {}
        (note,) = notes_of(folder)
        assert note.startswith("scenario.yaml cannot be read")


def test_damaged_details_are_noted(tmp_path: Path) -> None:
    folder = run(tmp_path)
    (folder / "details.json").write_text("{")
    (note,) = notes_of(folder)
    assert note.startswith("details.json cannot be read")
