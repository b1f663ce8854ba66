"""Small laboratories and shared measurements of the benchmarks."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search
from airloom.host import binaries
from airloom.lab.lab import Lab
from airloom.measure.flow import FlowReading
from airloom.planning.machine import default_image
from airloom.scenario.model import Link, Node, Queue, Scenario, Switch, Topology

ETHERNET = 24
"""Overhead of a frame on the wire in octets: preamble 8, frame check sequence 4, gap 12."""
HEADERS = 14 + 20 + 8
"""Overhead of a UDP datagram's frame in octets, without the frame check sequence."""


def pair(kind: str = "netns", switches: int = 0, **link: Any) -> Scenario:
    """Returns h1 and h2, joined by one link or a row of engine switches."""
    names = ["h1", *(f"s{i + 1}" for i in range(switches)), "h2"]
    return Scenario(
        name=f"bench-{kind}-{switches}",
        kind=kind,
        nodes={"h1": Node(), "h2": Node()},
        switches={name: Switch() for name in names[1:-1]},
        links=[Link(ends=ends, **link) for ends in itertools.pairwise(names)],
    )


def chain(nodes: int, kind: str = "netns", packets: int = 200, **link: Any) -> Scenario:
    """Returns n1 to nN, with routers between the ends."""
    return Scenario(
        name=f"bench-chain-{kind}-{nodes}",
        kind=kind,
        topology=Topology(generator="chain", nodes=nodes, link={"queue": Queue(packets=packets), **link}),
    )


@contextlib.contextmanager
def up(scenario: Scenario) -> Iterator[Lab]:
    """Opens a live laboratory without results; containers have this machine's programs."""
    with (
        tempfile.TemporaryDirectory(prefix="airloom-bench-") as folder,
        Lab(default_image.provided(scenario), out=Path(folder) / "run") as lab,
    ):
        yield lab


def tcp(lab: Lab, source: str, to: str, seconds: int) -> float:
    """Returns TCP goodput in bit/s by iperf3 with cubic, without the first second (slow start)."""
    reading = lab.measure(iperf3=capacity_search.flow(source, to, seconds))
    rate = capacity_search.settled(reading.samples().to_pandas())
    assert rate is not None, "the flow lasts longer than its start-up phase"
    return rate


def flood(lab: Lab, source: str, to: str, frame: int, seconds: int) -> float:
    """Returns received packets/s when the source sends frames of ``frame`` octets at full speed."""
    port = 6000
    traffic = str(binaries.find("airloom-traffic"))
    receiver = lab[to].start([traffic, "receive", "--port", str(port), "--json", "--idle", "1 s"])
    time.sleep(0.3)
    lab[source].run(
        [traffic, "send", "--to", to, "--port", str(port), "--rate", "max", "--frame", f"{frame} B",
         "--duration", f"{seconds} s", "--refusals", "0"],
        check=True,
    )  # fmt: skip
    receiver.wait(20)
    summary = json.loads(next(line for line in receiver.output.splitlines() if line.startswith("{")))
    return float(summary["packets"]) / seconds


def flow(lab: Lab, source: str, to: str, **traffic: Any) -> FlowReading:
    """Returns one flow of Airloom's generator, packet by packet."""
    reading = lab.measure(traffic={"from": source, "to": to, **traffic})
    assert isinstance(reading, FlowReading)
    return reading


def alternating(rounds: int, *sides: Callable[[], float]) -> list[float]:
    """Returns the median of each side, measured alternately so that slow moments affect all."""
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for values, side in zip(found, sides, strict=True):
            values.append(side())
    return [statistics.median(values) for values in found]


def busy_seconds() -> float:
    """Returns the processor time of the whole machine since boot, in seconds (/proc/stat)."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / 100


def engine_seconds() -> float:
    """Returns the processor time of this process's threads that drive engines, in seconds."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
            if name == "airloom-engine":
                user, system = rest.split()[11:13]
                ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")
