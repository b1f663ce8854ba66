"""What the shell offers for half-written words, and the manual page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airloom import bench
from airloom.cli import app, manual, tree
from airloom.experiments import registry


def offered(*words: str) -> list[str]:
    """What bash is told for the last word, as the script of ``--show-completion`` asks."""
    env = {"_AIRLOOM_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words))}
    env["COMP_WORDS"] = " ".join(("airloom", *words))
    done = CliRunner().invoke(app, [], prog_name="airloom", env=env)
    assert done.exit_code == 0, done.output
    return done.output.split()


def test_experiments_are_offered() -> None:
    every = sorted(registry.discover())
    assert offered("experiment", "run", "") == every
    assert offered("experiment", "run", "mtu-s") == ["mtu-study"]


def test_benchmarks_are_offered() -> None:
    assert set(offered("bench", "")) == {*bench.names(), "all", "list"}
    assert offered("bench", "med") == ["medium"]


@pytest.mark.parametrize("words", [("calibrate", "um"), ("experiment", "run", "orbit-cpu", "--kind", "um")])
def test_kinds_are_offered(words: tuple[str, ...]) -> None:
    assert offered(*words) == ["uml"]


def test_the_last_kind_of_a_list_is_offered() -> None:
    assert offered("compare", "x.yaml", "--kinds", "netns,um") == ["netns,uml"]
    assert "uml,uml" not in offered("compare", "x.yaml", "--kinds", "uml,")


def test_what_a_radio_can_be_told_is_offered() -> None:
    assert offered("radio", "s") == ["scan", "station", "set"]
    assert offered("radio", "set", "p") == ["power"]


def test_without_a_laboratory_no_node_is_offered() -> None:
    assert offered("exec", "--lab", "no such laboratory", "h") == []
    assert offered("capture", "--lab", "no such laboratory", "h") == []


def test_options_are_offered() -> None:
    assert "--lab" in offered("exec", "--l")


def test_the_manual_page_has_every_command() -> None:
    page = manual.page()
    for command in ("run", "exec", "bench", "experiment run", "image make"):
        assert f'.SS "airloom {command} [options]' in page
    assert "\\-\\-install\\-completion" in page


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man: apt-get install man-db")
def test_man_shows_the_manual_page_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "airloom.1").write_text(manual.page(), encoding="utf-8")
    command = ["man", "--warnings", "-l", str(tmp_path / "airloom.1")]
    env = {**os.environ, "MANROFFOPT": "", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stderr == ""
    assert "EXIT STATUS" in done.stdout


def test_the_manual_page_needs_nothing_but_the_command_line() -> None:
    heavy = (
        "[name for name in sys.modules if name.partition('.')[0] in ('pydantic', 'numpy', 'yaml', 'rich')]"
    )
    code = f"import sys; from airloom.cli import manual; manual.page(); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", sorted(tree.group().commands))
def test_a_command_made_alone_is_as_among_all(name: str) -> None:
    (alone,) = tree.group_for([name, "--help"]).commands.values()
    every = tree.group().commands[name]
    assert (alone.name, alone.help) == (name, every.help)
    assert [one.opts for one in alone.params] == [one.opts for one in every.params]
    assert getattr(alone, "commands", {}).keys() == getattr(every, "commands", {}).keys()


@pytest.mark.parametrize("words", [[], ["--version"], ["chek"]], ids=str)
def test_without_a_command_all_are_made(words: list[str]) -> None:
    assert tree.group_for(words) is tree.group()


def test_the_names_of_commands_have_the_help_of_the_commands() -> None:
    every = tree.group().commands
    named = tree.names_only().commands
    assert named.keys() == every.keys()
    for name, command in named.items():
        assert command.get_short_help_str() == every[name].get_short_help_str(), name
