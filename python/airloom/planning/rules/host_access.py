"""Rules of mounts and published ports: what a node has of the host, and the host of a node."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import PurePosixPath

from airloom.planning.network import Network
from airloom.scenario.model import Node, Publish, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.given import given

_KINDS = ("netns", "native", "container")
"""Kinds whose nodes share the host's kernel, and so its mounts and sockets."""
_KERNEL = ("/proc", "/sys", "/dev")


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with mounts and published ports."""
    taken: dict[tuple[str, str, int], str] = {}
    for name, node in network.nodes.items():
        path = _said_at(scenario, name)
        kind = node.kind or scenario.kind
        for key in ("mounts", "publish"):
            if getattr(node, key) and kind not in _KINDS:
                yield Problem(
                    "node.host",
                    f"a node of kind {kind} has a kernel of its own, and no {key!r}",
                    (*path, key),
                    f"make it of kind {', '.join(_KINDS[:-1])} or {_KINDS[-1]}",
                    key=True,
                )
                return
        yield from _mounts(node, path, kind)
        for number, one in enumerate(node.publish):
            yield from _publish(name, one, (*path, "publish", number), taken)


def _said_at(scenario: Scenario, name: str) -> Path_:
    """Returns the place of a node's settings: its own, or those of all generated nodes."""
    own = scenario.nodes.get(name)
    if own is not None and own.model_fields_set & {"mounts", "publish"}:
        return ("nodes", name)
    return ("nodes", name) if scenario.topology is None else ("topology", "node")


_NAME_MAX, _PATH_MAX = 255, 4096


def too_long(path: str) -> str | None:
    """Why no file can have a path; None if one can. The lengths are those of Linux, in octets."""
    longest = max((len(part.encode()) for part in path.split("/")), default=0)
    if longest > _NAME_MAX:
        return f"a name in {path[:40]}... has {longest} octets, the most are {_NAME_MAX}"
    if (octets := len(path.encode())) >= _PATH_MAX:
        return f"the path {path[:40]}... has {octets} octets, the most are {_PATH_MAX - 1}"
    return None


def _mounts(node: Node, path: Path_, kind: str) -> Iterator[Problem]:
    targets: set[PurePosixPath] = set()
    for number, one in enumerate(node.mounts):
        where = (*path, "mounts", number, "target")
        target = PurePosixPath(one.target)
        if not target.is_absolute() or ".." in target.parts or "\0" in one.target or str(target) == "/":
            yield Problem("node.mount", f"{one.target!r} is not the absolute path of a file or folder", where)
            continue
        if (why := too_long(one.target)) is not None:
            yield Problem("node.mount", why, where, "name a shorter path")
        if any(target.is_relative_to(own) for own in _KERNEL) and not target.is_relative_to("/dev/shm"):
            yield Problem("node.mount", f"{one.target} belongs to the kernel", where, "name another path")
        if target in targets:
            yield Problem("node.mount", f"two mounts have the target {one.target}", where, "leave one out")
        targets.add(target)
        covered = [file for file in node.files if PurePosixPath(file).is_relative_to(target)]
        if covered:
            yield Problem(
                "node.mount",
                f"the mount at {one.target} would hide {covered[0]} of 'files'",
                where,
                "put the file into the source, or name another target",
            )


def _publish(
    name: str, one: Publish, path: Path_, taken: dict[tuple[str, str, int], str]
) -> Iterator[Problem]:
    try:
        address = str(ip_address(one.host_address))
    except ValueError:
        yield Problem(
            "node.publish",
            f"{one.host_address!r} is no IP address",
            (*path, "host_address"),
            "such as 127.0.0.1 or ::1",
        )
        return
    port = given(one.host_port, one.port)
    key = (one.protocol, address, port)
    if key in taken:
        yield Problem(
            "node.publish",
            f"{one.protocol} port {port} of {address} already leads to {taken[key]!r}",
            path,
            "give another 'host_port'",
        )
    taken.setdefault(key, name)
