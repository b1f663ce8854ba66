"""Open vSwitches: time until fifty are up with one controller, memory, and throughput of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import airloom
from airloom.bench import BenchResult, Progress
from airloom.bench.standing import memory
from airloom.errors import HostError
from airloom.host.binaries import shipped
from airloom.scenario.model import Scenario

SWITCHES = 50
WITHIN = 30.0
"""Promised seconds until they are up, each connected to the controller."""
_TIMEOUT = 120.0
_SECONDS = 5


def run(progress: Progress) -> list[BenchResult]:
    """Starts fifty in a row in a separate process; then TCP through one and an engine switch."""
    learning_switch()
    progress(f"{SWITCHES} Open vSwitches with one controller")
    child = subprocess.run(
        [sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True, env=os.environ, check=True
    )
    said: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    results = [
        BenchResult(
            f"{SWITCHES} Open vSwitches up, all joined to one controller", "s", said["joined"],
            promise=f"within {WITHIN:g} s", holds=said["joined"] <= WITHIN,
        ),
        BenchResult("from the first host's ping to the last host's answer", "s", said["first_ping"]),
        BenchResult("memory a switch", "B", said["octets"]),
    ]  # fmt: skip
    rates = {}
    for kind in ("switch", "openvswitch"):
        progress(f"TCP through one {kind}")
        rates[kind] = _tcp(kind)
    results.append(
        BenchResult(
            "TCP through one Open vSwitch, unshaped", "bit/s", rates["openvswitch"],
            peer="the engine's switch", peer_value=rates["switch"],
            ratio=rates["openvswitch"] / rates["switch"],
        )
    )  # fmt: skip
    return results


def _tcp(kind: str) -> float:
    """Returns the throughput between two hosts of a switch, in bit/s."""
    scenario = Scenario.model_validate(
        {
            "name": "bench-ovs",
            "nodes": {"h1": {}, "h2": {}},
            "switches": {"s1": {"kind": kind}},
            "links": [{"ends": ["h1", "s1"]}, {"ends": ["s1", "h2"]}],
            "measurements": [
                {"name": "tcp", "iperf3": {"from": "h1", "to": "h2", "duration": f"{_SECONDS} s"}}
            ],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        found = airloom.run(scenario, out=Path(folder, "out")).result.measurements
    return next(one.mean or 0.0 for one in found if one.metric == "throughput")


def chain(count: int) -> Scenario:
    """Returns a row of Open vSwitches with a host at either end, and one controller for all."""
    names = [f"s{number}" for number in range(1, count + 1)]
    switches = {name: {"kind": "openvswitch", "controllers": ["tcp:c0:6653"]} for name in names}
    row = ["h1", *names, "h2"]
    return Scenario.model_validate(
        {
            "name": "bench-ovs-chain",
            "nodes": {"h1": {}, "h2": {}, "c0": {}},
            "switches": switches,
            "links": [{"ends": [a, b]} for a, b in pairwise(row)],
        }
    )


def learning_switch() -> Path:
    """Path of the example's controller (os-ken); Open vSwitch's own supports only 16 switches."""
    if find_spec("os_ken") is None:
        raise HostError("host.lacks", "os-ken is not installed", cure="pip install 'airloom[sdn]'")
    return shipped("examples") / "openflow" / "learning_switch.py"


def main() -> None:
    """Starts, connects, pings and ends the chain; prints a line of JSON."""
    free = memory()
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        airloom.Lab(chain(SWITCHES), out=Path(folder, "out")) as lab,
    ):
        lab["c0"].start([sys.executable, str(learning_switch())])
        while lab.unmet_controllers():
            if time.monotonic() - begun > _TIMEOUT:
                raise SystemExit(f"not joined: {lab.unmet_controllers()}")
            time.sleep(0.02)
        joined = time.monotonic()
        octets = (free - memory()) / SWITCHES
        lab["h1"].run("ping -c 1 -w 60 h2", check=True)
        pinged = time.monotonic()
    print(json.dumps({"joined": joined - begun, "first_ping": pinged - joined, "octets": octets}))


if __name__ == "__main__":
    main()
