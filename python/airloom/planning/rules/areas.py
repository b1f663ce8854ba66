"""Rules of switches that use shortest paths."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.links import areas
from airloom.planning.network import Network
from airloom.scenario.model import Scenario, Switch
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with areas."""
    for name, switch in scenario.switches.items():
        yield from _switch(name, switch, ("switches", name))
    if scenario.topology is not None:
        yield from _switch("the topology", scenario.topology.switch, ("topology", "switch"))
    members = areas.of(network)
    for name, first in members.items():
        own, other = (network.switches[one].convergence.text for one in (name, first))
        if own != other:
            path: Path_ = ("switches", name if name in scenario.switches else first, "convergence")
            yield Problem(
                "switch.convergence",
                f"{name!r} and {first!r} are in one area, with a convergence of {own} and {other}",
                path,
                "set the same for all switches that links join",
            )
    for wire in network.wires:
        if wire.speaks_of_vlans and areas.is_inner(wire, members):
            word = "vlan" if wire.vlan is not None else "trunk"
            yield Problem(
                "vlan.inner",
                f"{word!r} is a setting of the edge of an area, and a link between two of its switches "
                "carries all VLANs",
                (*wire.path, word),
                "leave it out",
                key=True,
            )


def _switch(name: str, switch: Switch, path: Path_) -> Iterator[Problem]:
    shortest = switch.forwarding == areas.FORWARDING
    if shortest and switch.kind != "switch":
        other = "a hub repeats every frame" if switch.kind == "hub" else "Open vSwitch forwards by itself"
        yield Problem(
            "switch.forwarding",
            f"{name!r} of kind {switch.kind} has no shortest paths: {other}",
            (*path, "forwarding"),
            "make it of kind switch, or leave the forwarding out",
            key=True,
        )
    if not shortest and "convergence" in switch.model_fields_set:
        yield Problem(
            "switch.forwarding",
            f"{name!r} computes no paths, so it has no convergence",
            (*path, "convergence"),
            f"set forwarding: {areas.FORWARDING}",
            key=True,
        )
