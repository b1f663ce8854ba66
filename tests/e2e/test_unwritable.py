"""Outputs that cannot be written: one clear line, an exit code, and never a traceback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers import fake_results, needs_root_to_mount

ONE = "name: one\nnodes: {a: {}}\nduration: 10 ms\n"
SWEEP = ONE + "repetitions: 2\n"


def one_line(done: subprocess.CompletedProcess[str], *words: str, code: int = 1) -> str:
    """The only line of an error, which holds these words."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("airloom: ")
    for word in words:
        assert word in line
    return line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file where a folder would have to be."""
    path = tmp_path / "file"
    path.write_text("kept")
    return path


@pytest.mark.world
@pytest.mark.parametrize("text", [ONE, SWEEP])
@pytest.mark.parametrize("below", ["", "below"])
def test_results_of_a_run(shell, scenario, file, text, below):
    done = shell.run("run", scenario(text), "--out", str(file / below), "-q")
    one_line(done, str(file / below), "--out", "[results.unwritable]")
    assert file.read_text() == "kept"


@pytest.mark.world
@needs_root_to_mount
def test_a_read_only_file_system(shell, scenario):
    prefix = ("unshare", "--mount", "sh", "-ec")
    folder = shell.folder / "read-only"
    folder.mkdir()
    mounted = f'mount -t tmpfs -o ro none {folder}; exec "$@"'
    for text in (ONE, SWEEP):
        done = shell.run("run", scenario(text), "--out", str(folder), "-q", prefix=(*prefix, mounted, "sh"))
        one_line(done, str(folder), "Read-only file system", "[results.unwritable]")


@pytest.mark.parametrize("option", ["--out", "--csv"])
def test_reports(shell, file, option):
    run = fake_results.run(shell.folder / "run", packets=100)
    done = shell.run("report", str(run), option, str(file / "below"))
    one_line(done, str(file / "below"), "[report.unwritable]")


def test_comparisons_and_benchmarks(shell, file):
    run = str(fake_results.run(shell.folder / "run", packets=100))
    target = str(file / "below.json")
    one_line(shell.run("compare", run, run, "--json", target), target, "--json", "[json.unwritable]")
    one_line(shell.run("bench", "chain", "--json", target), target, "--json", "[json.unwritable]")


def test_images(shell, file):
    target = str(file / "below" / "own.oci")
    one_line(shell.run("image", "make", target, "sh"), target, "[image.write]", code=3)


@pytest.mark.world
def test_experiments(shell, file):
    done = shell.run("experiment", "run", "mtu-study", "--quick", "--out", str(file / "below"))
    one_line(done, str(file / "below"), "[results.unwritable]")


@pytest.mark.parametrize(
    "words",
    [("check", "SCENARIO"), ("schema",), ("experiment", "list"), ("bench", "list"), ("report", "RUN")],
)
def test_a_full_output(shell, scenario, words):
    paths = {
        "SCENARIO": scenario(ONE),
        "RUN": str(fake_results.run(shell.folder / "run", packets=100)) if "RUN" in words else "",
    }
    prefix = ("sh", "-c", 'exec "$@" > /dev/full', "sh")
    done = shell.run(*(paths.get(word, word) for word in words), prefix=prefix)
    one_line(done, "No space left on device", "[output.unwritable]")


@pytest.mark.parametrize("words", [("schema",), ("--help",)])
def test_a_reader_that_goes_away(shell, words):
    process = shell.start(*words)
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert errors == ""
    assert process.returncode == 1
