"""Versions of the measuring programs, asked of the nodes that ran them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airloom.errors import LabError
from airloom.measure.tool import Step
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import NodePlan
from airloom.units.text import of_nodes

_LIMIT = 10.0
"""Seconds for a program to print its version."""
_LONGEST = 120
"""Characters of a version that are kept."""


def tool_versions(
    steps: Iterable[Step], plans: Mapping[str, NodePlan], nodes: Mapping[str, NodeHandle]
) -> dict[str, str]:
    """Returns the first line that each program prints as its version, by the program's name.

    Nodes of one kind and image have the same programs, so one of them is asked. If versions differ,
    the name is followed by the nodes. A program whose nodes do not answer is left out.
    """
    users: dict[str, dict[str, list[str]]] = {}
    known: dict[tuple[str, str, str], str] = {}
    for step in steps:
        if not step.version or step.node not in plans:
            continue
        plan = plans[step.node]
        key = (step.argv[0], plan.kind, repr((plan.image, plan.guest)))
        if not known.get(key):
            known[key] = _asked(nodes[step.node], (step.argv[0], *step.version))
        if known[key]:
            named = users.setdefault(step.argv[0], {}).setdefault(known[key], [])
            if step.node not in named:
                named.append(step.node)
    found = {}
    for program, versions in sorted(users.items()):
        for version, named in versions.items():
            found[program if len(versions) == 1 else f"{program} ({of_nodes(named)})"] = version
    return found


def _asked(node: NodeHandle, argv: tuple[str, ...]) -> str:
    try:
        done = node.exec(argv, timeout=_LIMIT)
    except LabError:  # the node has ended
        return ""
    # BusyBox prints its version to standard error.
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[0].strip()[:_LONGEST] if lines else ""
