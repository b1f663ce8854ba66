"""Runs of one scenario on several node kinds, for a comparison of the kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.nodes.all_nodes import KINDS
from airloom.planning.gate import Experiment
from airloom.planning.machine import default_image
from airloom.planning.machine.containers import KIND as CONTAINER
from airloom.runs import batch
from airloom.runs.progress import Watcher
from airloom.scenario.model import Node, Scenario


def of_kind(scenario: Scenario, kind: str) -> Scenario:
    """Returns the scenario with all nodes, also generated ones and slivers, set to one kind.

    Container nodes keep their image; without one they contain this machine's programs.
    """
    if kind not in KINDS:
        raise ScenarioError(
            "kind.unknown",
            f"there is no kind of node {kind!r}",
            where="--kinds",
            cure=f"kinds: {', '.join(KINDS)}",
        )
    # Only containers have an image; all other settings of a node are the same on every kind.
    same = {"kind": None} if kind == CONTAINER else {"kind": None, "image": None}

    def alike(node: Node) -> Node:
        return node.model_copy(update=same)

    topology = scenario.topology
    if topology is not None:
        topology = topology.model_copy(update={"node": alike(topology.node)})
    slices = {name: one.model_copy(update={"node": alike(one.node)}) for name, one in scenario.slices.items()}
    return default_image.provided(
        scenario.model_copy(
            update={
                **same,
                "kind": kind,
                "nodes": {name: alike(node) for name, node in scenario.nodes.items()},
                "topology": topology,
                "slices": slices,
            }
        )
    )


def prepared(source: Path, kinds: Sequence[str], *, repetitions: int | None = None) -> dict[str, Experiment]:
    """Returns the checked scenario for each kind."""
    if len(set(kinds)) < 2:
        raise ScenarioError(
            "compare.kinds",
            "a comparison needs two kinds or more",
            where="--kinds",
            cure="such as --kinds netns,uml",
        )
    scenario = batch.prepare(source, repetitions=repetitions).scenario
    scenarios = {kind: of_kind(scenario, kind) for kind in kinds}
    return {kind: batch.prepare(one) for kind, one in scenarios.items()}


def on_kinds(
    experiments: Mapping[str, Experiment],
    *,
    out: Path | None = None,
    profile: bool = False,
    watcher: Watcher | None = None,
) -> list[Path]:
    """Runs the :func:`prepared` scenarios in order; returns the folders of the runs."""
    name = next(iter(experiments.values())).scenario.name
    base = out if out is not None else batch.default_folder(f"{name}-kinds")
    folders = []
    for kind, experiment in experiments.items():
        folder = base / kind
        batch.execute(
            experiment, folder, capture=False, profile=profile, resume=False, watcher=watcher or Watcher()
        )
        folders.append(folder)
    return folders
