"""Rules of positions and movements."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.errors import ScenarioError
from airloom.planning.network import Network
from airloom.planning.radio import media as words
from airloom.planning.radio.movement import movements
from airloom.planning.rules.ask import refusal
from airloom.planning.rules.parameters import takes
from airloom.scenario.model import Mobility, Noise, Scenario
from airloom.scenario.model.motion import TRACES
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

_MOBILITY: dict[str, tuple[str, ...]] = {
    "velocity": ("velocity",),
    "random-waypoint": ("area", "corner", "speed", "pause"),
    "random-walk": ("area", "corner", "speed", "interval"),
    "gauss-markov": ("area", "corner", "speed", "interval", "memory", "turn"),
    "group": ("group", "reference", "radius", "speed"),
    "path": ("points",),
    **dict.fromkeys(TRACES, ("file", "node", "start")),
    "sumo": ("file", "node", "start", "geographic"),
}
_MOVES_BY: dict[str, tuple[str, ...]] = {
    "velocity": ("velocity",),
    "random-waypoint": ("area", "speed"),
    "random-walk": ("area", "speed"),
    "gauss-markov": ("area", "speed"),
    "group": ("reference", "radius"),
    "path": ("points",),
    **dict.fromkeys(TRACES, ("file",)),
}


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with positions and movements of nodes."""
    with_radios = {name for name, node in network.nodes.items() if node.radios}
    with_radios |= {end.node for end in network.radios} | set(network.shared())
    said = [(("nodes", name), node) for name, node in scenario.nodes.items()]
    if scenario.topology is not None:
        said.append((("topology", "node"), scenario.topology.node))
    for path, node in said:
        if path[0] == "nodes" and path[1] not in with_radios:
            for key in ("position", "mobility"):
                if getattr(node, key) is not None:
                    yield Problem(
                        "position.useless",
                        f"{path[1]!r} has no radio, so its position has no effect",
                        (*path, key),
                        "give it one under 'radios:'",
                        key=True,
                    )
        if path[0] == "topology" and not with_radios.intersection(network.generated):
            for key in ("position", "mobility"):
                if getattr(node, key) is not None:
                    yield Problem(
                        "position.useless",
                        "the generated nodes have no radio, so that they have no place",
                        (*path, key),
                        "give them one by 'radio:' of the topology",
                        key=True,
                    )
        if node.mobility is None:
            continue
        where: Path_ = (*path, "mobility")
        wrong = list(_mobility(node.mobility, where))
        yield from wrong
        if wrong or node.mobility.model in TRACES or node.mobility.model == "velocity":
            continue
        motion = words.motion(node)
        found = refusal(lambda engine, motion=motion: engine.check_motion("the node", motion))  # type: ignore[misc]
        if found is not None:
            yield Problem(found[0], found[1], where)


def _mobility(moves: Mobility, path: Path_) -> Iterator[Problem]:
    yield from takes(moves, _MOBILITY, _MOVES_BY, path)
    if moves.reference is not None:
        if moves.reference.model in ("velocity", "group", *TRACES):
            yield Problem(
                "model.parameter",
                f"a group's reference cannot be {moves.reference.model!r}",
                (*path, "reference", "model"),
                "random-waypoint, random-walk, gauss-markov or path",
            )
        else:
            yield from _mobility(moves.reference, (*path, "reference"))


def of_traces(network: Network) -> Iterator[Problem]:
    """Yields what is wrong with the traces of nodes that move by one."""
    numbers = words.traced(network)
    told: set[str | None] = set()
    for name, number in numbers.items():
        moves = network.nodes[name].mobility
        assert moves is not None
        if moves.file in told:
            continue
        where: Path_ = ("nodes", name, "mobility", "file")
        wrong = list(_traced(moves, number, where))
        if any(problem.code != "mobility.trace.node" for problem in wrong):
            told.add(moves.file)
        yield from wrong


def _traced(moves: Mobility, number: int | str, where: Path_) -> Iterator[Problem]:
    """Checks a trace and its entry for one node."""
    try:
        wrong = refusal(lambda _: movements(moves))
    except ScenarioError as error:
        yield Problem(error.code, error.message, where, error.cure)
        return
    if wrong is not None:
        yield Problem(wrong[0], wrong[1], where)
        return
    found = movements(moves)
    if found.get(number) is None:
        known = found.known
        yield Problem(
            "mobility.trace.node",
            f"the trace has no node {number}",
            where,
            f"it moves {len(known)} nodes: {', '.join(known[:12])}",
        )


def of_noise(noise: Noise, where: Path_) -> Iterator[Problem]:
    """Yields what is wrong with the movement of a source of noise."""
    moves = noise.mobility
    if moves is None:
        return
    path = (*where, "mobility")
    wrong = list(_mobility(moves, path))
    yield from wrong
    if wrong or moves.model not in TRACES:
        return
    if moves.node is None:
        yield Problem(
            "model.parameter", f"{moves.model!r} of a noise needs 'node'", path, "its number in the file"
        )
        return
    yield from _traced(moves, moves.node, (*path, "file"))
