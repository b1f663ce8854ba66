"""Finds features of the kernel, daemons and folders that a plan needs and this machine lacks.

Paths are asked for with :mod:`os.path`, which has no error for a folder closed to this user.
Such a scenario is valid and can run elsewhere: ``airloom check`` prints a note, and a run fails
before it starts.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from airloom.errors import HostError
from airloom.host import binaries, programs, radios
from airloom.host.machine import memory_octets
from airloom.planning.links import neighbours
from airloom.planning.plan import Plan
from airloom.planning.routing import frr
from airloom.scenario.command_line import words_of

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
            f"this machine has no {', '.join(missing)}, which 'routing' or a program starts",
            cure="sudo apt-get install frr",
        )
    for error in _programs(plan):
        found.setdefault(str(error.message), error)
    for error in _files(plan):
        found.setdefault(str(error), error)
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
            target = Path(mount.target)
            first = Path(*target.parts[:2])
            no_folder = _no_folder(target)
            if no_folder is not None:
                why = f"{no_folder} is no folder on this machine"
            elif not os.path.isdir(first) and not os.path.exists(target):
                why = f"this machine has no folder {first}"
            elif os.path.exists(target) and os.path.isdir(target) != os.path.isdir(mount.source):
                words = ("a folder", "a file") if os.path.isdir(target) else ("a file", "a folder")
                why = f"{target} is {words[0]} on this machine, and the source is {words[1]}"
            else:
                continue
            yield HostError(
                "host.mount",
                f"{why}, and a node of kind {node.kind} has its folders",
                where=f"nodes.{node.name}.mounts[{number}].target",
                cure="name a target below /mnt, /srv or /tmp",
            )


def _no_folder(path: Path) -> Path | None:
    """Returns what stands on this machine where a path needs a folder; None if nothing does."""
    return next((one for one in path.parents if os.path.lexists(one) and not os.path.isdir(one)), None)


def _files(plan: Plan) -> Iterator[HostError]:
    """Yields files that have no place on this machine, of nodes with its files."""
    for node in plan.nodes.values():
        if node.image is not None or (node.guest is not None and node.guest.root is not None):
            continue
        for file in node.files:
            path = Path(file)
            first = Path(*path.parts[:2])
            no_folder = _no_folder(path)
            if no_folder is not None:
                why = f"{no_folder} is no folder on this machine"
            elif len(path.parts) < 3 or not os.path.isdir(first):
                why = (
                    f"this machine has no folder {first}" if len(path.parts) > 2 else "nothing is added to /"
                )
            elif os.path.isdir(path):
                why = f"{file} is a folder on this machine"
            else:
                continue
            yield HostError(
                "host.file",
                f"{why}, and a node of kind {node.kind} has its folders",
                where=f"nodes.{node.name}.files.{file}",
                cure="name a path below a folder that is there, such as /etc or /srv",
            )


def _daemons(plan: Plan) -> Iterator[str]:
    """Yields the missing daemons of FRR in nodes with this machine's files."""
    for program in plan.scenario.programs:
        path = next(iter(words_of(program.run)), "")
        node = plan.nodes.get(program.node)
        if node is None or Path(path).parent != FRR or node.image is not None:
            continue
        if (node.guest is None or node.guest.root is None) and not os.access(path, os.X_OK):
            yield path


def _programs(plan: Plan) -> Iterator[HostError]:
    """Yields programs that are not installed, of nodes with this machine's files.

    A path in a folder of the node's own may be written while it runs, so it is not looked for.
    """
    for index, program in enumerate(plan.scenario.programs):
        node = plan.nodes.get(program.node)
        if node is None or node.image is not None or (node.guest is not None and node.guest.root is not None):
            continue
        name = next(iter(words_of(program.run)), "")
        given = [*node.files, *(mount.target for mount in node.mounts)]
        if not name or Path(name).parent == FRR or "PATH" in program.env:
            continue
        if "/" not in name:
            there = programs.find(name) is not None or any(Path(path).name == name for path in given)
        else:
            hidden = not name.startswith("/") or binaries.is_hidden(Path(name))
            there = hidden or os.path.exists(name) or any(Path(name).is_relative_to(path) for path in given)
        if not there:
            near = difflib.get_close_matches(name, programs.installed(), 1, 0.75)
            hint = f"did you mean {near[0]}? " if near else ""
            yield HostError(
                "host.program",
                f"the program {name} is not installed on this machine",
                where=f"programs[{index}].run",
                cure=f"{hint}{programs.cure([name])}",
            )


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
