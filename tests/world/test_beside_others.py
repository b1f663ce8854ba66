"""A run beside a busy namespace of somebody else takes none of its losses for its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom import run
from helpers import REPOSITORY
from helpers.nodes import eventually

PAGE = REPOSITORY / "docs/inside/counters.md"
COUNTERS = re.compile(r"/(?:proc|sys)/[\w./{}-]+")
READERS = (
    *("python/airloom/nodes/network", "python/airloom/nodes/process/cgroups.py"),
    *("python/airloom/runs/host_monitor.py", "python/airloom/host/idle_poll.py", "ports/src/runtime"),
    "python/airloom/planning/links/neighbours.py",
)
NO_COUNTERS = (
    "/proc/self/fd",
    "/proc/{process}/fd",
    "/sys/devices/system/cpu/cpuidle/current_driver",
    "/proc/sys/net/ipv4/{",
)

SCENARIO = """\
name: beside-others
nodes: {a: , b: }
links: [{ends: [a, b], rate: 10 Mbit/s}]
measurements:
- {name: flow, traffic: {from: a, to: b, rate: 1 Mbit/s, duration: 2 s}}
"""
NOISE = r"""
import os, pathlib, socket, subprocess, time
made = ("link add d0 type veth peer name d1", "addr add 10.9.0.1/16 dev d0")
for words in (*made, *(f"link set {name} up" for name in ("lo", "d0", "d1"))):
    subprocess.run(["ip", *words.split()], check=True)
full = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
full.bind(("127.0.0.1", 7000))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def counts():
    text = pathlib.Path("/proc/net/snmp").read_text()
    rows = [row.split() for row in text.splitlines() if row.startswith("Udp:")]
    return int(dict(zip(*rows))["RcvbufErrors"])
said = False
while True:
    for number in range(200):
        out.sendto(bytes(1000), ("127.0.0.1", 7000))
        try:
            out.sendto(bytes(1000), ("10.9.1.%d" % (number % 250 + 1), 7000))
            out.sendto(bytes(1000), ("127.0.0.1", 7001))
        except OSError:
            pass
    if not said and counts() > 100:
        print("rising", flush=True)
        said = True
    time.sleep(0.02)
"""


@pytest.fixture
def noise(tmp_path: Path) -> Iterator[None]:
    """A namespace in which sockets overflow, neighbours do not answer, and ports are closed."""
    said = tmp_path / "said"
    with said.open("wb") as sink:
        process = subprocess.Popen(["unshare", "--net", sys.executable, "-c", NOISE], stdout=sink)
    try:
        eventually(lambda: b"rising" in said.read_bytes(), "the counters of the other namespace rise")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.world
@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of its own needs root")
def test_two_nodes_beside_a_busy_namespace_have_no_loss(noise: None, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    done = run(path, out=tmp_path / "out")
    assert done.result.ledger.host_lost == 0
    assert done.result.ledger.dropped == {}
    lost = next(one.mean for one in done.result.measurements if (one.name, one.metric) == ("flow", "lost"))
    assert lost == 0
    # A busy machine may be short of processors, which is no loss.
    assert "host.lost" not in done.verdict.codes
    assert not [
        note for note in done.verdict.notes if "sockets dropped" in note or "kernels of nodes" in note
    ]


def test_each_counter_that_is_read_is_on_the_page() -> None:
    page = PAGE.read_text()
    found = set()
    for place in READERS:
        path = REPOSITORY / place
        for file in [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.rs")]:
            found |= {one.rstrip(".") for one in COUNTERS.findall(file.read_text())}
    read = {one for one in found if not one.startswith(NO_COUNTERS)}
    assert len(read) > 5
    assert {one for one in read if named(one) not in page} == set()


def named(counter: str) -> str:
    """The name of a counter on the page."""
    table = counter.removeprefix("/proc/net/stat/")
    return re.sub(r"\{\w+\}$", "", table).rstrip("/").replace("{thread}", "TID")
