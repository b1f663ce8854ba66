"""Running one scenario on several kinds of nodes, to compare what each makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from airloom import runs
from airloom.errors import ScenarioError
from airloom.nodes.world import KINDS
from airloom.scenario.gate import Experiment
from airloom.scenario.model import Scenario
from airloom.watch import Watcher


def of_kind(scenario: Scenario, kind: str) -> Scenario:
    """The scenario with all its nodes, generated ones too, of one kind."""
    if kind not in KINDS:
        raise ScenarioError(
            "kind.unknown",
            f"there is no kind of node {kind!r}",
            where="--kinds",
            cure=f"kinds: {', '.join(KINDS)}",
        )
    same = {"kind": None}  # as the scenario
    nodes = {name: node.model_copy(update=same) for name, node in scenario.nodes.items()}
    topology = scenario.topology
    if topology is not None:
        topology = topology.model_copy(update={"node": topology.node.model_copy(update=same)})
    return scenario.model_copy(update={"kind": kind, "nodes": nodes, "topology": topology})


def prepared(source: Path, kinds: Sequence[str], *, repetitions: int | None = None) -> dict[str, Experiment]:
    """A scenario on each of some kinds, checked."""
    if len(set(kinds)) < 2:
        raise ScenarioError(
            "compare.kinds",
            "a comparison needs two kinds or more",
            where="--kinds",
            cure="such as --kinds netns,uml",
        )
    scenario = runs.prepare(source, repetitions=repetitions).scenario
    scenarios = {kind: of_kind(scenario, kind) for kind in kinds}
    return {kind: runs.prepare(one) for kind, one in scenarios.items()}


def on_kinds(
    experiments: Mapping[str, Experiment],
    *,
    out: Path | None = None,
    profile: bool = False,
    watcher: Watcher | None = None,
) -> list[Path]:
    """Runs what was :func:`prepared` for each kind, in order; gives the folders of the runs."""
    name = next(iter(experiments.values())).scenario.name
    base = out if out is not None else runs.default_folder(f"{name}-kinds")
    folders = []
    for kind, experiment in experiments.items():
        folder = base / kind
        runs.execute(
            experiment, folder, capture=False, profile=profile, resume=False, watcher=watcher or Watcher()
        )
        folders.append(folder)
    return folders
