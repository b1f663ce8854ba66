"""Links that are up in intervals become timed events of the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.planning.gate import check
from airloom.planning.timed_changes import link_changes
from airloom.scenario import read


def changes(visibility: str, more: str = "") -> list[tuple[float, bool]]:
    """Times in s, and True for up."""
    text = (
        f"name: x\nnodes: {{sat: , ground: }}\nlinks: [{{ends: [sat, ground], visibility: {visibility}}}]\n"
    )
    (plan,) = check(read(text + more)).plans
    return [(change.at / 1e9, change.up is True) for change in link_changes(plan)]


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        ("[[0 s, 90 s]]", [(90, False)]),
        ("[[2 s, 3 s]]", [(0, False), (2, True), (3, False)]),
        ("[[0 s, 1 s], [2 s, 3 s]]", [(1, False), (2, True), (3, False)]),
        ("[[0 s, 1 s], [1 s, 3 s]]", [(3, False)]),
    ],
)
def test_a_link_is_up_in_its_intervals_and_down_otherwise(visibility: str, expected: Any) -> None:
    assert changes(visibility) == expected


def test_a_trace_may_be_longer_than_the_run() -> None:
    assert changes("[[0 s, 1 s], [2 s, 9 s], [12 s, 13 s]]", "duration: 8 s\n") == [(1, False), (2, True)]


def test_intervals_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "passes"
    file.write_text("# rise, set\n0 s, 90 s\n\n2 min, 200 s   # the second pass\n")
    assert changes(str(file)) == [(90, False), (120, True), (200, False)]


def test_the_checked_scenario_holds_the_intervals_as_events(tmp_path: Path) -> None:
    file = tmp_path / "passes"
    file.write_text("1 s, 2 s\n")
    text = f"name: x\nnodes: {{a: , b: }}\nlinks: [{{ends: [a, b], visibility: {file}}}]\n"
    (plan,) = check(read(text)).plans
    file.unlink()
    (again,) = check(read(plan.scenario.to_yaml())).plans
    assert link_changes(again) == link_changes(plan)
    assert len(link_changes(again)) == 3
