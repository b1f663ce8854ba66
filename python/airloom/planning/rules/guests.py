"""Rules of virtual machines: nodes with a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from airloom.host.files import head
from airloom.planning.machine import kernel_words
from airloom.planning.machine.guests import (
    LEAST,
    MEMORY,
    MOST_DEVICES,
    MOST_RADIOS,
    said,
    said_at,
    shared_by,
    wlans,
)
from airloom.planning.network import Network
from airloom.scenario.model import Node, Scenario
from airloom.scenario.model.base import BUILT
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest

_REAL_TIME = ("fifo", "round-robin")
_WORDS = {"guest": "machine", "cpu": "share", "cpus": "processors"}
"""What a node in a shared guest cannot have: key and word."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with virtual machines."""
    yield from _shared(scenario, network)
    yield from _inside(scenario, network)
    yield from _radios(scenario, network)
    yield from _devices(scenario, network)
    yield from _once(_memory(scenario, network))
    yield from _once(_kernel(scenario, network))
    yield from _once(_append(scenario, network))
    machines: list[tuple[Path_, str, int]] = [
        (("guest",), scenario.guest.policy, scenario.guest.priority),
    ]
    for name, node in scenario.nodes.items():
        if node.guest is not None:
            own = said(scenario, node)
            machines.append((("nodes", name, "guest"), own.policy, own.priority))
    for name in scenario.guests:
        own = said(scenario, Node(inside=name))
        machines.append((("guests", name), own.policy, own.priority))
    for path, policy, priority in machines:
        if (policy in _REAL_TIME) != (priority > 0):
            yield Problem(
                "guest.priority",
                f"the policy {policy!r} has no priority {priority}",
                path,
                f"{' and '.join(_REAL_TIME)} have 1 to 99, the others none",
            )


def _radios(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks the number of radios that are wireless devices of one machine."""
    for port, wlan in wlans(scenario, network.radios, network.nodes).items():
        if wlan.number == MOST_RADIOS:
            end = next(end for end in network.radios if end.port == port)
            yield Problem(
                "guest.radios",
                f"a kernel has at most {MOST_RADIOS} wireless devices",
                end.path,
                "put the node into another guest",
            )


def _devices(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks the number of devices of each machine of User Mode Linux."""
    wireless = wlans(scenario, network.radios, network.nodes)
    ends = [(end.name, wire.path) for wire in network.wires for end in wire.ends]
    ends += [(end.node, end.path) for end in network.radios if end.port not in wireless]
    machines: dict[str, int] = {}
    for name, path in ends:
        node = network.nodes.get(name)
        if node is None or (node.kind or scenario.kind) != "uml" or said(scenario, node).network == "tap":
            continue
        machine = node.inside or name
        machines[machine] = machines.get(machine, 0) + 1
        if machines[machine] == MOST_DEVICES + 1:
            yield Problem(
                "guest.devices",
                f"a kernel of User Mode Linux has at most {MOST_DEVICES} interfaces; {machine!r} has more",
                path,
                "spread the nodes over more guests" if node.inside else "spread the links over more nodes",
            )


def _shared(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks guests that several nodes share."""
    taken = {**dict.fromkeys(network.nodes, "node"), **dict.fromkeys(network.switches, "switch")}
    taken |= dict.fromkeys(network.shared(), "node") | dict.fromkeys(network.tunnels, "tunnel")
    inhabited = {node.inside for node in network.nodes.values()}
    for name, shared in scenario.guests.items():
        path: Path_ = ("guests", name)
        kind = shared.kind or scenario.kind
        if name in taken:
            cure = "give the guest another name"
            yield Problem("name.duplicate", f"{name!r} is a {taken[name]} already", path, cure, key=True)
        if kind not in MEMORY:
            cure = f"say kind: {' or '.join(MEMORY)}"
            yield Problem("guest.kind", f"nodes of kind {kind} have no guest to share", path, cure, key=True)
        if name not in inhabited:
            cure = f"leave it out, or say inside: {name}"
            yield Problem("guest.empty", f"no node is inside {name!r}", path, cure, key=True)
        if kind == "uml" and said(scenario, Node(inside=name)).network == "tap":
            own = shared.network is not None
            yield Problem(
                "guest.network",
                f"the interfaces of nodes inside {name!r} are devices of the engine's own",
                (*path, "network") if own else ("guest", "network"),
                "leave it out, or say vhost",
            )


def _inside(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks nodes inside shared guests: they cannot set properties of the machine."""
    for name, node in network.nodes.items():
        if node.inside is None:
            continue
        shared = shared_by(scenario, node)
        if shared is None:
            cure = nearest(node.inside, scenario.guests)
            path = said_at("inside", name, scenario, network)
            yield Problem("guest.unknown", f"there is no guest {node.inside!r} to share", path, cure)
            continue
        if node.kind != (shared.kind or scenario.kind):
            yield Problem(
                "guest.kind",
                f"{name!r} is of kind {node.kind}, and its guest {node.inside!r} is not",
                said_at("kind", name, scenario, network),
                "leave it out",
                key=True,
            )
        for key in ("guest", "cpu", "cpus"):
            if getattr(node, key) is not None:
                yield Problem(
                    "guest.shared",
                    f"{name!r} has no {_WORDS[key]} of its own",
                    said_at(key, name, scenario, network),
                    f"set it for the guest under guests.{node.inside}",
                    key=True,
                )


def _of_machine(key: str, name: str, scenario: Scenario, node: Node) -> Path_ | None:
    """Returns the place where a node's or guest's machine sets a key; None for a global setting."""
    shared = shared_by(scenario, node)
    if shared is not None:
        return None if getattr(shared, key) is None else ("guests", str(node.inside), key)
    return None if node.guest is None or getattr(node.guest, key) is None else ("nodes", name, "guest", key)


def _memory(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks that the memory suffices to boot the kernel of a kind."""
    for name, node in network.nodes.items():
        kind = node.kind or scenario.kind
        memory = said(scenario, node).memory
        if kind in LEAST and memory is not None and memory < LEAST[kind]:
            yield Problem(
                "guest.memory",
                f"a machine of kind {kind} does not start with {memory.text}",
                _of_machine("memory", name, scenario, node) or ("guest", "memory"),
                f"give it {LEAST[kind] >> 20} MiB or more",
            )


def _kernel(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks that a kind can boot the given kernel."""
    for name, node in network.nodes.items():
        kind = node.kind or scenario.kind
        if kind == "qemu" and said(scenario, node).kernel == BUILT:
            yield Problem(
                "guest.kernel",
                "the kernel that is built here is for User Mode Linux",
                _of_machine("kernel", name, scenario, node) or ("guest", "kernel"),
                "leave it out, or name a file",
            )
            continue
        kernel = said(scenario, node).kernel if kind in _NEEDED else None
        wrong = None if kernel in (None, BUILT) else _startable(str(kernel), kind)
        if wrong is not None:
            yield Problem(
                "guest.kernel",
                wrong,
                _of_machine("kernel", name, scenario, node) or ("guest", "kernel"),
                "leave it out, or name a kernel",
            )


def _append(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks the words for a kernel's command line."""
    for name, node in network.nodes.items():
        kind = node.kind or scenario.kind
        text = said(scenario, node).append if kind in MEMORY else None
        wrong = None if text is None else kernel_words.flaw(text, kind)
        if wrong is not None:
            yield Problem(
                "guest.append",
                wrong,
                _of_machine("append", name, scenario, node) or ("guest", "append"),
                "leave it out",
            )


_NEEDED = {
    "uml": ("User Mode Linux", "an ELF executable"),
    "qemu": ("virtual machines", "a bootable image or an ELF file"),
}
_ELF = b"\x7fELF"
_HEADERS = ((0, _ELF), (0x202, b"HdrS"), (0x38, b"ARM\x64"))
"""Offset and magic number of kernel images: ELF; x86 boot protocol; arm64 image."""


def _startable(file: str, kind: str) -> str | None:
    """Checks the magic number of a kernel file; returns what is wrong."""
    try:
        octets = head(file, 0x210)
    except OSError as error:
        return f"the kernel {Path(file).name} cannot be read: {error.strerror}"
    headers = _HEADERS[:1] if kind == "uml" else _HEADERS
    whose, what = _NEEDED[kind]
    if any(octets[at : at + len(magic)] == magic for at, magic in headers):
        return None
    return f"{Path(file).name} is no kernel for {whose}: that is {what}"


def _once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yields the first problem of each place: one setting may be wrong for many nodes."""
    told: set[Path_] = set()
    for problem in problems:
        if problem.path not in told:
            told.add(problem.path)
            yield problem
