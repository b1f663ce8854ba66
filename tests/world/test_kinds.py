"""What can be done with a node of any kind while the laboratory is up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

import airloom
from airloom import LabError, RunError, Scenario, ScenarioError
from airloom.images import own
from airloom.nodes.all_nodes import KINDS
from airloom.nodes.kinds.uml import kernel_of
from airloom.scenario.kind_names import KindName
from helpers.kernels import BUILT, needs_built
from helpers.leftovers import Traces, command_line
from helpers.nodes import PYTHON, still

pytestmark = pytest.mark.world

ALL = [name for name in get_args(KindName) if KINDS[name].properties.engine]
ALL.append(pytest.param("uml-built", marks=needs_built))
"""Kinds, and the one whose kernel may be of another make."""
PROGRAMS = ["cat", "echo", "env", "hostname", "ping", "rm", "sh", "sleep", "true", PYTHON]
"""Of this machine, that a container has."""
QUICK = [name for name in ALL if name != "qemu"]
"""Those whose machines start within a second; what follows of the way a guest is made is the same in uml."""


def made_of(way: str, folder: Path) -> dict[str, Any]:
    """What a scenario says of a node of a kind."""
    kind = way.partition("-")[0]
    if way != kind:
        return {"kind": kind, "guest": {"kernel": str(BUILT)}}
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    if kind != "container":
        return {"kind": kind}
    own.make(folder / "image", PROGRAMS)
    return {"kind": kind, "image": str(folder / "image")}


@pytest.fixture(scope="module", params=ALL)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return made_of(request.param, tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def kind(made: dict[str, Any]) -> str:
    return str(made["kind"])


@pytest.fixture(scope="module")
def lab(made: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[airloom.Lab]:
    """``guest`` of the kind and ``other`` of this system's, beside a switch; tests leave it as it was."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        if made["kind"] == "container":
            patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with airloom.Lab(beside_a_switch(made), out=folder / "out") as lab:
            assert lab["guest"].run("true", timeout=110).ok  # it has started
            yield lab


def beside_a_switch(made: dict[str, Any]) -> Scenario:
    links = [{"ends": [name, "s1"], "delay": "1 ms"} for name in ("guest", "other")]
    nodes = {"guest": made, "other": {}}
    return Scenario.model_validate({"name": "kinds", "nodes": nodes, "switches": {"s1": {}}, "links": links})


def reached(lab: airloom.Lab, target: str = "guest") -> bool:
    # Long enough for a second request by ARP, if the first one was lost on a busy machine.
    return lab["other"].run(f"ping -c 4 -i 0.4 -W 2 {lab.addresses[target]}", timeout=20).ok


def count(log: Path) -> int:
    return len(log.read_text().split())


@pytest.mark.quick
def test_it_runs_programs_and_answers(lab: airloom.Lab) -> None:
    assert reached(lab)
    done = lab["guest"].run("hostname; exit 3", timeout=30)
    assert (done.stdout, done.code) == ("guest\n", 3)
    assert lab["guest"].counters()["eth0"]["rx_packets"] >= 2
    other = lab.addresses["other"]
    assert lab["guest"].run(f"ping -c 1 -W 5 {other}", timeout=30).ok


def test_ping_keeps_its_interval_from_the_start_of_a_kernel(tmp_path: Path) -> None:
    """It takes a clock below one second for one that was never read."""
    scenario = Scenario.model_validate({"name": "new", "nodes": {"guest": {"kind": "uml"}}})
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        done = lab["guest"].run("ping -q -c 4 -i 0.2 127.0.0.1", timeout=30)
    milliseconds = re.search(r" time (\d+)ms", done.stdout)
    assert milliseconds is not None, done
    assert int(milliseconds[1]) >= 600 - 3 * 10, "three intervals, less a tick of the kernel each"


HOARD = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.bind(("", 9))
time.sleep(1000)
"""
FLOOD = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100):
    s.sendto(bytes(1000), (sys.argv[1], 9))
"""


def test_datagrams_that_nobody_takes_are_counted(lab: airloom.Lab) -> None:
    handle = lab._up().world.nodes["guest"]
    before = handle.datagrams_refused()
    hoard = lab["guest"].start([PYTHON, "-c", HOARD])
    until = time.monotonic() + 30
    while not lab["guest"].listens(9, "udp"):
        assert time.monotonic() < until
        time.sleep(0.05)
    while handle.datagrams_refused() - before < 50:
        assert time.monotonic() < until
        lab["other"].run([PYTHON, "-c", FLOOD, lab.addresses["guest"]], check=True)
    assert any("guest" in note and "buffers were full" in note for note in lab.verdict().notes)
    hoard.stop()


def test_it_is_paused_and_goes_on(lab: airloom.Lab, kind: str) -> None:
    program = lab["guest"].start("while :; do echo x; sleep 0.05; done", name="count")
    until = time.monotonic() + 30
    while count(program.log) < 3:
        assert time.monotonic() < until
        time.sleep(0.05)
    lab["guest"].pause()
    assert lab["guest"].state == "paused"
    before = still(lambda: count(program.log))  # what was on its way has arrived
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
def test_it_is_switched_off_and_on(lab: airloom.Lab, kind: str, action: str) -> None:
    if action == "kill" and kind not in QUICK:
        pytest.skip("one start is enough of a machine that takes so long for it")
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


def test_one_more_is_added_while_others_run(lab: airloom.Lab, made: dict[str, Any], kind: str) -> None:
    if kind not in QUICK:
        pytest.skip("one start is enough of a machine that takes so long for it")
    other = lab["other"].start("sleep 1000")
    before = lab.addresses
    node = lab.add("more", links=[{"ends": ["more", "s1"], "delay": "1 ms"}], **made)
    assert node.run(f"ping -c 5 -W 5 {before['guest']}", timeout=100).ok
    assert reached(lab, "more")
    assert other.code is None
    assert {name: lab.addresses[name] for name in before} == before
    with pytest.raises(RunError, match="there is a node more already"):
        lab.add("more")
    with pytest.raises(ScenarioError, match="'other' is no switch or hub"):
        lab.add("third", links=[{"ends": ["third", "other"]}])
    with pytest.raises(LabError, match="unknown key 'knid'"):
        lab.add("third", knid="netns")


@pytest.mark.parametrize("name", QUICK)
def test_events_pause_resume_and_kill(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_of(name, tmp_path)
    if name == "container":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    guest = KINDS[made["kind"]].properties.own_kernel
    ticks = "while read up _ < /proc/uptime; do echo $up; sleep 0.1; done"
    scenario = Scenario.model_validate(
        {
            "name": "events",
            "nodes": {"guest": made, "other": {}},
            "links": [{"ends": ["guest", "other"]}],
            "programs": [{"node": "guest", "run": ticks, "name": "count"}],
            "events": [
                {"at": "1 s", "node": "guest", "action": "pause"},
                {"at": "2 s", "node": "guest", "action": "resume"},
                {"at": "3 s", "node": "guest", "action": "kill"},
            ],
            "duration": "4 s",
            "measurements": [
                # The last request leaves a second before the end of the guest: on a slow machine, too.
                {"name": "rtt", "ping": {"from": "other", "to": "guest", "count": 8, "interval": "250 ms"}}
            ],
        }
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    (longest,) = [one for one in result.result.measurements if one.metric == "rtt_max"]
    assert longest.mean is not None
    told = [float(line) for line in (tmp_path / "out/nodes/guest/count.log").read_text().split()]
    done = [one.what for one in result.details.happenings]
    assert [what for what in done if what.startswith("node guest")] == [
        "node guest pause",
        "node guest resume",
        "node guest kill",
    ]
    assert done[-1] == "program count in node guest ended"
    if guest:
        # A request of the pause is answered after it. By its own clock there may have been none.
        assert longest.mean > 200e6
    else:
        assert max(b - a for a, b in pairwise(told)) > 0.5


@pytest.mark.parametrize("name", QUICK)
def test_a_machine_that_dies_fails_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_of(name, tmp_path)
    if name == "container":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(RunError, match="node guest failed"):
        kill_its_machine(made, tmp_path / "out")


def kill_its_machine(made: dict[str, Any], out: Path) -> None:
    with airloom.Lab(beside_a_switch(made), out=out) as lab:
        assert lab["guest"].run("true", timeout=100).ok
        handle: Any = lab._up().world.nodes["guest"]
        os.kill(handle._made.pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while lab["guest"].state != "failed":
            assert time.monotonic() < until
            time.sleep(0.02)
        assert lab["other"].run("true").ok
        lab["guest"].restart()
        assert lab["guest"].run("true", timeout=100).ok


EAT = "x = []\nwhile True: x.append(b'x' * (1 << 20))"


def test_a_guest_without_memory_ends_its_own_programs_alone(lab: airloom.Lab, kind: str) -> None:
    if not KINDS[kind].properties.own_kernel:
        pytest.skip("its memory is the host's")
    other = lab["other"].start("sleep 1000")
    assert not lab["guest"].run([PYTHON, "-c", EAT], timeout=100).ok
    assert lab["guest"].run("echo lives", timeout=60).stdout == "lives\n"
    assert reached(lab)
    assert other.code is None
    other.stop()


FLOODER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    s.sendto(bytes(64), (sys.argv[1], 9))
"""


def test_one_that_floods_is_answered_after_it(lab: airloom.Lab) -> None:
    flood = lab["guest"].start([PYTHON, "-c", FLOODER, lab.addresses["other"]])
    before = lab["other"].counters()["eth0"]["rx_packets"]
    until = time.monotonic() + 60
    while lab["other"].counters()["eth0"]["rx_packets"] < before + 10_000:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert lab["other"].run("echo on", timeout=60).stdout == "on\n"
    assert lab["guest"].run("echo on", timeout=60).stdout == "on\n"
    flood.stop()
    assert reached(lab)


def test_the_host_is_out_of_its_reach(lab: airloom.Lab, kind: str) -> None:
    if not KINDS[kind].nature.own_files:
        pytest.skip("its files are the host's")
    canary = Path(__file__).with_name(f".canary-{os.getpid()}-{kind}")
    canary.write_text("alive")
    inode = canary.stat().st_ino
    own = Path("/etc/hostname").read_text()
    try:
        lab["guest"].run(f"echo dead > {canary}; rm -f {canary}; echo dead > /etc/hostname", timeout=60)
        assert (canary.read_text(), canary.stat().st_ino) == ("alive", inode)
        assert Path("/etc/hostname").read_text() == own
    finally:
        canary.unlink()
    assert "pytest" not in lab["guest"].run("cat /proc/[0-9]*/cmdline", timeout=60).stdout
    addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
    for address in [one for one in addresses if "." in one]:
        assert not lab["guest"].run(f"ping -c 1 -W 1 {address}", timeout=60).ok


CONTROLLER = """
import sys, time, airloom
from airloom import Scenario
with airloom.Lab(Scenario.model_validate_json(sys.argv[1]), out=sys.argv[2]) as lab:
    print("up", flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("name", ALL)
def test_kill_9_of_the_controller_leaves_nothing(name: str, tmp_path: Path) -> None:
    said = beside_a_switch(made_of(name, tmp_path)).model_dump_json(by_alias=True, exclude_defaults=True)
    command = [sys.executable, "-c", CONTROLLER, said, str(tmp_path / "out")]
    environment = {**os.environ, **({"XDG_CACHE_HOME": str(tmp_path)} if name == "container" else {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as controller:
        try:
            assert controller.stdout is not None
            assert controller.stdout.readline() == "up\n"
            traces = Traces.of(controller.pid, tmp_path)
            machine = {"uml": str(kernel_of(None)), "uml-built": str(BUILT.resolve()), "qemu": "qemu-system"}
            assert any(machine.get(name, "airloom") in command_line(pid) for pid in traces.processes)
        finally:
            controller.kill()
    traces.wait_gone()
