"""Nodes that are guests: a machine of their own, with a kernel of its own, as one process of the host.

The machine runs in a place like that of a ``netns`` node, so it ends with the run and its processor
time is counted; but it sees the host's files read-only and has none of root's rights. Programs are
started in the guest by ``airloom-init``, which is its first process, over a channel that is no
network (``init/src/relay.rs``). A kind of guest says in :meth:`GuestNode.machine` what to execute.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airloom import _engine
from airloom.errors import LabError, RunError
from airloom.nodes.channel import Message
from airloom.nodes.doors import Door
from airloom.nodes.init import InitClient
from airloom.nodes.kind import ClockReading, Cpu, NodeHandle, Site
from airloom.nodes.netns import NetnsKind, NetnsNode, spec_of
from airloom.plan import GuestPlan, NodePlan

_READINGS = 12
"""Of a guest's clock, for one that is exact."""
_ANSWER = 20.0
"""How much longer than its guest a node's first process may take to say that it gave up, in seconds."""
_LAST_LINES = 5
_LAST_OCTETS = 16_384
_POLICIES = {"other": 0, "fifo": 1, "round-robin": 2, "batch": 3, "idle": 5}
"""Numbers of the kernel's scheduling policies (``sched(7)``)."""
_DEV_FIELDS = {
    "rx_octets": 0,
    "rx_packets": 1,
    "rx_errors": 2,
    "rx_dropped": 3,
    "tx_octets": 8,
    "tx_packets": 9,
    "tx_errors": 10,
    "tx_dropped": 11,
}
"""Columns of /proc/net/dev."""

_TICK = 10_000_000
"""What /proc/stat counts in: ns, on every architecture that guests have."""

CAP_DAC_READ_SEARCH = 2
"""To read every file of the host, as a node of the host's kernel does."""
CAP_NET_RAW = 13
"""To send and receive frames by a packet socket (``capabilities(7)``)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """How a guest's machine is started. Its descriptor 3 is the guest's channel."""

    argv: tuple[str, ...]
    root: Message
    """The guest's root file system, in the words of ``Root`` in ``init/src/message.rs``."""
    memory: int
    """Octets of the host's memory that it may use as files."""
    patience: float
    """Seconds that the guest may take to be ready."""
    descriptors: tuple[int, ...] = ()
    """What it is given from descriptor 4 on."""
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()
    """Kernel modules to load, in order."""
    module_folder: str | None = None


class GuestNode(NetnsNode):
    """One guest while the run lasts."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(outer(plan), kind, namespace, site)
        self.guest = plan
        """What is to be inside."""
        self._log: int | None = _log(plan.name, site)
        names = [one.name for one in plan.interfaces if one.real is None and one.name not in self.taps]
        self._doors = {name: Door.open() for name in names}
        self.doors = {name: door.listener.fileno() for name, door in self._doors.items()}

    @abstractmethod
    def machine(self) -> Machine:
        """What to execute; called for each start."""

    @property
    def settings(self) -> GuestPlan:
        """Its memory, network, scheduling and so on."""
        assert self.guest.guest is not None
        return self.guest.guest

    def wake(self) -> None:
        with self._lock:
            self._must_be_up()
            if self._init is None:
                super().wake()
                assert self._init is not None
                self._boot(self._init)

    def _net(self, table: str) -> str:
        with contextlib.suppress(LabError):  # the node may just have gone
            return self._ready().read(f"/proc/net/{table}") or ""
        return ""

    def clock(self) -> ClockReading:
        """Both clocks run alike, so the true distance is in what all readings have in common."""
        init = self._ready()
        readings = [init.clock() for _ in range(_READINGS)]
        least = max(inside - after for _, inside, after in readings)
        most = min(inside - before for before, inside, _ in readings)
        return ClockReading(readings[-1][2], (least + most) // 2, max(1, (most - least) // 2))

    def within(self) -> Cpu | None:
        """As its own kernel counts: user and nice, system, in ticks of 10 ms (/proc/stat)."""
        words = (self._ready().read("/proc/stat") or "").split("\n", 1)[0].split()[1:4]
        if len(words) < 3:
            return None
        user, nice, system = (int(word) * _TICK for word in words)
        return Cpu(user + nice, system)

    def counters(self) -> dict[str, dict[str, int]]:
        """As the hosting interfaces count if the guest is behind some; else as its own kernel does."""
        return super().counters() if self.taps else self.inner_counters()

    def inner_counters(self) -> dict[str, dict[str, int]]:
        """As the guest's own kernel counts; nothing once it has gone."""
        rows = (line.partition(":") for line in self._net("dev").splitlines()[2:])
        return {
            name.strip(): {word: int(values.split()[column]) for word, column in _DEV_FIELDS.items()}
            for name, _, values in rows
        }

    def restart(self) -> None:
        with self._lock:
            super().restart()
            self.wake()

    def close(self) -> None:
        super().close()
        for door in self._doors.values():
            door.close()
        self._doors = {}
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def processes(self) -> list[int]:
        """Its machine's processes, in this process's numbering."""
        made = self._made
        found = [made.pid] if made is not None else []
        for pid in found:
            with contextlib.suppress(OSError):  # it may just have ended
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(child) for child in (task / "children").read_text().split()]
        return found[1:]

    def last_lines(self) -> str:
        """The end of what its console said."""
        log, text = self._log, ""
        if log is not None:
            with contextlib.suppress(OSError):  # the node may be closed just now
                end = os.fstat(log).st_size
                text = os.pread(log, _LAST_OCTETS, max(0, end - _LAST_OCTETS)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # Behind the reason a kernel prints where in itself it was.
        reasons = [number for number, line in enumerate(lines) if "Kernel panic" in line]
        start = reasons[0] if reasons else len(lines)
        return "; ".join(lines[max(0, min(start, len(lines) - _LAST_LINES)) :][:_LAST_LINES])

    def knockers(self, first: int) -> tuple[list[int], dict[str, str]]:
        """Descriptors for a machine to reach the engine, and their paths there by interface.

        ``first``: the number that the machine will see the first of them under.
        """
        paths = {name: f"/proc/self/fd/{first + place}" for place, name in enumerate(self._doors)}
        return [door.knocker for door in self._doors.values()], paths

    def _boot(self, init: InitClient) -> None:
        machine, settings, plan = self.machine(), self.settings, self.guest
        assert self._log is not None
        order: Message = {
            "argv": machine.argv,
            "env": {"PATH": os.environ.get("PATH", os.defpath), **machine.env},
            "descriptors": len(machine.descriptors),
            "cell": {"memory": machine.memory, "capabilities": machine.capabilities},
            "scheduling": {
                "processors": settings.processors,
                "nice": settings.nice,
                "policy": _POLICIES[settings.policy],
                "priority": settings.priority,
            },
            "patience_ms": round(machine.patience * 1000),
            "world": {
                "name": plan.name,
                "root": machine.root,
                "modules": machine.modules,
                "module_folder": machine.module_folder,
                "files": {**self._site.keeper.common, **plan.files},
                # What the host shows is not in a root of the guest's own.
                "visible": [str(path) for path in self._site.visible] if settings.root is None else [],
                "network": spec_of(plan, {interface.name for interface in plan.interfaces}),
            },
        }
        self._patience = machine.patience
        init.host(order, [self._log, *machine.descriptors])

    def _ready(self) -> InitClient:
        init = super()._ready()
        try:
            notes = init.hosted(self._patience + _ANSWER)
        except RunError as error:
            raise self._with_log(error) from None
        with self._lock:
            self._notes = (*self._notes, *notes)
        return init

    def _with_log(self, error: RunError) -> RunError:
        said = self.last_lines()
        words = f"{error.message}; its console said last: {said}" if said else error.message
        return RunError(error.code, words, where=error.where, cure=error.cure)

    def _how(self, message: Message) -> str:
        how = super()._how(message).replace("its first process", "its machine", 1)
        said = self.last_lines()
        return f"{how}; its console said last: {said}" if said else how


class GuestKind(NetnsKind):
    """Makes guests: the places for them first, then all machines at once."""

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        made = super().bring_up(plans)
        for handle in made.values():
            handle.wake()
        return made

    def settle(self) -> None:
        for node in self._nodes.values():
            node.settle()

    def spec(self, plan: NodePlan, wired: set[str]) -> dict[str, Any]:
        return super().spec(outer(plan), wired)


def outer(plan: NodePlan) -> NodePlan:
    """The place of a guest: its interfaces, if it is behind some of the host's, without addresses."""
    assert plan.guest is not None
    interfaces = plan.interfaces if plan.guest.network == "tap" else ()
    bare = tuple(replace(interface, addresses=()) for interface in interfaces)
    return replace(plan, interfaces=bare, routes=(), forwarding=False, files={}, sysctl={})


def _log(name: str, site: Site) -> int:
    """Where the console of a guest goes: a file of the run, or memory."""
    if site.log_path is None:
        return os.memfd_create(f"{name}-console", os.MFD_CLOEXEC)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(site.log_path(name, "console"), flags, 0o644)
