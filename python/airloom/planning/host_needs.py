"""Finds features of the kernel, daemons and folders that a plan needs and this machine lacks.

Such a scenario is valid and can run elsewhere: ``airloom check`` prints a note, and a run fails
before it starts.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from airloom.errors import HostError
from airloom.host import radios
from airloom.host.machine import memory_octets
from airloom.planning import frr, neighbours
from airloom.planning.plan import Plan

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/lib/modules")
FRR = Path(frr.FOLDER)
SYSCTL = "net.ipv4.tcp_congestion_control"


def lacks(plan: Plan, *, measure: bool = True) -> list[HostError]:
    """Returns what this machine lacks for a plan, each once; ``measure=False`` skips measurements."""
    found: dict[str, HostError] = {}
    for where, name in _congestion(plan, measure):
        if not _has(name):
            found.setdefault(name, _lacking(where, name))
    if missing := sorted(set(_daemons(plan))):
        found["frr"] = HostError(
            "host.frr",
            f"this machine has no {', '.join(missing)}, which 'routing' starts",
            cure="sudo apt-get install frr",
        )
    for error in _targets(plan):
        found.setdefault(str(error), error)
    if (lack := _radios(plan)) is not None:
        found["radios"] = lack
    if (lack := _memory(plan)) is not None:
        found["memory"] = lack
    if (lack := neighbours.lack(plan)) is not None:
        found["neighbours"] = lack
    return list(found.values())


def guest_memory(plan: Plan) -> dict[tuple[str, str], int]:
    """Returns the octets that each guest may use; a guest that several nodes share stands there once."""
    return {
        ("guest", node.guest.shared) if node.guest.shared is not None else ("node", name): node.guest.memory
        for name, node in plan.nodes.items()
        if node.guest is not None
    }


def _memory(plan: Plan) -> HostError | None:
    """Returns an error if the guests may use more memory together than this machine has.

    What a guest was given it may use at any time, and the kernel then ends one of the programs.
    """
    guests = guest_memory(plan)
    asked, there = sum(guests.values()), memory_octets()
    if asked <= there:
        return None
    return HostError(
        "host.memory",
        f"the {len(guests)} guests of this scenario have {asked / 2**30:.1f} GiB of memory together, and "
        f"this machine has {there / 2**30:.1f} GiB",
        where="nodes",
        cure="give them less with 'guest: {memory: 64 MiB}', or have fewer of them",
    )


def _radios(plan: Plan) -> HostError | None:
    """Returns an error if nodes have wireless devices of this machine's kernel, and it has none."""
    ports = [
        f"nodes.{name}.radios.{interface.name}.device"
        for name, node in plan.nodes.items()
        for interface in node.interfaces
        if node.guest is None and interface.wlan is not None
    ]
    found = radios.lack() if ports else None
    if found is None:
        return None
    return HostError("host.radios", found[0], where=ports[0], cure=found[1])


def _targets(plan: Plan) -> Iterator[HostError]:
    """Yields mounts that have no place: only an image gets a new folder in its root."""
    for node in plan.nodes.values():
        for number, mount in enumerate(node.mounts if node.image is None else ()):
            first = Path(*Path(mount.target).parts[:2])
            if not first.is_dir() and not Path(mount.target).exists():
                yield HostError(
                    "host.mount",
                    f"this machine has no folder {first}, and a node of kind {node.kind} has its folders",
                    where=f"nodes.{node.name}.mounts[{number}].target",
                    cure="name a target below /mnt, /srv or /tmp",
                )


def _daemons(plan: Plan) -> Iterator[str]:
    """Yields the missing daemons of FRR in nodes with this machine's files."""
    for program in plan.scenario.programs:
        path = program.run[0] if isinstance(program.run, list) else ""
        node = plan.nodes.get(program.node)
        if node is None or Path(path).parent != FRR or node.image is not None:
            continue
        if (node.guest is None or node.guest.root is None) and not os.access(path, os.X_OK):
            yield path


def _congestion(plan: Plan, measure: bool) -> Iterator[tuple[str, str]]:
    """Yields TCP congestion controls needed on this machine's kernel, with their places."""
    own = [name for name, node in plan.nodes.items() if node.kind not in neighbours.OWN_KERNELS]
    for name in own:
        said = plan.nodes[name].sysctl.get(SYSCTL)
        if said is not None:
            yield f"nodes.{name}.sysctl.{SYSCTL}", said.strip()
    for measurement in plan.scenario.measurements if measure else ():
        tool = measurement.iperf3 or measurement.test
        if tool is not None and tool.congestion is not None and (tool.source in own or tool.to in own):
            yield f"measurements[{measurement.name}].{measurement.word}.congestion", tool.congestion


def _has(name: str) -> bool:
    """True if the kernel has the algorithm built in or as a module that it can load."""
    if name in _available():
        return True
    modules = MODULES / os.uname().release / "kernel" / "net" / "ipv4"
    return name.isidentifier() and any(modules.glob(f"tcp_{name}.ko*"))


def _available() -> list[str]:
    try:
        return AVAILABLE.read_text().split()
    except OSError:
        return []


def _lacking(where: str, name: str) -> HostError:
    known = _available()
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return HostError(
        "host.congestion",
        f"this machine's kernel has no TCP congestion control {name!r}",
        where=where,
        cure=f"{hint}it has: {', '.join(known) or 'none that can be read'}",
    )
