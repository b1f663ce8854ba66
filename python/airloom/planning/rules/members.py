"""Members of turns and of processors: nodes or guests that have a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airloom.planning.machine.guests import MEMORY
from airloom.planning.network import Network
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest


@dataclass(frozen=True, slots=True)
class Words:
    """How a rule speaks of its members."""

    key: str
    """Of the scenario, such as ``turns``."""
    does: str
    """What a member does or has."""
    must: str
    """What must be possible with a member as a whole."""


def problems(
    groups: Mapping[str, Sequence[str]], words: Words, scenario: Scenario, network: Network
) -> Iterator[Problem]:
    """Checks that each member of these groups is named once, and is a machine of its own."""
    taken: dict[str, str] = {}
    for group, names in groups.items():
        for number, name in enumerate(names):
            path = (words.key, group, "nodes", number)
            if name in taken:
                where = "there" if taken[name] == group else f"in {taken[name]!r}"
                message = f"{name!r} {words.does} {where} already"
                yield Problem(f"{words.key}.twice", message, path, "name it once")
            taken[name] = group
            yield from _machine(name, path, words, scenario, network)


def _machine(name: str, path: Path_, words: Words, scenario: Scenario, network: Network) -> Iterator[Problem]:
    rule, must = words.key, words.must
    if name in scenario.guests:
        return
    node = network.nodes.get(name)
    if node is None:
        slivers = [sliver for sliver, one in network.slivers.items() if one.node == name]
        message = f"{name!r} is shared by slices" if slivers else f"there is no node or guest {name!r}"
        cure = f"name slivers: {', '.join(slivers)}" if slivers else nearest(name, _able(scenario, network))
        yield Problem(f"{rule}.node", message, path, cure)
    elif node.inside is not None:
        message = f"{name!r} shares the kernel of its guest {node.inside!r}, which cannot {must} in part"
        yield Problem(f"{rule}.inside", message, path, f"name the guest: {node.inside}")
    elif (kind := node.kind or scenario.kind) not in MEMORY:
        yield Problem(
            f"{rule}.kind",
            f"{name!r} is of kind {kind}: its network stack is this machine's, and cannot {must}",
            path,
            f"make it of kind {' or '.join(MEMORY)}",
        )


def _able(scenario: Scenario, network: Network) -> list[str]:
    """Returns the names of machines."""
    alone = [
        name
        for name, node in network.nodes.items()
        if node.inside is None and (node.kind or scenario.kind) in MEMORY
    ]
    return [*alone, *scenario.guests]
