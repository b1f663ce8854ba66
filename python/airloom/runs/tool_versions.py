"""Versions of the measuring programs, of guests' kernels, and of the programs that make nodes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping

from airloom.errors import LabError
from airloom.measure.tool import Step
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import NodePlan
from airloom.units.text import of_nodes

QEMU, OPEN_VSWITCH = f"qemu-system-{os.uname().machine}", "ovs-vswitchd"
"""Programs of this machine that nodes are made of."""
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


def platform_versions(plans: Mapping[str, NodePlan], nodes: Mapping[str, NodeHandle]) -> dict[str, str]:
    """Returns the versions of guests' kernels, by ``KIND kernel``, and of the host's programs behind kinds.

    Guests of one kind and image have one kernel, so that one of them is asked.
    """
    found: dict[str, dict[str, list[str]]] = {}
    known: dict[tuple[str, str], str] = {}
    for name, plan in plans.items():
        if plan.guest is None or name not in nodes:
            continue
        key = (plan.kind, repr((plan.image, plan.guest)))
        if not known.get(key):
            known[key] = _asked(nodes[name], ("uname", "-r"))
        if known[key]:
            found.setdefault(f"{plan.kind} kernel", {}).setdefault(known[key], []).append(name)
    versions = {
        title if len(each) == 1 else f"{title} ({of_nodes(named)})": version
        for title, each in sorted(found.items())
        for version, named in each.items()
    }
    programs = [QEMU] if any(plan.kind == "qemu" for plan in plans.values()) else []
    programs += [OPEN_VSWITCH] if any(plan.openvswitch is not None for plan in plans.values()) else []
    for program in programs:
        if version := _printed(program):
            versions[program] = version
    return versions


def _printed(program: str) -> str:
    """The first line of what a program of this machine prints as its version; empty without an answer."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_LIMIT)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0].strip()[:_LONGEST] if lines else ""


def _asked(node: NodeHandle, argv: tuple[str, ...]) -> str:
    try:
        done = node.exec(argv, timeout=_LIMIT)
    except LabError:  # the node has ended
        return ""
    # BusyBox prints its version to standard error.
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[0].strip()[:_LONGEST] if lines else ""
