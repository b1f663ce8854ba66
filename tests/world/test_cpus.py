"""Processors and scheduling of nodes: what the kernel does with them, and what the result says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from airloom.errors import ScenarioError
from airloom.nodes.kinds.uml import UmlKind
from airloom.nodes.process import scheduling
from airloom.nodes.process.supervisor import Supervisor
from helpers.nodes import eventually

pytestmark = pytest.mark.world
BUSY = "while :; do :; done"
ENOUGH = 60
"""Clock ticks of processor time of both busy loops together, then their ratio counts."""


def busy_times(folder: Path, cpus: dict[str, Any]) -> tuple[list[float], airloom.Lab]:
    """Processor time of busy loops in two nodes, in ticks, over the same time."""
    said = {
        "name": "cpus",
        "nodes": {name: {"cpus": one} for name, one in cpus.items()},
        "links": [{"ends": list(cpus)}],
    }
    with airloom.Lab(Scenario.model_validate(said), out=folder) as lab:
        for name in cpus:
            lab[name].start(BUSY, name="busy")
        before = [ticks(lab, name) for name in cpus]

        def used() -> list[float]:
            return [ticks(lab, name) - was for name, was in zip(cpus, before, strict=True)]

        eventually(lambda: sum(used()) >= ENOUGH, "the loops get processor time")
        found = used()
    return found, lab


def ticks(lab: airloom.Lab, name: str) -> float:
    """Fields 14 and 15 of /proc/PID/stat (proc_pid_stat(5)), of all processes of a node."""
    total = 0
    for task in lab._one.world.nodes[name].tasks():  # type: ignore[union-attr, attr-defined]
        try:
            fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total


@pytest.mark.measures
def test_two_nodes_on_one_processor_get_half_each(tmp_path: Path) -> None:
    (a, b), lab = busy_times(tmp_path / "out", {"a": {"shared": "pair"}, "b": {"shared": "pair"}})
    assert 0.4 <= a / (a + b) <= 0.6
    one = max(os.sched_getaffinity(0))
    said = f"processor {one}; policy other; nice 0"
    assert lab.result.result.in_force["nodes[a].cpus"] == lab.result.result.in_force["nodes[b].cpus"] == said


@pytest.mark.measures
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for control groups")
def test_a_share_of_three_gets_three_quarters(tmp_path: Path) -> None:
    wishes = {"a": {"shared": "pair", "share": 3}, "b": {"shared": "pair"}}
    (a, b), lab = busy_times(tmp_path / "out", wishes)
    assert 0.67 <= a / (a + b) <= 0.83
    weight = lab.result.result.in_force["nodes[a].cpus"].partition("; share 3: ")[2]
    assert weight.startswith(("cpu.weight 300 ", "cpu.shares 3072 "))


@pytest.mark.parametrize("kind", ["netns", "native"])
def test_policy_nice_and_the_engine_are_read_back(tmp_path: Path, kind: str) -> None:
    last = max(os.sched_getaffinity(0))
    said = {
        "name": "cpus",
        "kind": kind,
        "cpus": {"processors": last, "policy": "batch", "nice": 4},
        "nodes": {"a": {}, "b": {"cpus": {"policy": "idle"}}},
        "links": [{"ends": ["a", "b"]}],
        "programs": [{"node": name, "run": "true"} for name in "ab"],
    }
    result = airloom.run(Scenario.model_validate(said), out=tmp_path / "out")
    assert result.result.in_force["nodes[a].cpus"] == f"processor {last}; policy batch; nice 4"
    assert "policy idle; nice 0" in result.result.in_force["nodes[b].cpus"]
    assert result.result.in_force["engine.cpus"].startswith(f"processor {last}; policy ")


@pytest.mark.parametrize(
    ("asked", "kernel"),
    [
        ({"policy": "other", "nice": 3}, "policy other; nice 3"),
        ({"policy": "fifo", "priority": 7}, "policy fifo 7; nice 0"),
    ],
)
def test_the_scheduling_of_the_engine_is_read_back(
    tmp_path: Path, asked: dict[str, Any], kernel: str
) -> None:
    said = {"name": "cpus", "nodes": {"a": {}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    with airloom.Lab(
        Scenario.model_validate({**said, "engine": {"cpus": asked}}), out=tmp_path / "out"
    ) as lab:
        assert lab["a"].run("ping -c 1 b").ok
    assert lab.result.result.in_force["engine.cpus"].endswith(f"; {kernel}")


@pytest.mark.skipif(bool(UmlKind.lacks()), reason="no User Mode Linux")
def test_all_threads_of_a_guest_are_on_its_processor(tmp_path: Path) -> None:
    first = min(os.sched_getaffinity(0))
    said = {
        "name": "cpus",
        "kind": "uml",
        "guests": {"box": {"cpus": {"processors": first, "nice": 3}}},
        "nodes": {"a": {"inside": "box"}, "b": {"cpus": first}},
        "links": [{"ends": ["a", "b"]}],
    }
    with airloom.Lab(Scenario.model_validate(said), out=tmp_path / "out") as lab:
        machine = lab._one.world.guests["box"]  # type: ignore[union-attr]
        tasks = machine.tasks()
        assert len(tasks) > 2
        assert {one.processors for one in scheduling.of_tasks(tasks)} == {(first,)}
    assert lab.result.result.in_force["guests[box].cpus"] == f"processor {first}; policy other; nice 3"
    assert "nodes[a].cpus" not in lab.result.result.in_force


def without_groups(monkeypatch: pytest.MonkeyPatch, *, by_session: bool) -> None:
    monkeypatch.setattr(Supervisor, "why_no_shares", lambda self: "no control groups")
    monkeypatch.setattr(scheduling, "groups_sessions", lambda: by_session)


SHARES = {
    "name": "cpus",
    "nodes": {"a": {"cpus": {"share": 3}}, "b": {}},
    "links": [{"ends": ["a", "b"]}],
    "programs": [{"node": name, "run": "true"} for name in "ab"],
}


def test_without_control_groups_nice_values_hold_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_groups(monkeypatch, by_session=False)
    result = airloom.run(Scenario.model_validate(SHARES), out=tmp_path / "out")
    assert "nice 0; share 3: by nice values" in result.result.in_force["nodes[a].cpus"]
    assert "nice 5; share 1: by nice values" in result.result.in_force["nodes[b].cpus"]
    assert any(note.startswith("shares of processors are held by nice") for note in result.verdict.notes)


def test_a_share_that_nothing_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_groups(monkeypatch, by_session=True)
    with pytest.raises(ScenarioError, match=r"nodes a, b: a share .*sched_autogroup_enabled") as caught:
        airloom.run(Scenario.model_validate(SHARES), out=tmp_path / "out")
    assert (caught.value.exit_code, caught.value.code) == (2, "cpus.share")
