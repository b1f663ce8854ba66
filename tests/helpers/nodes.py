"""Plans of nodes for tests, and checks for leftovers on the host."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_interface
from pathlib import Path
from typing import Any, TypeVar

import pytest

import airloom
from airloom.host import binaries
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import GuestPlan, InterfacePlan, LinkPlan, NodePlan, Plan
from airloom.scenario.model import Scenario

T = TypeVar("T")

Up = Callable[..., dict[str, NodeHandle]]

PYTHON = os.path.realpath(sys.executable)
"""The machine's Python, for programs in nodes: they do not see an environment below /tmp."""


def airloom_in_nodes() -> str:
    """Returns the command ``airloom`` for programs in nodes; skips the test where they do not see it."""
    hidden = [path for path in (sys.executable, airloom.__file__) if is_hidden(Path(path))]
    if hidden:
        pytest.skip(f"nodes have a /tmp of their own and do not see {hidden[0]}")
    return f"{shlex.quote(sys.executable)} -m airloom"


def is_hidden(path: Path) -> bool:
    """Whether nodes cover a path of the host with their own file system."""
    return any(path.absolute().is_relative_to(folder) for folder in binaries.HIDDEN)


def interface(name: str, number: int, *addresses: str, mtu: int = 1500) -> InterfacePlan:
    """Returns an interface whose MAC ends with a number."""
    mac = (
        f"02:00:{number >> 24 & 255:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    )
    return InterfacePlan(name, mac, mtu, tuple(ip_interface(text) for text in addresses), "")


def node(name: str, *interfaces: InterfacePlan, **more: Any) -> NodePlan:
    """Returns a node with interfaces; unset fields are empty."""
    defaults: dict[str, Any] = {
        "kind": "netns",
        "routes": (),
        "forwarding": False,
        "cpu": None,
        "files": {},
        "sysctl": {},
    }
    return NodePlan(name=name, interfaces=interfaces, **(defaults | more))


def plan_of(nodes: Sequence[NodePlan], links: Sequence[LinkPlan] = ()) -> Plan:
    """Returns a plan of nodes, with links between native ones."""
    hosts = {
        plan.name: str(plan.interfaces[0].addresses[0].ip)
        for plan in nodes
        if plan.interfaces and plan.interfaces[0].addresses
    }
    return Plan(
        scenario=Scenario(name="test"),
        seed=1,
        nodes={plan.name: plan for plan in nodes},
        switches={},
        links={link.name: link for link in links},
        hosts=hosts,
    )


def eventually(true: Callable[[], bool], what: str, within: float = 60.0) -> None:
    """Waits until a condition is true; the timeout only ends a failing test."""
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def still(read: Callable[[], T], within: float = 60.0) -> T:
    """Waits until what is read no longer changes: the same twice, 0.3 s apart. Returns it."""
    until = time.monotonic() + within
    before = read()
    while True:
        time.sleep(0.3)
        now = read()
        if now == before:
            return now
        assert time.monotonic() < until, "it goes on changing"
        before = now


def processes_with(mark: str) -> list[int]:
    """Returns the host's processes with this text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def processes_in(namespaces: set[int]) -> list[int]:
    """Returns the host's processes in one of these network namespaces, or with one open."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            links = [entry / "ns" / "net", *(entry / "fd").iterdir()]
            for link in links:
                with contextlib.suppress(OSError):
                    text = os.readlink(link)
                    if text.startswith("net:[") and int(text[5:-1]) in namespaces:
                        found.append(int(entry.name))
                        break
    return found


def cgroups() -> Iterator[Path]:
    """Yields all cgroups. Some may disappear during the search, which a glob does not tolerate."""
    return (Path(place) for place, _, _ in os.walk("/sys/fs/cgroup"))


def groups_of(*supervisors: int) -> list[Path]:
    """Returns the cgroups of supervisor processes."""
    names = tuple(f"airloom-{supervisor}-" for supervisor in supervisors)
    return [group for group in cgroups() if group.name.startswith(names)]


def mount_points() -> list[str]:
    """Returns the mount points visible to this process."""
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def guest(name: str, **settings: object) -> NodePlan:
    """Returns a guest behind a TAP interface, without an engine."""
    cpus = settings.pop("cpus", None)
    said = {"memory": 64 << 20, "network": "tap"} | settings
    number = ord(name[0])
    plan = GuestPlan(**said)  # type: ignore[arg-type]
    return node(name, interface("eth0", number, f"10.1.0.{number}/24"), kind="uml", guest=plan, cpus=cpus)
