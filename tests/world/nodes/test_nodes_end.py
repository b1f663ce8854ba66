"""A run leaves nothing behind, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.nodes.all_nodes import Nodes
from airloom.nodes.kind import NodeHandle
from airloom.nodes.process.supervisor import Supervisor
from helpers import REPOSITORY
from helpers.nodes import (
    Up,
    eventually,
    groups_of,
    interface,
    mount_points,
    node,
    plan_of,
    processes_in,
    processes_with,
)

pytestmark = pytest.mark.world

HOLDING_ON = "trap '' TERM INT HUP; setsid sh -c \"trap '' TERM; sleep 1000\" & while :; do sleep 1000; done"
"""Ignores what it can, and leaves its process group."""


def namespace_of(handle: NodeHandle) -> int:
    return os.fstat(handle.namespace.fileno()).st_ino  # type: ignore[attr-defined]


def test_close_ends_everything_and_may_be_called_twice() -> None:
    mark = f"AIRLOOM_TEST={uuid.uuid4()}"
    before = len(os.listdir("/proc/self/fd"))
    with Supervisor() as supervisor:
        world = Nodes(
            plan_of([node(f"n{number}", interface("eth0", number)) for number in range(10)]), supervisor
        )
        handles = world.bring_up()
        inodes = {namespace_of(handle) for handle in handles.values()}
        for handle in handles.values():
            handle.start(["sh", "-c", HOLDING_ON], env=dict([mark.split("=")]))
        assert len(processes_with(mark)) >= 10
        pid = supervisor.pid
        assert groups_of(pid) or any(handle.notes for handle in handles.values())
        world.close()
        world.close()
        assert processes_with(mark) == []
        assert processes_in(inodes) == []
        with pytest.raises(RunError, match="is closed"):
            handles["n0"].start(["true"])
    supervisor.close()
    assert groups_of(pid) == []
    assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) == before


CONTROLLER = """
import os, sys, time
sys.path.insert(0, {tests!r})
from helpers.nodes import interface, node, plan_of
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.all_nodes import Nodes

supervisor = Supervisor()
plans = [
    node(f"n{{number}}", interface("eth0", number, f"10.1.0.{{number}}/24"), cpu=0.5)
    for number in range(1, 6)
]
world = Nodes(plan_of(plans), supervisor)
handles = world.bring_up()
for handle in handles.values():
    handle.start(["sh", "-c", {program!r}], env=dict([{mark!r}.split("=")]))
handles["n1"].pause()
inodes = [os.fstat(handle.namespace.fileno()).st_ino for handle in handles.values()]
print(supervisor.pid, *inodes, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("victim", ["controller", "supervisor", "both"])
def test_kill_9_leaves_nothing(victim: str) -> None:
    mark = f"AIRLOOM_TEST={uuid.uuid4()}"
    mounts = mount_points()
    script = CONTROLLER.format(tests=str(REPOSITORY / "tests"), program=HOLDING_ON, mark=mark)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as controller:
        try:
            assert controller.stdout is not None
            supervisor, *inodes = (int(word) for word in controller.stdout.readline().split())
            assert len(processes_in(set(inodes))) >= 10
            assert len(processes_with(mark)) >= 10
            if victim in ("supervisor", "both"):
                os.kill(supervisor, signal.SIGKILL)
            if victim in ("controller", "both"):
                controller.kill()
            eventually(lambda: processes_with(mark) == [], "programs are left")
        finally:
            controller.kill()
    eventually(lambda: not Path(f"/proc/{supervisor}").exists(), "the supervisor is left")
    eventually(lambda: processes_in(set(inodes)) == [], "namespaces are held")
    eventually(lambda: groups_of(supervisor) == [], "control groups are left")
    watched = {"/etc/hosts", "/etc/hostname", "/etc", "/tmp", "/run", "/var/tmp"}
    assert watched.intersection(mount_points()) == watched.intersection(mounts)


def test_ctrl_c_does_not_reach_nodes(up: Up, supervisor: Supervisor) -> None:
    handle = up(node("a"))["a"]
    process = handle.start(["sleep", "1000"])
    assert os.getpgid(supervisor.pid) != os.getpgrp()
    assert os.getsid(supervisor.pid) != os.getsid(0)
    os.kill(supervisor.pid, signal.SIGINT)
    os.kill(supervisor.pid, signal.SIGTERM)
    assert handle.exec(["true"], timeout=20).exit.ok
    assert process.poll() is None


def test_the_death_of_a_first_process_is_a_failure_of_its_node(up: Up) -> None:
    failed: list[NodeHandle] = []
    told = threading.Event()

    def on_failure(handle: NodeHandle) -> None:
        failed.append(handle)
        told.set()

    handles = up(node("a"), node("b"), on_failure=on_failure)
    process = handles["a"].start(["sleep", "1000"])
    handles["b"].exec(["true"], timeout=20)
    os.kill(handles["a"]._made.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    assert told.wait(20)
    assert failed == [handles["a"]]
    assert handles["a"].state == "failed"
    assert handles["a"].failure == "its first process was killed by signal 9"
    assert process.wait(20).signal == signal.SIGKILL
    with pytest.raises(RunError, match="node a is failed: its first process was killed by signal 9"):
        handles["a"].exec(["true"])
    assert handles["b"].exec(["true"], timeout=20).exit.ok
    handles["a"].restart()
    assert handles["a"].exec(["true"], timeout=20).exit.ok


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to take the socket of another process")
def test_a_first_process_that_does_not_speak_as_agreed_is_a_failure_of_its_node(up: Up) -> None:
    handles = up(node("a"), node("b"))
    for handle in handles.values():
        handle.exec(["true"], timeout=20)
    process = os.pidfd_open(handles["a"]._made.pid)  # type: ignore[attr-defined]
    control = ctypes.CDLL(None, use_errno=True).syscall(438, process, 3, 0)  # pidfd_getfd(2)
    assert control >= 0, os.strerror(ctypes.get_errno())
    os.write(control, b"\x04\x00\x00\x00evil")
    os.close(control)
    os.close(process)
    eventually(lambda: handles["a"].state == "failed", "it has not failed")
    assert str(handles["a"].failure).startswith("its first process violates the protocol")
    assert handles["b"].exec(["true"], timeout=20).exit.ok


def test_a_supervisor_that_dies_is_reported() -> None:
    failed: list[str] = []
    with (
        Supervisor() as supervisor,
        Nodes(
            plan_of([node("a"), node("b")]), supervisor, on_failure=lambda handle: failed.append(handle.name)
        ) as world,
    ):
        handles = world.bring_up()
        handles["a"].exec(["true"], timeout=20)
        os.kill(supervisor.pid, signal.SIGKILL)
        eventually(lambda: failed == ["a"], "nobody was told")
        with pytest.raises(RunError, match="supervisor"):
            handles["b"].exec(["true"], timeout=20)
    eventually(lambda: groups_of(supervisor.pid) == [], "control groups are left")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have control groups")
def test_a_supervisor_that_is_killed_leaves_no_control_group() -> None:
    for _ in range(5):
        with Supervisor() as supervisor, Nodes(plan_of([node("a", cpu=0.5)]), supervisor) as world:
            a = world.bring_up()["a"]
            a.start(["sleep", "1000"])
            assert groups_of(supervisor.pid)
            os.kill(supervisor.pid, signal.SIGKILL)
            eventually(lambda pid=supervisor.pid: groups_of(pid) == [], "control groups are left")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make control groups")
def test_groups_that_a_node_made_below_its_own_go_with_it(up: Up, supervisor: Supervisor) -> None:
    handle = up(node("a", cpu=0.5))["a"]
    handle.exec(["true"], timeout=20)
    for kind, options in (("cgroup2", "rw"), ("cgroup", "cpu")):
        mounted = f"mkdir /tmp/{kind} && mount -t {kind} -o {options} none /tmp/{kind}"
        handle.exec(["sh", "-c", f"{mounted} && mkdir -p /tmp/{kind}/mine/and/below"], timeout=20)
    made = [path for base in groups_of(supervisor.pid) for path in base.glob("*/*/mine/and/below")]
    assert made, "no hierarchy could be mounted in the node"
    handle.kill()
    handle.restart()
    assert not any(path.exists() for path in made)


def test_stop_is_polite_first(up: Up, tmp_path: Path) -> None:
    handle = up(node("a"))["a"]
    log = tmp_path / "log"
    polite = handle.start(
        ["sh", "-c", "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done"], stdout=log
    )
    eventually(lambda: "up" in log.read_text(), "it did not start")
    handle.stop(grace=20)
    assert polite.wait(20).code == 4
    assert "bye" in log.read_text().split()
    assert handle.state == "stopped"
    handle.stop()  # nothing happens


def test_stop_and_kill_end_those_who_hold_on(up: Up) -> None:
    mark = f"AIRLOOM_TEST={uuid.uuid4()}"
    handles = up(node("a"), node("b"))
    for handle in handles.values():
        handle.start(["sh", "-c", HOLDING_ON], env=dict([mark.split("=")]))
    handles["b"].pause()
    handles["a"].stop(grace=0.1)
    handles["b"].kill()
    assert processes_with(mark) == []


def test_a_fork_bomb_ends_with_its_node(up: Up) -> None:
    mark = f"AIRLOOM_TEST={uuid.uuid4()}"
    handle = up(node("a"))["a"]
    # Each of 8 generations doubles, leaves its group and ignores signals: 256 at the end.
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "time.sleep(1000)\n"
    )
    handle.start(["python3", "-c", script], env=dict([mark.split("=")]))
    eventually(lambda: len(processes_with(mark)) >= 200, "the bomb did not go off")
    handle.kill()
    assert processes_with(mark) == []


def test_processor_time_outlives_a_stop(up: Up) -> None:
    handle = up(node("a"))["a"]
    handle.exec(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"], timeout=60)
    used = handle.cpu()
    handle.kill()
    assert handle.cpu().user_ns >= used.user_ns
    handle.restart()
    handle.exec(["true"], timeout=20)
    assert handle.cpu().user_ns >= used.user_ns
