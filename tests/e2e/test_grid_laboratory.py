"""Runs of two slices in one laboratory at the same time: neither reads, reaches or starves the other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import HostError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from airloom.host import binaries
from helpers import REPOSITORY
from helpers.grid_server import WAIT_S, Server
from helpers.nodes import PYTHON, cgroups, eventually

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

DCF_36 = 23.08
"""Mbit/s that one flow of 1470 octets gets at 36 Mbit/s: closed form of the standard's timing."""
TESTBED = """\
name: room
channels: [36]
slots: {frame: 3, length: 20 ms}
nodes:
  n1: {position: [0 m, 0 m], radios: [w0, w1]}
  n2: {position: [3 m, 0 m], radios: [w0, w1]}
"""
SCENARIO = """\
name: NAME
duration: LONG
media: {air: {radio: {channel: 36, rate: 36 Mbit/s, power: 16 dBm}}}
nodes:
  n1: {position: [0 m, 0 m], radios: {RADIO: }}
  n2: {position: [3 m, 0 m], radios: {RADIO: }}
"""


class Laboratory:
    """A grid manager, the laboratory of its testbed, and runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: list[subprocess.Popen[bytes]] = []
        self.inventory = folder / "room.yaml"
        self.inventory.write_text(TESTBED)
        self.socket = folder / "lab.sock"
        self.server = Server(self.inventory, str(folder / "grid.db"))
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY / "python"),
            "AIRLOOM_GRID_URL": self.server.url,
            "AIRLOOM_GRID_TOKEN": self.server.token,
        }
        words = ("--manager", self.server.url, "--socket", self.socket)
        self.process = self.started("grid", "lab", self.inventory, *words)
        ready, _, _ = select.select([self.process.stdout], [], [], WAIT_S)
        line = os.read(self.process.stdout.fileno(), 4096) if ready else b""
        assert line.startswith(b"laboratory of room"), self.process.communicate(timeout=5)
        self.server.must("POST", "/v1/projects", {"name": "p"})

    def started(self, *words: object, become: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Starts the command of Airloom."""
        command = [*(become or [sys.executable]), "-m", "airloom", *map(str, words)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder
        )

    def book(self, name: str, slots: int) -> str:
        """Reserves both nodes for a slice; returns the reservation's ID."""
        end = (datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)).isoformat()
        asked = {"project": "p", "slice": name, "count": 2, "slots": slots, "end": end, "channels": [36]}
        identity: str = self.server.must("POST", "/v1/reservations", asked)["id"]
        return identity

    def run(
        self,
        identity: str,
        name: str,
        radio: str,
        text: str,
        long: str | None,
        first: str = "position: [0 m",
        become: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Starts a run in a reservation; ``become``: the words that make it another user's.

        ``long``: its duration; None: until its programs have ended.
        """
        file = self.folder / f"{name}.yaml"
        said = SCENARIO.replace("NAME", name).replace("RADIO", radio)
        said = said.replace("LONG", long) if long else said.replace("duration: LONG\n", "")
        said = said.replace("position: [0 m", first, 1)
        file.write_text(said + text)
        words = ("--reservation", identity, "--lab", self.socket, "--out", self.folder / name)
        self.runs.append(self.started("grid", "run", file, *words, become=become))
        return self.runs[-1]

    def result(self, name: str) -> dict[str, Any]:
        """The result of a run."""
        found: dict[str, Any] = json.loads((self.folder / name / "result.json").read_text())
        return found

    def close(self) -> None:
        """Ends the laboratory and the manager, and runs that a failed test left."""
        self.process.send_signal(signal.SIGTERM)
        try:
            for run in self.runs:
                run.kill()
                run.communicate()
            told, _ = self.process.communicate(timeout=WAIT_S)
            assert self.process.returncode == 0, told.decode()
        finally:
            self.process.kill()
            self.server.kill()


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    # Folders of pytest are closed to other users.
    with tempfile.TemporaryDirectory(prefix="airloom-grid-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with contextlib.closing(Laboratory(Path(folder))) as one:
            yield one


FLOW = """\
measurements:
  - {name: flow, traffic: {from: n1, to: n2, rate: 30 Mbit/s, size: 1470 B, at: 1 s, duration: LAST}}
"""


@pytest.mark.measures
def test_two_runs_at_the_same_time_have_the_shares_of_their_slots(laboratory: Laboratory) -> None:
    """Both send on one channel, in each other's range, more than the channel carries."""
    one, two = laboratory.book("one", 2), laboratory.book("two", 1)
    first = laboratory.run(one, "first", "w0", FLOW.replace("LAST", "6 s"), "8 s")
    second = laboratory.run(two, "second", "w1", FLOW.replace("LAST", "4 s"), "6 s")
    for process in (first, second):
        told, _ = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, told.decode()
    found, spans = {}, []
    for name in ("first", "second"):
        result = laboratory.result(name)
        metrics = {one["metric"]: one["mean"] for one in result["measurements"]}
        found[name] = metrics["throughput_steady"] / 1e6
        assert metrics["host_lost"] == 0
        began = datetime.fromisoformat(result["started"]).timestamp()
        spans.append((began, began + result["wall_seconds"]))
    assert max(begin for begin, _ in spans) + 3 < min(end for _, end in spans), "they were not at one time"
    assert found["first"] == pytest.approx(DCF_36 * 2 / 3, rel=0.08)
    assert found["second"] == pytest.approx(DCF_36 / 3, rel=0.08)


SPIN = """
import pathlib, time
print("waits", flush=True)
file = pathlib.Path("/tmp/spin/begin")
while not file.exists():
    time.sleep(0.05)
begin = float(file.read_text())
time.sleep(max(0.0, begin - time.time()))
late, used = time.time() - begin, time.process_time()
while time.time() < begin + 2:
    pass
print("spun", late, time.process_time() - used)
"""


def test_a_run_with_many_busy_programs_takes_no_processor_time_from_another(laboratory: Laboratory) -> None:
    """Two programs of one run get as much together as eight of the other, while all of them are busy."""
    one, two = laboratory.book("one", 1), laboratory.book("two", 1)
    spin = laboratory.folder / "spin"
    spin.mkdir()
    (spin / "spin.py").write_text(SPIN)
    programs = {"few": 2, "many": 8}
    mounts = "mounts: [{source: spin, target: /tmp/spin}], position: [0 m"
    processes = {}
    for (name, many), identity, radio in zip(programs.items(), (one, two), ("w0", "w1"), strict=True):
        run = f"'{PYTHON} /tmp/spin/spin.py'"
        text = "programs:\n" + "".join(f"  - {{node: n1, name: p{n}, run: {run}}}\n" for n in range(many))
        processes[name] = laboratory.run(identity, name, radio, text, None, mounts)

    def said(name: str) -> list[list[str]]:
        return [path.read_text().split() for path in (laboratory.folder / name).glob("nodes/n1/p*")]

    def waiting() -> bool:
        return sum(words[:1] == ["waits"] for name in programs for words in said(name)) == 10

    until = time.monotonic() + WAIT_S
    while not waiting():
        assert time.monotonic() < until
        assert all(process.poll() is None for process in processes.values())
        time.sleep(0.1)
    (spin / "draft").write_text(str(time.time() + 2))
    (spin / "draft").rename(spin / "begin")
    used = {}
    for name, process in processes.items():
        told, _ = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, told.decode()
        if b"no control group" in told:
            pytest.skip("this machine has no control groups for processor time")
        spun = [words[1:] for words in said(name) if words[1:2] == ["spun"]]
        assert len(spun) == programs[name], said(name)
        assert max(float(words[1]) for words in spun) < 2, "a program was woken too late"
        used[name] = sum(float(words[2]) for words in spun)
    assert used["few"] / used["many"] > 0.7, used


def of_user(number: int) -> list[str]:
    """The words that start a Python of an ordinary user, with the packages of this one."""
    become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    for candidate in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        # It must be able to start itself, as the command does to enter a user namespace.
        script = "import subprocess, sys, airloom._engine, httpx2; subprocess.run([sys.executable, '-V'])"
        trial = [*become, candidate, "-c", script]
        packages = f"{REPOSITORY / 'python'}:{sysconfig.get_path('purelib')}"
        environment = {**os.environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/"}
        if (
            shutil.which("setpriv")
            and not subprocess.run(trial, env=environment, capture_output=True).returncode
        ):
            return [*become, candidate]
    pytest.skip("there is no Python here that an ordinary user may run with these packages")


def test_ordinary_users_join_the_laboratory_of_root(laboratory: Laboratory) -> None:
    """Neither can read or signal the other's processes, or leave its share of the processors."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv, to be two other users")
    users = (65533, 65534)
    pythons = {user: of_user(user) for user in users}
    laboratory.folder.chmod(0o777)
    programs = laboratory.folder / "bin"
    programs.mkdir()
    for program in binaries.OWN_PROGRAMS:
        shutil.copy(binaries.find(program), programs / program)
    laboratory.environment |= {
        "AIRLOOM_BIN_DIR": str(programs),
        "PYTHONPATH": f"{REPOSITORY / 'python'}:{sysconfig.get_path('purelib')}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/",
    }
    text = "programs: [{node: n1, name: up, run: echo up}]\n"
    processes = {}
    for user, radio in zip(users, ("w0", "w1"), strict=True):
        identity = laboratory.book(f"of-{user}", 1)
        become = pythons[user]
        processes[user] = laboratory.run(identity, f"r{user}", radio, text, "10 s", become=become)
    for user in users:
        log = laboratory.folder / f"r{user}" / "nodes" / "n1"
        eventually(
            lambda log=log: any("up" in path.read_text() for path in log.glob("up*")),
            "a run is up",
            within=2 * WAIT_S,
        )
    other = processes[users[1]].pid
    as_first = pythons[users[0]][:-1]
    for attempt in (f"cat /proc/{other}/environ", f"kill -0 {other}", f"ls /proc/{other}/fd"):
        done = subprocess.run([*as_first, "sh", "-c", attempt], capture_output=True, text=True)
        assert done.returncode != 0, f"{attempt}: {done.stdout}"
    name = f"airloom-grid-{laboratory.process.pid}"
    for procs in [group / "cgroup.procs" for group in cgroups() if name in group.parts]:
        done = subprocess.run([*as_first, "sh", "-c", f"echo $$ > {procs}"], capture_output=True)
        assert done.returncode != 0, procs
    for process in processes.values():
        told, _ = process.communicate(timeout=WAIT_S)
        if b"no user namespace" in told:
            pytest.skip("an ordinary user has no namespaces on this machine")
        assert process.returncode == 0, told.decode()
