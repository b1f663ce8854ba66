"""Each command that writes where its user says replaces files of its own kind, and no other file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import fake_results

IMPORTED = Path(__file__).parents[1] / "data/imports"
ONE = "name: one\nnodes: {a: {}}\nduration: 10 ms\n"
REQUEST = """\
<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="a"><sliver_type name="raw-pc"/></node>
</rspec>
"""


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


Words = Callable[[Path, Path], list[str]]
"""The command that reads results in a folder, here a run or a sweep, and writes to a path."""
COMMANDS: dict[str, Words] = {
    "bench": lambda run, out: ["bench", "event-queue", "--json", str(out)],
    "compare": lambda run, out: ["compare", str(run), str(run), "--json", str(out)],
    "trends": lambda run, out: ["compare", str(run), str(run), "--trends", "--json", str(out)],
    "report": lambda run, out: ["report", str(run), "--out", str(out)],
    "pack": lambda run, out: ["experiment", "pack", str(run), "-o", str(out)],
    "import": lambda run, out: ["import", str(run.parent / "lab.xml"), "--out", str(out)],
    "rspec": lambda run, out: ["grid", "rspec", "request", str(run.parent / "one.yaml"), "--out", str(out)],
    "rspec scenario": lambda run, out: [
        *("grid", "rspec", "scenario", str(run.parent / "request.rspec"), "--out", str(out))
    ],
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text("name: one\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n")
    (tmp_path / "request.rspec").write_text(REQUEST)
    (tmp_path / "lab.xml").write_bytes((IMPORTED / "core.xml").read_bytes())
    return fake_results.run(tmp_path / "run", packets=100)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_replaces_no_file_of_another_kind(shell, results: Path, name: str) -> None:
    notes = results.parent / "notes.txt"
    notes.write_text("kept")
    victim = shutil.copytree(results, results.parent / "victim")
    before = digests(victim)
    for other in (victim / "result.json", victim / "samples.parquet", victim / "scenario.yaml", notes):
        done = shell.run(*COMMANDS[name](results, other))
        assert done.returncode == 2, (other, done.stdout, done.stderr)
        (line,) = done.stderr.splitlines()
        assert str(other) in line
        assert "[file.exists]" in line
    assert digests(victim) == before
    assert notes.read_text() == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
def test_an_output_replaces_the_one_before(shell, results: Path, name: str) -> None:
    out = results.parent / "written.out"
    for _ in range(2):
        done = shell.run(*COMMANDS[name](results, out))
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert out.stat().st_size
    out.write_bytes(b"")
    assert shell.run(*COMMANDS[name](results, out)).returncode == 0
    assert out.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "flent"])
def test_an_export_replaces_its_own_files_alone(shell, results: Path, form: str) -> None:
    target = results.parent / "exported"
    export = ("report", str(results), f"--{form}", str(target))
    assert shell.run(*export).returncode == 0
    assert shell.run(*export).returncode == 0
    first = min(target.iterdir())
    first.write_bytes(b'{"an other": "file"}\n')
    done = shell.run(*export)
    assert done.returncode == 2, done.stderr
    assert f"{first}: this file is there already and is not" in done.stderr
    assert first.read_bytes() == b'{"an other": "file"}\n'


def test_a_sent_stream_replaces_streams_alone(shell, results: Path) -> None:
    target = results.parent / "streams"
    send = ("oml", "send", str(results), "--to", f"file:{target}")
    assert shell.run(*send).returncode == 0
    assert shell.run(*send).returncode == 0
    first = min(target.iterdir())
    first.write_text("kept")
    done = shell.run(*send)
    assert done.returncode == 2, done.stderr
    assert first.read_text() == "kept"


@pytest.mark.world
@pytest.mark.parametrize("text", [ONE, ONE + "repetitions: 2\n"], ids=["run", "sweep"])
def test_a_run_replaces_no_file_of_a_folder_without_results(shell, text: str) -> None:
    folder = shell.folder / "lab"
    folder.mkdir()
    (folder / "scenario.yaml").write_text(f"# my own\n{text}")
    done = shell.run("run", str(folder / "scenario.yaml"), "--out", str(folder), "-q")
    assert done.returncode == 2, done.stderr
    assert "scenario.yaml, which the results would replace" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["scenario.yaml"]
    assert (folder / "scenario.yaml").read_text().startswith("# my own")


@pytest.mark.world
def test_an_experiment_replaces_no_run(shell, results: Path) -> None:
    before = digests(results)
    done = shell.run("experiment", "run", "orbit-udp-rate", "--smoke", "--out", str(results))
    assert done.returncode == 2, done.stderr
    assert "[results.exists]" in done.stderr
    assert digests(results) == before
