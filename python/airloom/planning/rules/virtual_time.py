"""Rules of virtual time: what depends on this machine's clock has no place in it."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.machine.guests import said
from airloom.planning.machine.virtual_time import GUEST
from airloom.planning.network import Network
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

_CODE = "time.virtual"
_CURE = "leave it out, or say time: wall"
_WHY_NOT = {
    "qemu": "its machine follows this machine's clock",
    "native": "its programs follow this machine's clock",
    "container": "its programs follow this machine's clock; an image is not yet the root of a guest",
}
"""Kinds of nodes that follow the clock of this machine."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that cannot be in virtual time."""
    if scenario.time == "virtual":
        yield from _nodes(scenario, network)
        yield from _machine(scenario)
        for name in network.tunnels:
            yield _refused("a tunnel leads to where this machine's clock holds", ("tunnels", name))
        for number, event in enumerate(scenario.events):
            if event.node is not None and event.action == "start":
                words = "a node's action 'start' is not built for virtual time"
                yield _refused(words, ("events", number, "action"), "leave it out, or say time: wall")


def _nodes(scenario: Scenario, network: Network) -> Iterator[Problem]:
    for name, node in network.nodes.items():
        own = scenario.nodes.get(name)
        kind = node.kind or scenario.kind
        if kind != GUEST:
            why = _WHY_NOT.get(kind, "it follows this machine's clock")
            path: Path_ = ("nodes", name, "kind") if own is not None and own.kind else ("kind",)
            yield _refused(f"{name!r} is of kind {kind}: {why}", path, "use netns or uml, or say time: wall")
            continue
        for interface, one in node.interfaces.items():
            if one.real is not None:
                words = f"the interface {one.real!r} of this machine follows its clock"
                yield _refused(words, ("nodes", name, "interfaces", interface, "real"))
        if node.publish:
            words = "a published port is used by programs that follow this machine's clock"
            yield _refused(words, ("nodes", name, "publish"))
        if node.mounts:
            words = "files of this machine in a node, which others may change, are not built for virtual time"
            yield _refused(words, ("nodes", name, "mounts"))
        for key in ("cpu", "cpus"):
            if getattr(node, key) is not None:
                words = f"{key!r} holds for this machine's processors; in virtual time work takes no time"
                yield _refused(words, ("nodes", name, key))
        if said(scenario, node).network == "tap":
            words = f"the interfaces of {name!r} are TAPs of this machine"
            is_own = own is not None and own.guest is not None
            yield _refused(words, (*(("nodes", name) if is_own else ()), "guest", "network"))
    for name, switch in network.switches.items():
        if switch.kind == "openvswitch":
            words = f"the switch {name!r} is a program of this machine, which follows its clock"
            yield _refused(words, ("switches", name, "kind"), "use a switch of the engine, or say time: wall")


def _machine(scenario: Scenario) -> Iterator[Problem]:
    """Settings of this machine's processors."""
    if scenario.cpus is not None:
        words = "'cpus' holds for this machine's processors; in virtual time work takes no time"
        yield _refused(words, ("cpus",))
    for name, guest in scenario.guests.items():
        if guest.cpu is not None:
            words = "'cpu' holds for this machine's processors; in virtual time work takes no time"
            yield _refused(words, ("guests", name, "cpu"))
    if scenario.engine.cpus is not None:
        words = "the engine waits for no clock in virtual time, and needs no processor of its own"
        yield _refused(words, ("engine", "cpus"))


def _refused(words: str, path: Path_, cure: str = _CURE) -> Problem:
    return Problem(_CODE, words, path, cure)
