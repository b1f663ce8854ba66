"""How shared guests end: by themselves, one of several, and with a controller that is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import RunError, Scenario
from airloom.nodes.kinds.uml import UmlKind
from helpers.leftovers import Traces, command_line

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]


def two_guests() -> Scenario:
    """``a`` and ``b`` in one guest, ``c`` and ``d`` in another, ``e`` of this system's; all at a switch."""
    for lacking in UmlKind.lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    inside = {"a": "box", "b": "box", "c": "crate", "d": "crate"}
    nodes: dict[str, Any] = {name: {"inside": guest} for name, guest in inside.items()} | {"e": {}}
    return Scenario.model_validate(
        {
            "name": "shared",
            "guests": {"box": {"kind": "uml"}, "crate": {"kind": "uml"}},
            "nodes": nodes,
            "switches": {"s1": {}},
            "links": [{"ends": [name, "s1"]} for name in nodes],
        }
    )


CONTROLLER = """
import sys, time, airloom
from airloom import Scenario
with airloom.Lab(Scenario.model_validate_json(sys.argv[1]), out=sys.argv[2]) as lab:
    lab["a"].start("while :; do :; done")
    lab["b"].pause()
    assert lab["e"].run(["ping", "-c", "4", "-i", "0.4", lab.addresses["d"]], timeout=60).ok
    print("up", flush=True)
    time.sleep(1000)
"""


def test_kill_9_of_the_controller_leaves_nothing_of_shared_guests(tmp_path: Path) -> None:
    said = two_guests().model_dump_json(by_alias=True, exclude_defaults=True)
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", CONTROLLER, said, str(out)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as controller:
        try:
            assert controller.stdout is not None
            assert controller.stdout.readline() == "up\n"
            traces = Traces.of(controller.pid, out)
            told = [command_line(pid) for pid in traces.processes]
            assert sum("umid=" in words for words in told) >= 2
            assert traces.namespaces
            assert traces.sockets
        finally:
            controller.kill()
    traces.wait_gone()
    assert list(temporary.iterdir()) == []


@contextlib.contextmanager
def failing_lab(tmp_path: Path, why: str) -> Iterator[airloom.Lab]:
    """One that says at its end that a node has failed."""
    with pytest.raises(RunError, match=why), airloom.Lab(two_guests(), out=tmp_path / "out") as up:
        yield up


@pytest.mark.skipif(bool(UmlKind.lacks()), reason="sudo apt-get install user-mode-linux")
def test_one_guest_of_several_dies_alone(tmp_path: Path) -> None:
    with failing_lab(tmp_path, "its guest box has ended") as up:
        counts = up["c"].start("while :; do echo x; sleep 0.05; done", name="count")
        handle: Any = up["a"]._handle
        machine = handle.machine.processes()
        assert "umid=box" in command_line(machine[0])
        os.kill(machine[0], signal.SIGKILL)
        until = time.monotonic() + 60
        while {up[name].state for name in "ab"} != {"failed"}:
            assert time.monotonic() < until, "they do not fail"
            time.sleep(0.05)
        assert {name: up[name].state for name in "cde"} == dict.fromkeys("cde", "up")
        before = len(counts.output)
        for source, target in (("c", "d"), ("d", "e"), ("e", "c")):
            assert up[source].run(f"ping -c 4 -i 0.4 -W 2 {target}", timeout=60).ok
        assert len(counts.output) > before
        with pytest.raises(RunError, match=r"node a is failed: its guest box has ended"):
            up["a"].run("true")
        up["a"].restart()
        assert up["a"].run("ping -c 4 -i 0.4 -W 2 c", timeout=60).ok
        assert up["b"].state == "failed"
        up["b"].restart()
        assert up["b"].run("ping -c 4 -i 0.4 -W 2 a", timeout=60).ok
