"""What can be done with a node of any kind while the laboratory is up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from imaging import busybox, oci

import airloom
from airloom import LabError, RunError, Scenario, ScenarioError
from airloom.nodes.world import KINDS
from airloom.scenario.model.base import KindName

pytestmark = pytest.mark.world

KINDS_WITH_PORTS = [name for name in get_args(KindName) if KINDS[name].properties.engine]


@pytest.fixture(params=KINDS_WITH_PORTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a scenario says of a node of the kind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said: dict[str, Any] = {"kind": kind}
    if kind == "container":
        said["image"] = str(oci(tmp_path / "image", [busybox()]))
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    return said


@pytest.fixture
def lab(made: dict[str, Any], tmp_path: Path) -> Iterator[airloom.Lab]:
    """``guest`` of the kind and ``other`` of this system's, beside a switch."""
    scenario = Scenario.model_validate(
        {
            "name": "kinds",
            "nodes": {"guest": made, "other": {}},
            "switches": {"s1": {}},
            "links": [{"ends": ["guest", "s1"], "delay": "1 ms"}, {"ends": ["other", "s1"], "delay": "1 ms"}],
        }
    )
    try:
        with airloom.Lab(scenario, out=tmp_path / "out") as lab:
            assert lab["guest"].run("true", timeout=100).ok  # it has started
            yield lab
    except RunError as error:
        if error.code != "node.failed":  # which some test may have wanted
            raise


def reached(lab: airloom.Lab, target: str = "guest") -> bool:
    return lab["other"].run(f"ping -c 2 -i 0.2 -W 1 {lab.addresses[target]}", timeout=20).ok


def count(log: Path) -> int:
    return len(log.read_text().split())


def test_it_runs_programs_and_answers(lab: airloom.Lab) -> None:
    assert reached(lab)
    done = lab["guest"].run("hostname; exit 3", timeout=30)
    assert (done.stdout, done.code) == ("guest\n", 3)
    assert lab["guest"].counters()["eth0"]["rx_packets"] >= 2
    other = lab.addresses["other"]
    assert lab["guest"].run(f"ping -c 1 -W 5 {other}", timeout=30).ok


def test_it_is_paused_and_goes_on(lab: airloom.Lab, kind: str) -> None:
    program = lab["guest"].start("while :; do echo x; sleep 0.05; done", name="count")
    until = time.monotonic() + 30
    while count(program.log) < 3:
        assert time.monotonic() < until
        time.sleep(0.05)
    lab["guest"].pause()
    assert lab["guest"].state == "paused"
    time.sleep(0.2)  # what was on its way arrives
    before = count(program.log)
    # The network stack is the host's, and goes on, unless the node has a kernel of its own.
    assert reached(lab) == (not KINDS[kind].properties.own_kernel)
    assert count(program.log) == before
    lab["guest"].resume()
    while count(program.log) <= before:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert reached(lab)
    assert lab["guest"].state == "up"


@pytest.mark.parametrize("action", ["stop", "kill"])
def test_it_is_switched_off_and_on(lab: airloom.Lab, action: str) -> None:
    program = lab["guest"].start("sleep 1000")
    lab["guest"].stop() if action == "stop" else lab["guest"].kill()
    assert program.wait(10) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert lab["guest"].state == "stopped"
    assert not reached(lab)
    assert lab["other"].run("true").ok
    with pytest.raises(RunError, match="node guest is stopped"):
        lab["guest"].run("true")
    lab["guest"].restart()
    assert lab["guest"].run("true", timeout=100).ok
    assert reached(lab)


def test_one_more_is_added_while_others_run(lab: airloom.Lab, made: dict[str, Any]) -> None:
    other = lab["other"].start("sleep 1000")
    before = lab.addresses
    node = lab.add("more", links=[{"ends": ["more", "s1"], "delay": "1 ms"}], **made)
    assert node.run(f"ping -c 1 -W 5 {before['guest']}", timeout=100).ok
    assert reached(lab, "more")
    assert other.code is None
    assert {name: lab.addresses[name] for name in before} == before
    with pytest.raises(RunError, match="there is a node more already"):
        lab.add("more")
    with pytest.raises(ScenarioError, match="'other' is no switch or hub"):
        lab.add("third", links=[{"ends": ["third", "other"]}])
    with pytest.raises(LabError, match="unknown key 'knid'"):
        lab.add("third", knid="netns")


def test_events_pause_kill_and_start(made: dict[str, Any], tmp_path: Path, kind: str) -> None:
    guest = KINDS[kind].properties.own_kernel
    scenario = Scenario.model_validate(
        {
            "name": "events",
            "nodes": {"guest": made, "other": {}},
            "links": [{"ends": ["guest", "other"]}],
            "programs": [{"node": "guest", "run": "while :; do echo x; sleep 0.1; done", "name": "count"}],
            "events": [
                {"at": "1 s", "node": "guest", "action": "pause"},
                {"at": "2 s", "node": "guest", "action": "resume"},
                {"at": "3 s", "node": "guest", "action": "kill"},
            ],
            "duration": "4 s",
            "measurements": [
                {"name": "rtt", "ping": {"from": "other", "to": "guest", "count": 12, "interval": "250 ms"}}
            ],
        }
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    (longest,) = [one for one in result.result.measurements if one.metric == "rtt_max"]
    assert longest.mean is not None
    assert (longest.mean > 200e6) == guest
    lines = count(tmp_path / "out/nodes/guest/count.log")
    assert 8 <= lines <= 24  # 10 and 10, had it been for its own time only


def test_a_machine_that_dies_fails_alone(lab: airloom.Lab) -> None:
    world = lab._up().world  # type: ignore[attr-defined]
    os.kill(world.nodes["guest"]._made.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while lab["guest"].state != "failed":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert lab["other"].run("true").ok
    lab["guest"].restart()
    assert lab["guest"].run("true", timeout=100).ok
