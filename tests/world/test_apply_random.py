"""Random pairs of scenarios: what was applied to a running laboratory is what a fresh start is."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

import airloom
from airloom import Scenario, ScenarioError
from airloom.lab.live_plan import live_plan
from helpers.laboratories import everything
from helpers.nodes import eventually

pytestmark = pytest.mark.world

PAIRS = int(os.environ.get("AIRLOOM_TEST_PAIRS", "10"))
"""Pairs of scenarios, the same each time; by hand more, and others each time."""

HOST = f"127.{os.getpid() >> 16 & 63 | 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""An address of this machine for published ports that no other run of this test uses."""

HOSTS, SWITCHES = ("h1", "h2", "h3", "h4"), ("s1", "s2")
SWITCH_KINDS = ["engine", *(["openvswitch"] if shutil.which("ovs-vswitchd") else [])]

_LINK = st.fixed_dictionaries(
    {},
    optional={
        "delay": st.sampled_from(["1 ms", "2 ms"]),
        "rate": st.sampled_from(["10 Mbit/s", "20 Mbit/s"]),
        "loss": st.just("1 %"),
        "mtu": st.sampled_from([1400, 1500]),
        "queue": st.sampled_from([{"packets": 50}, {"discipline": "codel"}]),
        "forward": st.sampled_from([{"delay": "5 ms"}, {"rate": "5 Mbit/s"}]),
    },
)
_HOST = st.fixed_dictionaries(
    {},
    optional={
        "forwarding": st.booleans(),
        "sysctl": st.just({"net.ipv4.ip_default_ttl": "32"}),
        "files": st.sampled_from([{"/etc/motd": "one"}, {"/etc/motd": "two"}]),
        "publish": st.lists(st.sampled_from([8001, 8002]), min_size=1, max_size=1),
    },
)
_RADIO = st.fixed_dictionaries(
    {},
    optional={
        "power": st.sampled_from(["5 dBm", "12 dBm"]),
        "channel": st.sampled_from([36, 44]),
        "ssid": st.sampled_from(["one", "two"]),
        "up": st.booleans(),
    },
)
_MEDIUM = st.fixed_dictionaries(
    {},
    optional={
        "propagation": st.sampled_from([{"model": "friis"}, {"model": "log-distance", "exponent": 3.5}]),
        "fading": st.just({"model": "rayleigh"}),
        "noise": st.just([{"channel": 36, "power": "-20 dBm", "position": ["3 m", "0 m"]}]),
    },
)
_PROGRAMS = st.sampled_from(["sleep 1000", "sleep 2000", "tail -f /dev/null"])
_PLACES = st.sampled_from([["0 m", "0 m"], ["30 m", "4 m"]])
_LATER = st.sampled_from(["900 s", "1000 s"])


@st.composite
def _wired(draw: st.DrawFn) -> dict[str, Any]:
    """Hosts, some of them with ports of this machine, and switches, with links between any."""
    hosts = draw(st.lists(st.sampled_from(HOSTS), min_size=2, unique=True))
    switches = draw(st.lists(st.sampled_from(SWITCHES), unique=True))
    nodes = {name: draw(_HOST) for name in hosts}
    taken = set()
    for node in nodes.values():
        free = [port for port in node.pop("publish", []) if port not in taken]
        taken.update(free)
        if free:
            node["publish"] = [{"port": 80, "host_port": port, "host_address": HOST} for port in free]
    places = st.sampled_from([*hosts, *switches])
    pairs = draw(st.lists(st.tuples(places, places), max_size=5, unique_by=frozenset))
    links = [{"ends": list(pair), **draw(_LINK)} for pair in pairs if pair[0] != pair[1]]
    kinds = {name: {"kind": draw(st.sampled_from(SWITCH_KINDS))} for name in switches}
    kinds = {name: {} if kind["kind"] == "engine" else kind for name, kind in kinds.items()}
    return {"nodes": nodes, "switches": kinds, "links": links}


@st.composite
def _air(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes with a radio each, or nodes that slices share."""
    if draw(st.booleans()):
        nodes = {
            name: {"position": draw(_PLACES), "radios": {"wlan0": draw(_RADIO)}}
            for name in ("a", *draw(st.lists(st.sampled_from(["b", "c"]), unique=True)))
        }
        return {"nodes": nodes, "media": {"air": draw(_MEDIUM)}}
    nodes = {name: {"position": draw(_PLACES), "radios": {"wlan0": {}, "wlan1": {}}} for name in ("p", "q")}
    channels = {"one": [36], "two": [44]}
    powers = st.sampled_from(["7 dBm", "10 dBm"])
    slices = {
        name: {"grant": {"nodes": ["p", "q"], "channels": channels[name], "power": draw(powers)}}
        for name in draw(st.lists(st.sampled_from(["one", "two"]), min_size=1, unique=True))
    }
    return {"nodes": nodes, "media": {"air": draw(_MEDIUM)}, "slices": slices}


@st.composite
def _events(draw: st.DrawFn, has: dict[str, Any]) -> list[dict[str, Any]]:
    """Events to come, of what there is."""
    possible: list[dict[str, Any]] = [{"node": "h1", "action": "pause"}] if "h1" in has["nodes"] else []
    for link in has["links"]:
        name = "-".join(link["ends"])
        possible += [{"link": name, "action": "down"}, {"link": name, "set": {"delay": "9 ms"}}]
    if "a" in has["nodes"]:
        possible += [
            {"radio": "a:wlan0", "tune": {"power": "3 dBm"}},
            {"node": "a", "position": ["7 m", "7 m"]},
        ]
    possible += [{"slice": name, "grant": {"power": "6 dBm"}} for name in has.get("slices", {})]
    if not possible:
        return []
    return [
        {"at": draw(_LATER), **event}
        for event in draw(st.lists(st.sampled_from(possible), max_size=2, unique_by=str))
    ]


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    has: dict[str, Any] = {"name": "random", **draw(_wired())}
    if draw(st.booleans()):
        air = draw(_air())
        has["nodes"] |= air.pop("nodes")
        has |= air
    hosts = [name for name in has["nodes"] if name in HOSTS]
    runs = draw(st.lists(st.tuples(st.sampled_from(hosts), _PROGRAMS), max_size=3))
    has["programs"] = [{"node": node, "run": run, "until_end": True} for node, run in runs]
    has["events"] = draw(_events(has))
    return has


@settings(
    max_examples=PAIRS,
    derandomize="AIRLOOM_TEST_PAIRS" not in os.environ,
    phases=[Phase.explicit, Phase.generate],  # a smaller example costs a laboratory for each attempt
    suppress_health_check=list(HealthCheck),
)
@given(scenarios(), scenarios())
@pytest.mark.timeout(120 + 30 * PAIRS)
def test_what_was_applied_is_what_a_fresh_start_is(one, other):
    pair = [Scenario.model_validate(raw) for raw in (one, other)]
    try:
        for scenario in pair:
            live_plan(scenario)
    except ScenarioError:
        assume(False)
    note(pair[0].to_yaml())
    note(pair[1].to_yaml())
    with tempfile.TemporaryDirectory() as out:
        with airloom.Lab(pair[1], out=Path(out, "fresh")) as lab:
            wanted = settled(lab)
        with airloom.Lab(pair[0], out=Path(out, "live")) as lab:
            before = settled(lab)
            try:
                lab.apply(pair[1])
            except ScenarioError as error:
                note(f"refused: {error.message}")
                assert everything(lab) == before
                return
            reached(lab, wanted)
            assert lab.apply(pair[1]) == ()


def settled(lab: airloom.Lab) -> dict[str, Any]:
    """What a laboratory is as soon as its programs run and its carriers are there."""
    programs = sorted(one.name for one in lab.plan.scenario.programs)
    eventually(lambda: everything(lab)["programs"] == programs, "the programs run")
    return everything(lab)


def reached(lab: airloom.Lab, wanted: dict[str, Any]) -> None:
    """Waits until a laboratory is as wanted; shows what is otherwise after a time."""
    with contextlib.suppress(AssertionError):
        eventually(lambda: everything(lab) == wanted, "it is as after a fresh start", within=20)
    assert list(differing(everything(lab), wanted)) == []


def differing(has: Any, wanted: Any, place: str = "") -> Iterator[str]:
    """Where two states differ, and how."""
    if isinstance(has, dict) and isinstance(wanted, dict):
        for key in sorted(has.keys() | wanted.keys(), key=str):
            yield from differing(has.get(key), wanted.get(key), f"{place} {key}")
    elif has != wanted:
        yield f"{place.strip()}: {has}, not {wanted}"
