"""Guests that take turns: never do two of them run at once, and the verdict does not accuse the run of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from airloom.errors import RunError
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kinds.uml import UmlKind
from helpers.leftovers import Traces
from helpers.nodes import eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(bool(UmlKind.lacks()), reason="sudo apt-get install user-mode-linux"),
]
SECOND = 1_000_000_000


def pair(turns: dict[str, Any], **more: Any) -> Scenario:
    """Two guests that take turns, each joined to a node on the host's kernel, which always runs."""
    return Scenario.model_validate(
        {
            "name": "turns",
            "nodes": {"a": {"kind": "uml"}, "b": {"kind": "uml"}, "c": {}},
            "links": [{"ends": ["a", "c"]}, {"ends": ["b", "c"]}],
            "turns": {"t": {"nodes": ["a", "b"], **turns}},
            **more,
        }
    )


def flow(name: str, to: str = "c") -> dict[str, Any]:
    said = {"from": name, "to": to, "rate": "2 Mbit/s", "size": "500 B", "duration": "3500 ms", "at": "0.2 s"}
    return {"name": name, "traffic": said}


def lost(run: airloom.RunResult) -> dict[str, float | None]:
    return {one.name: one.mean for one in run.figures if one.metric == "lost"}


def accused(run: airloom.RunResult) -> list[str]:
    """Reasons of the verdict that only the turns could have."""
    return [
        one.sentence
        for one in run.result.verdict.causes
        if one.code == "measure.stopped" or "guest-ring-full" in one.sentence
    ]


def changes(run: airloom.RunResult, begin: float, end: float) -> int:
    """How often a packet of the other flow follows in a time of the run, in s."""
    arrivals = sorted(
        (int(at), name) for name in "ab" for at in run.samples(name, "delay").t_ns
        if begin * SECOND <= at < end * SECOND
    )  # fmt: skip
    assert {name for _, name in arrivals} == {"a", "b"}
    return sum(one != other for (_, one), (_, other) in pairwise(arrivals))


@pytest.mark.parametrize("network", ["vhost", "tap"])
def test_only_the_guest_whose_turn_it_is_runs(network: str, tmp_path: Path) -> None:
    events = [{"at": f"{at} s", "turns": "t", "action": do} for at, do in ((1, "start"), (3, "stop"))]
    said = pair(
        {"quantum": "200 ms", "active": False}, events=events, measurements=[flow("a"), flow("b")],
        guest={"network": network},
    )  # fmt: skip
    run = airloom.run(said, out=tmp_path / "out")
    # 500 packets/s of each flow: those of two that run at once mix.
    assert changes(run, 0.3, 0.9) > 50
    assert changes(run, 1.1, 2.9) <= 10
    assert changes(run, 3.2, 3.6) > 30
    assert lost(run) == {"a": 0, "b": 0}
    verdict = run.result.verdict
    assert not accused(run)
    paced = [one.sentence for one in verdict.causes if one.code == "traffic.pacing"]
    assert all("(limit 221 ms)" in one for one in paced), "a source may be late by a turn of the other"
    (note,) = [one for one in verdict.notes if one.startswith("turns t: ")]
    assert "a and b took 1" in note
    assert "were frozen between them" in note


def test_what_is_sent_to_a_guest_waits_for_its_turn_without_control_groups_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airloom.nodes.kinds.netns.Group", lambda *_: None)
    flows = [
        {"name": f"to-{name}", "traffic": flow("c", name)["traffic"] | {"duration": "2 s"}} for name in "ab"
    ]
    run = airloom.run(pair({"quantum": "200 ms"}, measurements=flows), out=tmp_path / "out")
    for name in "ab":
        delays = run.samples(f"to-{name}", "delay").value
        assert (delays > 100_000_000).mean() > 0.15, "half of the time it waits, on average 100 ms"
    assert lost(run) == {"to-a": 0, "to-b": 0}
    assert not accused(run)


def test_guests_in_turns_are_stopped_started_and_paused_like_others(tmp_path: Path) -> None:
    with airloom.Lab(pair({"quantum": "500 ms"}), out=tmp_path / "out") as up:
        a, b = up["a"], up["b"]
        eventually(lambda: bool(frozen(a) or frozen(b)), "nobody waits for a turn")
        assert a.run("echo on", timeout=60).stdout == "on\n"
        a.pause()
        assert b.run("echo on", timeout=60).stdout == "on\n"
        a.resume()
        # Its programs end as ordered, although it may be another one's turn.
        program = a.start("trap 'echo ended; exit' TERM; echo ready; while :; do sleep 0.1; done")
        eventually(lambda: "ready" in program.output, "the program does not start")
        a.stop()
        assert "ended" in program.output
        assert (a.state, b.run("echo on", timeout=60).stdout) == ("stopped", "on\n")
        a.restart()
        assert a.run("echo again", timeout=60).stdout == "again\n"
        b.kill()
        assert a.run("echo on", timeout=60).stdout == "on\n"


def frozen(node: Any) -> bool:
    """Whether the machine of a guest is frozen, as the kernel says."""
    handle = node._handle
    assert isinstance(handle, GuestNode)
    group = handle._group
    if group is not None:
        return "frozen 1" in (group.unified / "cgroup.events").read_text()
    status = Path(f"/proc/{handle.processes()[0]}/status").read_text()
    return "State:\tT" in status


@contextlib.contextmanager
def failing_lab(said: Scenario, folder: Path, why: str) -> Iterator[airloom.Lab]:
    """One that says at its end that a node has failed."""
    with pytest.raises(RunError, match=why), airloom.Lab(said, out=folder) as up:
        yield up


def test_a_guest_that_dies_before_its_turn_fails_the_run(tmp_path: Path) -> None:
    with failing_lab(pair({"quantum": "1 s"}), tmp_path / "out", "node a failed") as up:
        eventually(lambda: frozen(up["a"]), "it does not wait for its turn")
        os.kill(up["a"]._handle.processes()[0], signal.SIGKILL)  # type: ignore[attr-defined]
        eventually(lambda: up["a"].state == "failed", "it does not fail")


CONTROLLER = """
import sys, time, airloom
from airloom import Scenario
with airloom.Lab(Scenario.model_validate_json(sys.argv[1]), out=sys.argv[2]) as lab:
    lab["a"].start("while :; do :; done")
    print("up", flush=True)
    time.sleep(1000)
"""


def test_kill_9_of_the_controller_leaves_nothing_frozen(tmp_path: Path) -> None:
    said = pair({"quantum": "1 s"}).model_dump_json(by_alias=True, exclude_defaults=True)
    command = [sys.executable, "-c", CONTROLLER, said, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        try:
            assert controller.stdout is not None
            assert controller.stdout.readline() == "up\n"
            traces = Traces.of(controller.pid, tmp_path)
            machines = [
                pid for pid in traces.processes if "umid=" in Path(f"/proc/{pid}/cmdline").read_text()
            ]
            assert machines
        finally:
            controller.kill()
    traces.wait_gone()
