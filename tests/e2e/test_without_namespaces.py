"""Virtual time where a user may create no namespaces, as in a container or a batch job."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.host.descendants import processes_below
from helpers import REPOSITORY
from helpers.kernels import BUILT, needs_virtual_time
from helpers.ordinary import User, ordinary_user

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_virtual_time]

WAIT_S = 100.0
"""Seconds within which a run begins, or ends after it was told to; both take processor time."""

TWO = """name: two
time: virtual
nodes: {h1: , h2: }
links: [{ends: [h1, h2], rate: 10 Mbit/s, delay: 20 ms}]
measurements: [{name: rtt, ping: {from: h1, to: h2, count: 3, interval: 100 ms}}]
"""

SHARED = """name: shared
time: virtual
nodes:
  h1: {inside: both}
  h2: {inside: both}
  r: {position: [0 m, 0 m], radios: {wlan0: {medium: air}}}
  s: {}
guests: {both: {kind: uml}}
media: {air: {}}
links: [{ends: [h1, r], rate: 10 Mbit/s, delay: 2 ms}]
"""


@pytest.fixture
def user() -> Iterator[User]:
    with ordinary_user() as user:
        (user.folder / "two.yaml").write_text(TWO)
        shutil.copy(REPOSITORY / "tests/helpers/confined.py", user.folder)
        kernel = user.folder / ".cache" / "airloom" / "kernel" / "linux"
        kernel.parent.mkdir(parents=True)
        shutil.copy(BUILT, kernel)
        for folder in (kernel.parent, *list(kernel.parents)[1:3]):
            folder.chmod(0o777)
        yield user


def start(user: User, *words: str) -> subprocess.Popen[str]:
    """Starts Python with arguments for a user who may create no namespaces."""
    return user.start("confined.py", user.python, *words)


def run(user: User, *words: str) -> subprocess.CompletedProcess[str]:
    process = start(user, *words)
    out, err = process.communicate(timeout=2 * WAIT_S)
    assert left(process) == []
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def left(process: subprocess.Popen[str]) -> list[Path]:
    """Folders for the guests of this controller, which has the number of the process that it became from."""
    places = map(Path, ("/dev/shm", "/tmp", "/var/tmp"))
    return [found for place in places for found in place.glob(f"airloom-{process.pid}-*")]


def test_a_run_in_virtual_time_is_the_same_as_with_namespaces(user: User) -> None:
    memory = "programs: [{node: h1, name: memory, run: cat /proc/sys/net/ipv4/tcp_mem /proc/zoneinfo}]\n"
    (user.folder / "two.yaml").write_text(TWO + memory)
    done = run(user, "-m", "airloom", "run", "two.yaml", "--pcap", "--out", "without")
    assert done.returncode == 0, done.stderr
    result = json.loads((user.folder / "without" / "result.json").read_text())
    assert result["verdict"]["status"] == "valid"
    assert {one["metric"]: one["mean"] for one in result["measurements"]}["rtt_min"] == pytest.approx(
        40.2e6, abs=1e5
    )
    done = user.airloom("run", "two.yaml", "--pcap", "--out", "with")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (user.folder / "with" / "captures").iterdir())
    assert names == ["h1.eth0.pcapng", "h2.eth0.pcapng"]
    for name in (*(f"captures/{name}" for name in names), "samples.parquet", "nodes/h1/memory.log"):
        octets = [(user.folder / run / name).read_bytes() for run in ("with", "without")]
        assert octets[0] == octets[1], name


def test_wall_time_is_refused_with_the_way_out(user: User) -> None:
    (user.folder / "wall.yaml").write_text(TWO.replace("time: virtual\n", ""))
    done = run(user, "-m", "airloom", "run", "wall.yaml", "--out", "results")
    assert done.returncode == 3
    assert "no user namespace: Operation not permitted" in done.stderr
    assert "--time virtual" in done.stderr
    assert not (user.folder / "results").exists()


def test_doctor_says_what_works(user: User) -> None:
    done = run(user, "-m", "airloom", "doctor")
    assert done.returncode == 0, done.stdout
    *_, last = done.stdout.splitlines()
    assert (
        "virtual time works: airloom run FILE --time virtual. In wall time nothing runs: namespaces" in last
    )


ASK = """
import json, socket
connected = socket.socket(socket.AF_UNIX)
connected.connect(chr(0) + "airloom/radio")
connected.sendall(json.dumps({"do": "info", "radio": "wlan0"}).encode() + bytes([10]))
print(connected.recv(4096))
"""

LAB = f"""
import airloom, json
with airloom.Lab("shared.yaml") as lab:
    seen = [lab["h1"].run("ping -c 1 r").ok, lab["r"].run("python3 -", input={ASK!r}).stdout]
    seen.append(lab["h2"].run("cat /proc/sys/kernel/hostname").stdout.strip())
    lab["s"].stop()
    seen.append(lab["s"].state)
print(json.dumps(seen))
"""


def test_guests_that_nodes_share_radios_and_a_node_that_stops(user: User) -> None:
    (user.folder / "shared.yaml").write_text(SHARED)
    (user.folder / "lab.py").write_text(LAB)
    done = run(user, "lab.py")
    assert done.returncode == 0, done.stderr
    reached, answer, name, state = json.loads(done.stdout.splitlines()[-1])
    assert (reached, name, state) == (True, "h2", "stopped")
    assert answer == "b''\n", "nobody answers for its radio in virtual time"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_killed(user: User, number: signal.Signals) -> None:
    (user.folder / "long.yaml").write_text(TWO.replace("count: 3", "count: 1000000"))
    process = start(user, "-m", "airloom", "run", "long.yaml", "--out", "results")
    until = time.monotonic() + WAIT_S
    output = user.folder / "results" / "measurements" / "rtt" / "client.out"
    while not (output.exists() and b"bytes from" in output.read_bytes()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    below = processes_below(process.pid)
    assert len(below) > 4, "supervisor, two first processes, and the processes of two machines"
    assert len(left(process)) == 1
    os.kill(process.pid, number)
    process.communicate(timeout=WAIT_S)
    while left(process) or any(Path(f"/proc/{pid}").exists() for pid in below):
        assert time.monotonic() < until + 2 * WAIT_S, [left(process), below]
        time.sleep(0.05)


def test_a_first_process_that_is_killed_takes_its_machine_along(user: User) -> None:
    (user.folder / "long.yaml").write_text(TWO.replace("count: 3", "count: 1000000"))
    process = start(user, "-m", "airloom", "run", "long.yaml", "--out", "results")
    until = time.monotonic() + WAIT_S
    while not (first := [pid for pid in processes_below(process.pid) if named(pid) == "node h2"]):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    while not (machine := processes_below(first[0])[1:]):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(first[0], signal.SIGKILL)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1, out
    assert "h2" in err
    assert not [pid for pid in machine if Path(f"/proc/{pid}").exists()]


def named(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
