"""Shares of a processor: what a run says of one that was not held."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import airloom
from airloom import Scenario

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have shares of processors"),
]
BUSY = "while :; do :; done"


def result_of(folder: Path, lifted: bool) -> airloom.results.Verdict:
    """The verdict on a node with a tenth of a processor that wants all of it, and may get it."""
    said = {"name": "share", "nodes": {"a": {"cpu": "10 %"}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    with airloom.Lab(Scenario.model_validate(said), out=folder) as lab:
        busy = lab["a"].start(BUSY, name="busy")
        if lifted:
            for path, free in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max 100000")):
                for limit in limits(lab, path):
                    limit.write_text(free)
        time.sleep(5)
        busy.stop()
    return lab.result.verdict


def limits(lab: airloom.Lab, name: str) -> list[Path]:
    supervisor = lab._one.world.supervisor_pid  # type: ignore[union-attr]
    found = [
        Path(place)
        for place, _, _ in os.walk("/sys/fs/cgroup")
        if Path(place).parent.name.startswith(f"airloom-{supervisor}-")
    ]
    return [group / name for group in found if (group / name).exists()]


def test_a_share_that_was_not_held_degrades_the_run_and_is_not_said_to_be_used_up(tmp_path: Path) -> None:
    verdict = result_of(tmp_path / "out", lifted=True)
    assert "node.share" in verdict.codes
    (reason,) = [one for one in verdict.reasons if "the share was not held" in one]
    assert reason.startswith("node a used")
    assert not any("used up the processor share" in note for note in verdict.notes)


def test_a_share_that_was_held_is_a_note(tmp_path: Path) -> None:
    verdict = result_of(tmp_path / "out", lifted=False)
    assert "node.share" not in verdict.codes
    assert any(note.startswith("node a used up the processor share") for note in verdict.notes)
