"""A scenario on the installed Mininet: the same hosts, links, programs and measurements.

Mininet gets of a scenario what it has itself: hosts with their kernel settings, learning switches (Linux
bridges), links of one MTU, shaped by ``TCLink`` to their rate, programs, and measurements by ping and by
Airloom's generator, whose records lie in the same files as those of a run. Delay, loss and jitter need
``netem``, which not every kernel has; a scenario with them is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.bench.peers import installed_mininet
from airloom.errors import HostError, ScenarioError
from airloom.host import binaries
from airloom.measure.flow import FlowReading, join
from airloom.measure.records import read
from airloom.measure.tool import Place
from airloom.measure.traffic import TrafficTool
from airloom.scenario.model import Link, Measurement, Scenario

DESCRIPTION = "mininet.json"
MEASUREMENTS = "measurements"
BEYOND = 120.0
"""Seconds that bringing up, ending and waiting may take beside the scenario's programs."""
ANY = range(-64, 256)
"""Exit codes: those below 0 are signals."""
_SHAPED = {"ends", "rate", "mtu", "queue", "late"}
"""What a link may state: rate and MTU are Mininet's too, its queue has 1000 packets, its time is real."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """A command in a node before anything starts; ``{eth}`` is its interface towards ``peer``."""

    node: str
    peer: str
    run: str


def run(scenario: Scenario, folder: Path, shaping: Sequence[Shaping] = ()) -> None:
    """Runs a scenario there; programs write ``nodes/NODE/PROGRAM.log`` below ``folder``, as in a run."""
    asked = describe(scenario, folder.resolve(), shaping)
    file = folder.resolve() / DESCRIPTION
    file.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
    last = max((one["at"] + one["lasts"] for one in asked["programs"]), default=0.0)
    ended = installed_mininet.on_mininet("network", file, timeout=last + BEYOND)
    for one in asked["programs"]:
        code = ended["codes"][one["name"]]
        if code not in one["expect"]:
            said = Path(one["err"]).read_text(encoding="utf-8", errors="replace").strip()[-300:]
            raise HostError("host.peer", f"{one['name']} on Mininet ended with {code}: {said}")


def flow(folder: Path, measurement: str) -> FlowReading:
    """The flow of a measurement that :func:`run`, or a run of Airloom, recorded in this folder."""
    place = folder / MEASUREMENTS / measurement
    return join(*(read(place / f"{end}.out") for end in ("sender", "receiver")))


def describe(scenario: Scenario, folder: Path, shaping: Sequence[Shaping] = ()) -> dict[str, Any]:
    """Returns what ``on_mininet.py network`` runs; refuses what Mininet has no word for."""
    mtus = {_checked(link).mtu for link in scenario.links}
    if len(mtus) > 1:
        raise _refused("links of several MTUs", "links")
    six = scenario.addresses.ipv4 is None
    hosts = {
        name: f"fd00::{number}" if six else f"10.0.0.{number}"
        for number, name in enumerate(scenario.nodes, 1)
    }
    return {
        "hosts": hosts,
        "six": six,
        "switches": list(scenario.switches),
        "links": [[*link.ends, float(link.rate) / 1e6] for link in scenario.links if link.rate is not None],
        "mtu": mtus.pop(),
        "sysctl": {name: node.sysctl for name, node in scenario.nodes.items() if node.sysctl},
        "shaping": [{"node": one.node, "peer": one.peer, "run": one.run} for one in shaping],
        "reached": _pairs(scenario),
        "programs": [*_programs(scenario, folder), *_measured(scenario, hosts, folder)],
    }


def _checked(link: Link) -> Link:
    strange = link.model_fields_set - _SHAPED
    if strange:
        raise _refused(f"`{sorted(strange)[0]}`", f"link {'-'.join(link.ends)}")
    if link.rate in (None, "unlimited"):
        raise _refused("a link without a rate", f"link {'-'.join(link.ends)}")
    return link


def _refused(what: str, where: str) -> ScenarioError:
    return ScenarioError(
        "peer.mininet", f"{what} cannot be had of Mininet here", where=where, cure="leave it out"
    )


def _pairs(scenario: Scenario) -> list[tuple[str, str]]:
    """Who reaches whom: addresses are resolved before anything is measured."""
    tools = [one.ping or one.traffic for one in scenario.measurements]
    return [(one.source, one.to) for one in tools if one is not None]


def _programs(scenario: Scenario, folder: Path) -> Iterable[dict[str, Any]]:
    moved: dict[str, str] = {}
    for node, described in scenario.nodes.items():
        for path, text in described.files.items():
            copy = folder / "nodes" / node / Path(path).name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(str(text), encoding="utf-8")
            moved[path] = str(copy)
    for one in scenario.programs:
        if not isinstance(one.run, list):
            raise _refused("a program that is no list of words", f"program {one.name}")
        log = folder / "nodes" / one.node / f"{one.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        yield {
            "name": one.name,
            "host": one.node,
            "run": [moved.get(word, word) for word in one.run],
            "at": one.at / 1e9,
            "lasts": 0.0,
            "out": str(log),
            "err": str(log),
            "ready": one.ready.log if one.ready is not None else None,
            "linger": 0.0,
            "service": one.until_end,
            "expect": list(ANY) if one.expect is None or one.until_end else [one.expect],
        }


def _measured(scenario: Scenario, hosts: dict[str, str], folder: Path) -> Iterable[dict[str, Any]]:
    for number, one in enumerate(scenario.measurements):
        if one.ping is None:
            yield from _flow(one, hosts, folder / MEASUREMENTS / one.name, number, scenario.seed)


def _flow(
    one: Measurement, hosts: dict[str, str], folder: Path, number: int, seed: int
) -> Iterable[dict[str, Any]]:
    if one.traffic is None:
        raise _refused(f"`{one.word}`", f"measurement {one.name}")
    folder.mkdir(parents=True, exist_ok=True)
    place = Place(
        one.name,
        {name: [address] for name, address in hosts.items()},
        port=6000 + number,
        seed=seed,
        traffic=str(binaries.find("airloom-traffic")),
    )
    for step in TrafficTool(one.traffic, place).steps():
        yield {
            "name": f"{one.name}-{step.role}",
            "host": step.node,
            "run": list(step.command(folder)),
            "at": step.at / 1e9,
            "lasts": one.traffic.duration / 1e9,
            "out": str(folder / step.stdout),
            "err": str(folder / step.stderr),
            "ready": None,
            "linger": step.linger / 1e9,
            "service": step.service,
            "expect": sorted(step.expect),
        }
