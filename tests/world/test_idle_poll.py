"""`engine.idle: poll`: processors do not halt while the emulation runs, and do again afterwards."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from airloom.host.processor_times import processor_ticks
from airloom.runs.emulation import World
from helpers.nodes import eventually

# Beside other tests processor pressure would not be observed.
pytestmark = [pytest.mark.world, pytest.mark.measures]


def scenario(idle: str) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "idle",
            "engine": {"idle": idle},
            "nodes": {"a": {}, "b": {}},
            "links": [{"ends": ["a", "b"]}],
        }
    )


def polling() -> dict[int, set[int]]:
    """Threads of this process that poll: thread, processors."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            if (task / "comm").read_text() == "airloom-idle\n":
                found[int(task.name)] = os.sched_getaffinity(int(task.name))
    return found


def shares(world: World) -> tuple[float, float]:
    """Shares of half a second of all processors: idle, and used by what does not poll."""

    def ticks() -> tuple[int, int, float]:
        stolen, busy, whole = processor_ticks(Path("/proc/stat").read_text())
        return whole - busy - stolen, whole, world.idle_polled() * os.sysconf("SC_CLK_TCK") / 1e9

    before = ticks()
    time.sleep(0.5)
    idle, whole, polled = (after - was for after, was in zip(ticks(), before, strict=True))
    return idle / whole, (whole - idle - polled) / whole


def sleepless(world: World) -> bool:
    """No processor is idle; or others use so much of them that the threads may rest."""
    idle, used = shares(world)
    return idle <= 0.05 or used >= 0.4


def test_no_processor_is_idle_meanwhile(tmp_path: Path) -> None:
    with airloom.Lab(scenario("poll"), out=tmp_path / "out") as lab:
        found = polling()
        assert sorted(found.values(), key=min) == [{one} for one in sorted(os.sched_getaffinity(0))]
        assert {os.sched_getscheduler(thread) for thread in found} == {os.SCHED_IDLE}
        world = lab._one.world  # type: ignore[union-attr]
        eventually(lambda: sleepless(world), "no processor is idle")
        assert lab["a"].run("ping -c 3 -i 0.2 b").ok
    eventually(lambda: not polling(), "the threads end")
    result = lab.result.result
    assert result.in_force["engine.idle"] == "poll"
    assert "host.cpu-pressure" not in result.verdict.codes, "the threads are no shortage"
    unseen = (
        "not observed on this machine: processor pressure of the whole machine, as idle processors polled"
    )
    assert unseen in result.verdict.notes


def test_processors_halt_by_default(tmp_path: Path) -> None:
    with airloom.Lab(scenario("halt"), out=tmp_path / "out") as lab:
        assert not polling()
        assert lab["a"].run("ping -c 1 b").ok
    assert "engine.idle" not in lab.result.result.in_force
