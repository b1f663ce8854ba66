"""A run's folder: written in pieces, readable whatever ended the run."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airloom.errors import RunError, ScenarioError
from airloom.results import (
    Claim,
    Details,
    LatenessMicros,
    Ledger,
    Measurement,
    RunReader,
    RunWriter,
    SweepWriter,
    Verdict,
)
from airloom.results import samples as sample_files
from airloom.results import writer as writer_module
from airloom.results.headline import headlines

VALID = Verdict(status="valid")
KEYS = {
    "schema",
    "scenario",
    "seed",
    "kinds",
    "started",
    "wall_seconds",
    "time",
    "virtual_seconds",
    "verdict",
    "ledger",
    "measurements",
    "claims",
    "repeated",
    "in_force",
    "violations",
    "violations_unrecorded",
}


def open_run(folder: Path, **more: object) -> RunWriter:
    return RunWriter(folder, scenario="chain", seed=7, kinds=["netns"], scenario_text="name: chain\n", **more)


def test_result_has_the_promised_keys(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as writer:
        writer.record("rtt", "rtt", "ns", [1, 2, 3], [10.0, 20.0, 30.0], node="h1")
        writer.measured(Measurement(name="rtt", metric="max", unit="ns", mean=30.0, n=3))
        writer.finish(
            VALID,
            Ledger(delivered=3, dropped={"queue-full": 1}, lateness_us=LatenessMicros(p50=1, max=9)),
            claims=[Claim(id="c", statement="s", outcome="holds")],
        )
    raw = json.loads((tmp_path / "run" / "result.json").read_text())
    assert set(raw) == KEYS
    assert raw["schema"] == 1
    assert raw["verdict"]["status"] == "valid"
    assert set(raw["ledger"]) == {"delivered", "dropped", "host_lost", "lateness_us"}
    assert set(raw["ledger"]["lateness_us"]) == {"p50", "p99", "p999", "max"}
    assert set(raw["measurements"][0]) == {"name", "metric", "unit", "mean", "ci95", "n", "labels"}
    claim = {"id", "statement", "source", "published", "expected", "measured", "outcome", "why"}
    assert set(raw["claims"][0]) == claim
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "result.json",
        "samples.parquet",
        "scenario.yaml",
    ]


def test_a_result_is_written_as_plain_json(tmp_path: Path) -> None:
    odd = 'ends a line\n  "measurements": []'
    labels = {"x": odd}
    figures = [Measurement(name=odd, metric=f"m{n}", unit="1", mean=None, labels=labels) for n in range(3)]
    with open_run(tmp_path) as writer:
        for figure in figures:
            writer.measured(figure)
        claim = Claim(id="c", statement=odd, outcome="holds")
        result = writer.finish(VALID, Ledger(dropped={"measurements": 1}), claims=[claim])
    assert result.measurements == tuple(figures)
    for one in (result, result.model_copy(update={"measurements": ()})):
        assert one.to_json() == json.dumps(one.to_dict(), indent=2, ensure_ascii=False) + "\n"
    assert (tmp_path / "result.json").read_text() == result.to_json()


def test_samples_come_back_in_long_form(tmp_path: Path) -> None:
    with open_run(tmp_path, point={"nodes": 3}, repetition=2) as writer:
        writer.record("rtt", "rtt", "ns", np.arange(5), np.arange(5) * 2.0, node="h1")
        writer.flush()
        writer.record("flow", "throughput", "bit/s", [7], [1e8])
        reading = pa.table({"metric": ["delay"], "unit": ["ns"], "t_ns": [4], "value": [1.5], "node": ["h2"]})
        writer.record_table("flow", reading)
        writer.finish(VALID, Ledger())
    run = RunReader(tmp_path)
    assert pq.read_schema(tmp_path / "samples.parquet").equals(sample_files.SCHEMA)
    rtt = run.samples("rtt")
    assert list(rtt["value"]) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert set(rtt["point"]) == {'{"nodes": 3}'}
    assert set(rtt["repetition"]) == {2}
    assert len(run.samples()) == 7
    assert list(run.samples("flow", "delay")["node"]) == ["h2"]
    assert run.finished


@pytest.mark.parametrize("group", [1 << 18, 100])
def test_when_samples_were_written_does_not_show_in_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int
) -> None:
    monkeypatch.setattr(sample_files, "GROUP", group)
    written = []
    for name, pieces in (("whole", [900]), ("parts", [1, 37, 600, 262])):
        with open_run(tmp_path / name) as writer:
            begin = 0
            for rows in pieces:
                times = np.arange(begin, begin + rows)
                writer.record("m", "delay", "ns", times, times % 7, node="h1")
                writer.flush()
                begin += rows
            writer.finish(VALID, Ledger())
        written.append(tmp_path / name / sample_files.FILE)
    assert written[0].read_bytes() == written[1].read_bytes()
    assert pq.ParquetFile(written[0]).metadata.num_row_groups == -(-900 // group)


@pytest.mark.slow
def test_a_killed_run_leaves_what_it_measured(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        import pyarrow as pa
        from airloom.results import Measurement, RunWriter
        writer = RunWriter(sys.argv[1], scenario="chain", seed=1, kinds=["netns"])
        for part in range(3):
            writer.record("rtt", "rtt", "ns", range(1000), [float(part)] * 1000)
            writer.flush()
        reading = {"metric": ["delay"], "unit": ["ns"], "t_ns": [1], "value": [2.0], "node": [""]}
        writer.record_table("flow", pa.table(reading))
        writer.measured(Measurement(name="flow", metric="delay", unit="ns", mean=2.0))
        writer.record("rtt", "rtt", "ns", [0], [9.0])
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    run = RunReader(tmp_path / "run")
    assert not run.finished
    assert run.result.verdict.status == "invalid"
    assert run.result.verdict.codes == ("run.unfinished",)
    assert len(run.samples("rtt")) == 3000
    assert len(run.samples("flow")) == 1
    assert [one.mean for one in run.result.measurements] == [2.0]


def test_a_torn_part_is_not_read(tmp_path: Path) -> None:
    writer = open_run(tmp_path)
    writer.record("rtt", "rtt", "ns", [1], [1.0])
    writer.flush()
    (tmp_path / sample_files.PARTS / "000002.tmp").write_bytes(b"PAR1 and then nothing")
    assert len(RunReader(tmp_path).samples()) == 1
    writer.finish(VALID, Ledger())
    assert len(RunReader(tmp_path).samples()) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RunError("node.died", "node r2 died")])
def test_an_exception_closes_the_run_as_invalid(tmp_path: Path, error: BaseException) -> None:
    def run_it() -> None:
        with open_run(tmp_path) as writer:
            writer.record("rtt", "rtt", "ns", [1], [1.0])
            raise error

    with pytest.raises(type(error)):
        run_it()
    run = RunReader(tmp_path)
    assert run.finished
    assert run.result.verdict.status == "invalid"
    assert "kept" in run.result.verdict.reasons[0]
    assert len(run.samples("rtt")) == 1


def test_a_full_disk_while_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = open_run(tmp_path)
    writer.record("rtt", "rtt", "ns", [1], [1.0])
    writer.flush()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer_module.samples, "write_part", full)
    writer.record("rtt", "rtt", "ns", [2, 3], [1.0, 1.0])
    with pytest.raises(RunError) as caught:
        writer.flush()
    assert caught.value.code == "results.disk-full"
    assert str(tmp_path) in str(caught.value)
    result = writer.finish(VALID, Ledger())
    assert result.verdict.status == "invalid"
    assert "2 samples are missing" in result.verdict.reasons[0]
    assert len(RunReader(tmp_path).samples()) == 1


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """On a file system of 1 MiB: the verdict is written although nothing else fits."""
    mounted = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("no user and mount namespaces here")
    program = textwrap.dedent(
        """
        import sys
        import numpy as np
        from airloom.errors import RunError
        from airloom.results import Ledger, RunReader, RunWriter, Verdict
        folder = sys.argv[1] + "/run"
        writer = RunWriter(folder, scenario="chain", seed=1, kinds=["netns"])
        random = np.random.default_rng(1)
        kept = 0
        try:
            while True:
                writer.record("rtt", "rtt", "ns", np.arange(20000), random.random(20000))
                writer.flush()
                kept += 20000
        except RunError as error:
            assert error.code == "results.disk-full", error
        result = writer.finish(Verdict(status="valid"), Ledger())
        run = RunReader(folder)
        assert run.result.verdict.status == "invalid", run.result.verdict
        assert "20000 samples are missing" in run.result.verdict.reasons[0]
        assert len(run.samples()) == kept > 0, kept
        """
    )
    command = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", command, "sh", str(tmp_path), sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_earlier_run_is_not_overwritten(tmp_path: Path) -> None:
    open_run(tmp_path).finish(VALID, Ledger())
    with pytest.raises(ScenarioError) as caught:
        open_run(tmp_path)
    assert caught.value.code == "results.exists"


def test_details_survive_a_round_trip(tmp_path: Path) -> None:
    details = Details(versions={"airloom": "0.1.0"}, host_lost={"ring-full": 2})
    with open_run(tmp_path) as writer:
        writer.finish(VALID, Ledger(), details=details)
    assert RunReader(tmp_path).details == details


def test_what_cannot_be_read_says_where(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no result\.json"):
        RunReader(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": 99}')
    with pytest.raises(RunError, match="schema 99"):
        RunReader(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": 1, "scenario": 5')
    with pytest.raises(RunError, match="cannot be read"):
        RunReader(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": 1}')
    with pytest.raises(RunError, match="scenario"):
        RunReader(tmp_path)


def sweep_of(folder: Path, values: list[int]) -> SweepWriter:
    return SweepWriter(folder, scenario="chain", seed=7, sweep={"nodes": values}, repetitions=3)


def test_a_label_of_a_swept_path_may_change_before_a_resume(tmp_path: Path) -> None:
    for text, labels in (("name: chain", {}), ("name: chain # again", {"nodes": "n"})):
        for _ in range(2):
            with SweepWriter(
                tmp_path, scenario="chain", seed=7, sweep={"nodes": [2]}, labels=labels, scenario_text=text
            ) as sweep:
                assert sweep.index.labels == labels
    assert RunReader(tmp_path).index.labels == {"nodes": "n"}


def test_a_sweep_is_resumed_where_it_was_cut(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, [2, 3])
    assert len(sweep.unfinished()) == 6
    for number, point in enumerate(sweep.unfinished()[:5]):
        with sweep.run(point, kinds=["netns"], seed=number) as writer:
            mean = point.values["nodes"] * 10.0 + point.repetition
            writer.record("rtt", "rtt", "ns", [1], [mean])
            writer.measured(Measurement(name="rtt", metric="mean", unit="ns", mean=mean))
            if number == 3:
                writer.finish(
                    Verdict(status="degraded", reasons=("late",), codes=("delivery.late",)), Ledger()
                )
            elif number != 4:
                writer.finish(VALID, Ledger(delivered=5))
    assert RunReader(tmp_path).result.verdict.codes[0] == "sweep.unfinished"

    sweep.close()
    again = sweep_of(tmp_path, [2, 3])
    assert [(one.values["nodes"], one.repetition) for one in again.unfinished()] == [(3, 1), (3, 2)]
    for point in again.unfinished():
        with again.run(point, kinds=["netns"], seed=9) as writer:
            mean = 30.0 + point.repetition
            writer.record("rtt", "rtt", "ns", [1], [mean])
            writer.measured(Measurement(name="rtt", metric="mean", unit="ns", mean=mean))
            writer.finish(VALID, Ledger(delivered=5))
    result = again.finish()
    assert result.verdict.status == "degraded"
    assert result.verdict.reasons == ("nodes=3 #1: late",)
    assert result.ledger.delivered == 25
    assert [(one.labels, one.mean, one.n) for one in result.measurements] == [
        ({"nodes": "2"}, 21.0, 3),
        ({"nodes": "3"}, 31.0, 3),
    ]
    # Student's t: 4.303 for two degrees of freedom, standard deviation 1, three repetitions
    assert result.measurements[0].ci95 == pytest.approx(4.3027 / 3**0.5, rel=1e-3)
    run = RunReader(tmp_path)
    assert run.finished
    assert len(run.points) == 6
    assert sorted(run.samples("rtt")["value"]) == [20.0, 21.0, 22.0, 30.0, 31.0, 32.0]


def test_another_sweep_is_refused(tmp_path: Path) -> None:
    sweep_of(tmp_path, [2, 3]).close()
    with pytest.raises(ScenarioError) as caught:
        sweep_of(tmp_path, [2, 4])
    assert caught.value.code == "results.other-sweep"


@pytest.mark.slow
def test_a_million_samples_stay_small(tmp_path: Path) -> None:
    with open_run(tmp_path) as writer:
        for start in range(0, 1_000_000, 100_000):
            times = np.arange(start, start + 100_000)
            writer.record("flow", "delay", "ns", times, np.full(100_000, 5.0), node="h2")
        writer.finish(VALID, Ledger())
    table = RunReader(tmp_path).table("flow", "delay")
    assert table.num_rows == 1_000_000
    assert table.nbytes < 60e6


def test_headlines_are_the_figures_that_matter_first() -> None:
    def figures(name: str, metrics: list[str]) -> list[Measurement]:
        return [Measurement(name=name, metric=metric, unit="1", mean=1.0) for metric in metrics]

    many = figures("flow", [f"detail_{number}" for number in range(20)] + ["throughput", "loss"])
    few = figures("own", ["alpha", "beta"])
    strange = figures("odd", [f"thing_{number}" for number in range(9)])
    shown = headlines([*many, *few, *strange])
    assert [one.metric for one in shown if one.name == "flow"] == ["throughput", "loss"]
    assert [one.metric for one in shown if one.name == "own"] == ["alpha", "beta"]
    assert len([one for one in shown if one.name == "odd"]) == 9


@pytest.mark.slow
def test_recording_loads_no_more_modules_while_a_run_lasts(tmp_path: Path) -> None:
    script = """
import sys
import numpy as np
from airloom.results import RunWriter
with RunWriter(sys.argv[1], scenario="one", seed=1, kinds=["netns"]) as writer:
    before = set(sys.modules)
    writer.record("rtt", "rtt", "s", t_ns=np.arange(3), values=np.ones(3), node="h1")
    print(sorted(set(sys.modules) - before))
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
