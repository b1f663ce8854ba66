"""Every shipped experiment runs in its smallest extent, to a table, figures and a verdict."""

from __future__ import annotations

import inspect
import json

import pytest

from airloom.experiments import registry
from airloom.report import figures
from helpers import REPOSITORY

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

NAMES = sorted(path.parent.name for path in (REPOSITORY / "experiments").glob("*/experiment.py"))
PUBLISHED = "net-kinds-wired"
"""The one whose results are published: drawing the figures of all would take a minute."""

WITHOUT_VALUES = {
    # The machine of a guest has memory and switches of its own, a namespace has none.
    "orbit-cpu": {
        f"{figure}: netns, {which}" for figure in ("memory", "switches") for which in ("first", "second")
    },
    # A variance over seconds needs more seconds than the smallest extent has.
    "orbit-udp-load": {
        f"variance-1-s: {line}"
        for line in ("native: one flow", "two slices of netns", "two slices of netns, in turns of 100 ms")
    },
}
"""Lines of figures without any value, in the smallest extent and of namespaces."""


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_to_a_table_figures_and_a_verdict(shell, name: str) -> None:
    selectable = "kinds" in inspect.signature(registry.find(name).load()).parameters
    kind = ("--kind", "netns") if selectable else ()
    done = shell.run("experiment", "run", name, "--smoke", *kind, "--out", "results")
    if done.returncode == 3:
        pytest.skip(f"this machine lacks something: {done.stderr}")
    assert done.returncode == 0, done.stderr
    folder = shell.folder / "results"
    result = json.loads((folder / "result.json").read_text())
    assert "─ verdict ─" in done.stdout
    failed = {"experiment.failed-run", "experiment.empty"} & set(result["verdict"]["codes"])
    assert not failed, result["verdict"]["reasons"]
    assert [one for one in result["measurements"] if one["mean"] is not None]
    assert result["claims"]
    empty = {
        f"{one.name}: {line.label}"
        for one in figures.load(folder)
        for line in one.lines
        if line.role in ("measured", "reference") and line.is_empty
    }
    assert empty == WITHOUT_VALUES.get(name, set())
    shell.gone()
    if name != PUBLISHED:
        return
    refused = shell.run("experiment", "publish", name, "results", "--to", "page")
    assert refused.returncode == 2
    assert "they are of the smoke form" in refused.stderr
    assert shell.run("experiment", "publish", name, "results", "--to", "page", "--anyway").returncode == 0
    page = (shell.folder / "page" / "README.md").read_text()
    assert "smoke form" in page
    assert "airloom experiment run net-kinds-wired --smoke --kind netns" in page


def test_two_extents_at_once_are_refused(shell) -> None:
    done = shell.run("experiment", "run", NAMES[0], "--smoke", "--quick")
    assert done.returncode == 2
    assert "--quick and --smoke exclude each other" in done.stderr
