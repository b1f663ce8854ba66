"""The files of the cookbook pass the check, and the quick ones do what the page says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airloom.cli import app
from helpers import REPOSITORY

FOLDER = REPOSITORY / "examples" / "cookbook"
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())

pytestmark = pytest.mark.world


def test_the_page_names_every_file_and_no_other() -> None:
    page = (REPOSITORY / "docs" / "guide" / "cookbook.md").read_text(encoding="utf-8")
    table = page.partition("\n## ")[0]
    named = {word for word in table.split("`")[1::2] if "." in word and "/" not in word}
    assert named == {path.name for path in FILES}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_scenario_passes_the_check(tmp_path: Path, path: Path) -> None:
    command = CliRunner()
    words: list[str] = []
    if path.stem == "containers":
        image = tmp_path / "own.oci"
        assert command.invoke(app, ["image", "make", str(image), "sh", "python3"]).exit_code == 0
        words = ["--set", f"image={image}"]
    done = command.invoke(app, ["check", str(path), *words])
    assert done.exit_code == 0, done.output


@dataclass(frozen=True)
class Short:
    """A short form of a recipe: changed settings, a program that it needs, and a figure of its result."""

    settings: tuple[str, ...]
    needs: str
    figure: tuple[str, str]
    least: float


SHORT = {
    "bufferbloat": Short(
        ("repetitions=1", "sweep={}", "measurements[load].test.duration=1 s"),
        "iperf3", ("load", "throughput"), 1e6,
    ),
    "campus": Short(
        (
            "events[0].at=14 s", "events[1].at=15 s",
            "measurements[flow].traffic.at=13 s", "measurements[flow].traffic.duration=2 s",
        ),
        "/usr/lib/frr/ospfd", ("flow", "received"), 1,
    ),
    "cellular": Short(
        ("measurements[rtt].ping.count=5", "measurements[download].iperf3.duration=1 s"),
        "iperf3", ("download", "throughput"), 1e5,
    ),
    "manet": Short(
        ("measurements[reach].ping.count=5", "measurements[reach].ping.at=1 s"),
        "babeld", ("reach", "transmitted"), 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
def test_a_short_form_of_a_recipe_runs(shell, name: str) -> None:
    short = SHORT[name]
    if shutil.which(short.needs) is None:
        pytest.skip(f"no {short.needs}")
    words = [word for setting in short.settings for word in ("--set", setting)]
    done = shell.run("run", str(FOLDER / f"{name}.yaml"), "--out", "out", "-q", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((shell.folder / "out" / "result.json").read_text())["measurements"]
    (value,) = [one["mean"] for one in found if (one["name"], one["metric"]) == short.figure]
    assert value >= short.least
    shell.gone()


@pytest.mark.skipif(shutil.which("linux.uml") is None, reason="no linux.uml")
def test_a_guest_fetches_a_file_from_a_container(shell) -> None:
    assert shell.run("image", "make", "own.oci", "sh", "python3").returncode == 0
    image = f"image={shell.folder / 'own.oci'}"
    done = shell.run("run", str(FOLDER / "containers.yaml"), "--set", image, "--out", "out", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    programs = json.loads((shell.folder / "out" / "details.json").read_text())["programs"]
    assert [one["exit"] for one in programs if one["name"] == "fetch"] == [0]
    shell.gone()


def test_slices_keep_apart_and_their_report_has_every_form(shell) -> None:
    done = shell.run("run", str(FOLDER / "slices.yaml"), "--out", "out", "-q")
    assert done.returncode == 0, done.stderr
    assert json.loads((shell.folder / "out" / "result.json").read_text())["claims"][0]["outcome"] != "fails"
    done = shell.run("report", "out", "--png", "png", "--csv", "csv")
    assert done.returncode == 0, done.stderr
    assert list((shell.folder / "csv").glob("*.csv"))
    shell.gone()


def test_a_laboratory_grows_while_it_runs(shell) -> None:
    script = (FOLDER / "growing.sh").read_text().partition("<<END\n")[2].removesuffix("END\n")
    done = shell.run(
        "up", str(FOLDER / "office.yaml"), "--out", "out", input=script.replace("$here", str(FOLDER))
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 received" in done.stdout
    assert "6 of 6 received" in done.stdout
    assert done.stdout.count("+ node desk2: netns, eth0 10.0.0.3/24") == 2
    shell.gone()


def test_a_script_for_mininet(shell) -> None:
    done = shell.run("mn-run", str(FOLDER / "mininet_script.py"))
    assert done.returncode == 0, done.stderr
    assert "loss 0 %" in done.stdout


def test_frames_of_pandas() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "pandas_frames.py")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "links[wire].delay" in done.stdout
    assert "1 ms" in done.stdout


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sh")), ids=lambda path: path.stem)
def test_a_shell_script_can_be_parsed(path: Path) -> None:
    done = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
