"""Real faults: the verdict of a run names the resource that was short."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.world

PING = """\
name: two
nodes: {h1: {}, h2: {}}
links: [{ends: [h1, h2], delay: 1 ms}]
measurements: [{name: rtt, ping: {from: h1, to: h2, count: 30, interval: 100 ms}}]
"""
HELD = """\
name: held
nodes: {h1: {cpu: 0.02}, h2: {}}
links: [{ends: [h1, h2], rate: 500 Mbit/s}]
measurements: [{name: flow, traffic: {from: h1, to: h2, rate: 100 Mbit/s, size: 200 B, duration: 4 s}}]
"""
NEIGHBOUR = "a neighbour on this machine"


def verdict(shell, file: str, *words: str) -> dict:
    """The verdict of a run."""
    done = shell.run("run", file, "--out", "out", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads((shell.folder / "out" / "result.json").read_text())["verdict"]
    assert found["cause"].startswith(f"{found['resource']}: ")
    assert "Most likely cause:" in done.stdout
    return found


def test_busy_programs_outside_of_the_run_are_named(shell, scenario):
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        found = verdict(shell, scenario(PING))
    finally:
        for one in loops:
            one.kill()
            one.wait()
    assert found["status"] != "valid"
    assert found["resource"] == NEIGHBOUR


def test_a_node_s_share_is_named(shell, scenario):
    found = verdict(shell, scenario(HELD))
    assert "traffic.pacing" in found["codes"]
    # Where programs outside took the processors at the same time, they may be named instead.
    possible = {"a node's share"} | ({NEIGHBOUR} if "host.cpu-pressure" in found["codes"] else set())
    assert found["resource"] in possible
    if found["resource"] != NEIGHBOUR:
        assert "node h1 was held to its 2 % of a processor" in found["cause"]
