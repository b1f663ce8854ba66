"""What a Tab loads: everything that a completion imports delays the user's next key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airloom.cli import scenario_keys
from helpers import REPOSITORY

HEAVY = ("pydantic", "rich", "numpy", "pandas", "pyroute2", "networkx")
"""Each takes a tenth of a second or more."""
CODE = (
    "import sys\n"
    "from airloom.cli import main\n"
    "try:\n"
    "    main()\n"
    "finally:\n"
    "    print('loaded', *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
)


def answered(
    words: list[str], cache: Path, shell: str = "", folder: Path | None = None
) -> tuple[str, set[str]]:
    """Runs the command in a process of its own; returns its output and the packages that it loaded."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    if shell == "bash":
        env |= {"_AIRLOOM_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("airloom", *words))}
        env["COMP_CWORD"] = str(len(words))
    elif shell:
        env |= {
            "_AIRLOOM_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": f"airloom {' '.join(words)}",
        }
        env["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    command = [sys.executable, "-c", CODE, *([] if shell else words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    marked = [line for line in done.stderr.splitlines() if line.startswith("loaded ")]
    return done.stdout, set(marked[-1].split()[1:])


def test_the_version_loads_no_package(tmp_path: Path) -> None:
    said, loaded = answered(["--version"], tmp_path)
    assert said.startswith("airloom ")
    assert loaded.isdisjoint({*HEAVY, "typer", "yaml", "inspect"})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ru"], "run"),
        (["run", "--s"], "--set"),
        (["experiment", "run", "net-wired"], "net-wired-chain"),
        (["bench", "med"], "medium"),
        (["calibrate", "um"], "uml"),
        (["exec", "--lab", ""], ""),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_completion_loads_little(shell: str, words: list[str], offered: str, tmp_path: Path) -> None:
    said, loaded = answered(words, tmp_path, shell)
    assert offered in said
    assert loaded.isdisjoint(HEAVY)


def test_the_keys_of_scenarios_are_kept(tmp_path: Path) -> None:
    words = ["run", "--set", "limits.late"]
    first, _ = answered(words, tmp_path, "bash")
    said, loaded = answered(words, tmp_path, "bash")
    assert "limits.lateness_p99=" in said.split()
    assert said == first
    assert loaded.isdisjoint(HEAVY)


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "net.yaml"
    file.write_text(
        "name: net\nnodes: {h1: {cpu: 0.5}, h2: {}}\n"
        "links:\n- {ends: [h1, h2]}\n- {name: up, ends: [h2, h1]}\n"
    )
    return str(file)


def words(incomplete: str, file: str | None) -> list[str]:
    return [word for word, _ in scenario_keys.offered(incomplete, file)]


def test_names_are_those_of_the_file(scenario: str) -> None:
    assert words("nodes.", scenario) == ["nodes.h1.", "nodes.h2."]
    assert words("links[", scenario) == ["links[h1-h2].", "links[up].", "links[*]."]
    assert "links[up].delay=" in words("links[up].de", scenario)
    assert words("nodes.h1.cp", scenario) == ["nodes.h1.cpu=", "nodes.h1.cpus."]


def test_without_a_file_elements_have_numbers(scenario: str) -> None:
    assert words("links[", None) == ["links[0].", "links[*]."]
    assert words("nodes.", None) == []


def test_the_only_way_on_is_gone(scenario: str) -> None:
    """The shell adds a space behind an only word, so that it is no prefix of a path any more."""
    assert words("nod", scenario) == ["nodes.h1.", "nodes.h2."]
    assert "links[0].queue.discipline=" in words("links[0].que", scenario)


def test_each_key_has_its_description(scenario: str) -> None:
    said = dict(scenario_keys.offered("links[0].", scenario))
    assert "rate" in said["links[0].rate="]


@pytest.mark.parametrize("content", ["a: [", "[1, 2]", "- x", "\0", "a: &a [*a]", "nodes: 3\nlinks: {}"])
def test_a_file_that_is_no_scenario_offers_the_model(content: str, scenario: str) -> None:
    Path(scenario).write_text(content)
    assert "links[0].rate=" in words("links[0].r", scenario)
    assert words("nodes.", scenario) == []


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"of": 1}', '{"of": "x", "schema": {}}'])
def test_a_broken_or_old_cache_is_made_again(kept: str, scenario: str) -> None:
    whole = scenario_keys.schema()
    place = Path(scenario).parent / "airloom" / "completion" / "schema.json"
    assert json.loads(place.read_text())["schema"] == whole
    place.write_text(kept)
    assert scenario_keys.schema() == whole
    assert json.loads(place.read_text())["schema"] == whole


def test_paths_of_the_examples_are_those_that_set_takes(scenario: str) -> None:
    """Every offered path of a real file selects something."""
    import yaml

    from airloom.scenario import paths

    file = REPOSITORY / "examples" / "chain.yaml"
    data = yaml.safe_load(file.read_text())
    for word in words("measurements[", str(file)):
        for path in words(word, str(file)):
            if path.endswith("="):
                assert paths.resolve(data, path[:-1], "--set")
