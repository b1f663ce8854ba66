"""Running one scenario on several kinds of nodes, to compare what each makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.nodes.all_nodes import KINDS
from airloom.planning import default_image
from airloom.planning.containers import KIND as CONTAINER
from airloom.planning.gate import Experiment
from airloom.runs import batch
from airloom.runs.progress import Watcher
from airloom.scenario.model import Node, Scenario


def of_kind(scenario: Scenario, kind: str) -> Scenario:
    """The scenario with all its nodes, generated ones and slivers too, of one kind.

    A container has its image; one that has none gets this machine's programs, as the other kinds have.
    """
    if kind not in KINDS:
        raise ScenarioError(
            "kind.unknown",
            f"there is no kind of node {kind!r}",
            where="--kinds",
            cure=f"kinds: {', '.join(KINDS)}",
        )
    # An image is a container's; what else a node has is the same on every kind.
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
    """A scenario on each of some kinds, checked."""
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
    """Runs what was :func:`prepared` for each kind, in order; gives the folders of the runs."""
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
