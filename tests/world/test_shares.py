"""Shares of a processor: what a run says of one that was not held."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from airloom.results import Verdict
from helpers.nodes import cgroups, eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have shares of processors"),
]
BUSY = "while :; do :; done"


def result_of(folder: Path, seen: Callable[[Verdict], bool], lifted: bool) -> Verdict:
    """The verdict on a node with a tenth of a processor that wants all of it, and may get it.

    The node runs until the verdict so far has ``seen`` it.
    """
    said = {"name": "share", "nodes": {"a": {"cpu": "10 %"}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    with airloom.Lab(Scenario.model_validate(said), out=folder) as lab:
        busy = lab["a"].start(BUSY, name="busy")
        if lifted:
            for path, free in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max 100000")):
                for limit in limits(lab, path):
                    limit.write_text(free)
        eventually(lambda: seen(lab.verdict()), "the verdict says what became of the share")
        busy.stop()
    return lab.result.verdict


def limits(lab: airloom.Lab, name: str) -> list[Path]:
    supervisor = lab._one.world.supervisor_pid  # type: ignore[union-attr]
    found = [group for group in cgroups() if group.parent.name.startswith(f"airloom-{supervisor}-")]
    return [group / name for group in found if (group / name).exists()]


def test_a_share_that_was_not_held_degrades_the_run_and_is_not_said_to_be_used_up(tmp_path: Path) -> None:
    verdict = result_of(tmp_path / "out", lambda so_far: "node.share" in so_far.codes, lifted=True)
    (reason,) = [one for one in verdict.reasons if "the share was not held" in one]
    assert reason.startswith("node a used")
    assert not any("used up the processor share" in note for note in verdict.notes)


def used_up(verdict: Verdict) -> bool:
    return any(note.startswith("node a used up the processor share") for note in verdict.notes)


def test_a_share_that_was_held_is_a_note(tmp_path: Path) -> None:
    verdict = result_of(tmp_path / "out", used_up, lifted=False)
    assert "node.share" not in verdict.codes
    assert used_up(verdict)
