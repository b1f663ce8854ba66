"""The radios of a scenario: those of its nodes and of a generator, with their merged settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airloom.scenario.model import Node, Radio, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest

GENERATED = "wlan0"
"""Name of a generated node's radio."""


@dataclass(slots=True)
class RadioEnd:
    """A radio with its settings from the node, the generator and the medium."""

    node: str
    name: str
    medium: str
    path: Path_
    said: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, Path_] = field(default_factory=dict)
    """Key: where it was set."""
    access: str = "dcf"
    """Channel access of its medium."""

    @property
    def port(self) -> str:
        """``node:interface``."""
        return f"{self.node}:{self.name}"

    def said_at(self, key: str) -> Path_:
        """Returns the place where a key is set, or else the place of the radio."""
        return self.origin.get(key, self.path)


def radios_of(
    scenario: Scenario, nodes: dict[str, Node], generated: list[str]
) -> tuple[list[RadioEnd], list[Problem]]:
    """Returns all radios in node order."""
    ends: list[RadioEnd] = []
    problems: list[Problem] = []
    topology = scenario.topology
    of_topology = topology.radio if topology is not None else None
    made = set(generated)
    for node, said in nodes.items():
        own = scenario.nodes.get(node)
        names = dict.fromkeys([GENERATED] if node in made and of_topology is not None else [])
        names |= dict.fromkeys(said.radios)
        for name in names:
            layers: list[tuple[Radio, Path_]] = []
            if own is not None and name in own.radios:
                layers.append((own.radios[name], ("nodes", node, "radios", name)))
            if node in made and topology is not None:
                if name in topology.node.radios:
                    layers.append((topology.node.radios[name], ("topology", "node", "radios", name)))
                if of_topology is not None and name == GENERATED:
                    layers.append((of_topology, ("topology", "radio")))
            path = layers[0][1]
            medium, problem = _medium(scenario, layers, path)
            if medium is None:
                if problem is not None and problem.path not in [known.path for known in problems]:
                    problems.append(problem)
                continue
            layers.append((scenario.media[medium].radio, ("media", medium, "radio")))
            end = RadioEnd(node, name, medium, path, access=scenario.media[medium].access.model)
            for layer, where in layers:
                for key in layer.model_fields_set:
                    value = getattr(layer, key)
                    if value is not None and key not in end.said:
                        end.said[key] = value
                        end.origin[key] = (*where, key)
            ends.append(end)
    return ends, problems


def _medium(
    scenario: Scenario, layers: list[tuple[Radio, Path_]], path: Path_
) -> tuple[str | None, Problem | None]:
    for layer, where in layers:
        if layer.medium is not None:
            if layer.medium in scenario.media:
                return layer.medium, None
            cure = nearest(layer.medium, scenario.media) if scenario.media else "describe it under 'media:'"
            return None, Problem(
                "medium.unknown", f"there is no medium {layer.medium!r}", (*where, "medium"), cure
            )
    if len(scenario.media) == 1:
        return next(iter(scenario.media)), None
    several = ", ".join(scenario.media)
    return None, Problem(
        "radio.medium",
        "the radio has no medium",
        path,
        f"say which: medium: {several}" if several else "describe one: media: {air: {}}",
        key=True,
    )
