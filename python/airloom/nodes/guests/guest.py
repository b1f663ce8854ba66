"""Guest nodes: a virtual machine with its own kernel, run as one process of the host.

The machine runs in namespaces and a cgroup like those of a ``netns`` node, so it ends with the run
and its processor time is counted. It sees the host's files read-only and has no root privileges.
Programs in the guest are started by ``airloom-init``, its first process, over a channel that is not
part of the emulated network (``init/src/relay.rs``). Each kind of guest defines its command in
:meth:`GuestNode.machine`.

A guest that several nodes share has its own namespaces on the host, and is not a node of the run.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from airloom import _engine
from airloom.host import programs
from airloom.host.descendants import processes_below
from airloom.nodes.guests.guest_node import InnerNode
from airloom.nodes.guests.guest_sockets import GuestSocket
from airloom.nodes.kind import Cpu, Footprint, Site
from airloom.nodes.process.channel import Message
from airloom.nodes.process.init import InitClient
from airloom.planning.plan import HandlingPlan, NodePlan

_LAST_LINES = 5
_LAST_OCTETS = 16_384
_SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
_TICK = 10_000_000
"""Length of a /proc/stat tick in ns, on every architecture of guests."""

CAP_DAC_READ_SEARCH = 2
"""Permits reading every file of the host, as a node on the host's kernel can."""
CAP_NET_RAW = 13
"""Permits sending and receiving frames on a packet socket (``capabilities(7)``)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """How a guest's machine is started. Its descriptor 3 is the guest's channel."""

    argv: tuple[str, ...]
    root: Message
    """The guest's root file system, as ``Root`` in ``init/src/message.rs``."""
    memory: int
    """Octets of the host's memory that it may use as files."""
    timeout: float
    """Seconds for the guest to become ready."""
    descriptors: tuple[int, ...] = ()
    """Passed to it as descriptors from 4 on."""
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    """Its working folder."""
    capabilities: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    """Names below /dev of the devices that it opens."""
    modules: tuple[str, ...] = ()
    """Kernel modules to load, in order."""
    module_folder: str | None = None
    radio_stream: str | None = None
    """The character device on which the guest passes on the messages of its radios."""


class GuestNode(InnerNode):
    """One guest during a run."""

    monitored: ClassVar[bool] = False
    """Whether the link status of its cards is set by a monitor."""
    virtio_radios: ClassVar[bool] = True
    """Whether its machine has a virtio device for radios; if not, they need a stream."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(plan, kind, namespace, site)
        self._log: int | None = _log(plan.name, site)
        self.parts: list[InnerNode] = []
        """The nodes that share it; empty if it is a node itself."""
        self._wlan: tuple[GuestSocket, _engine.WlanDevice] | None = None
        self._handling = _handling(self.settings.handling, site)
        self._time = None if site.pacer is None else site.pacer.guest(plan.name)
        """What connects its machine with the calendar; None in wall time."""
        self.calendar_guest = None if self._time is None else self._time.number
        self._waits = False
        """Whether it is another guest's turn."""

    @abstractmethod
    def machine(self) -> Machine:
        """The command and its settings; called for each start."""

    def wake(self) -> None:
        with self._lock:
            self._must_be_up()
            if self._init is None:
                super().wake()
                assert self._init is not None
                self._boot(self._init)

    def within(self) -> Cpu | None:
        """CPU time from its own kernel: user and nice, system, in ticks of 10 ms (/proc/stat)."""
        words = (self._ready().read("/proc/stat") or "").split("\n", 1)[0].split()[1:4]
        if len(words) < 3:
            return None
        user, nice, system = (int(word) * _TICK for word in words)
        return Cpu(user + nice, system)

    def footprint(self) -> Footprint | None:
        tasks = self.tasks()[1:]  # without the first process on the host
        return footprint_of([Path(f"/proc/{task}/status") for task in tasks])

    def switches(self) -> dict[int, int]:
        found = {}
        for task in self.tasks()[1:]:
            with contextlib.suppress(OSError, KeyError, ValueError):  # it has just ended
                lines = _lines(Path(f"/proc/{task}/status"))
                found[task] = sum(int(lines[key]) for key in _SWITCHES)
        return found

    def restart(self) -> None:
        with self._lock:
            super().restart()
            self.wake()

    def give_turn(self, its: bool) -> None:
        # Not under the lock: the thread that stops the guest holds it until the guest has ended.
        if self._state != "up":
            self._waits = not its
            return
        with self._lock:
            self._waits = not its
            if self._state == "up" and self._init is not None:
                super()._halt(self._waits)

    def stop(self, grace: float = 2.0, *, ended: Callable[[], None] | None = None) -> None:
        with self._lock:
            self.give_turn(True)
            super().stop(grace, ended=ended)

    def _halt(self, halt: bool) -> None:
        if self._site.pacer is not None and self.calendar_guest is not None:
            self._site.pacer.pause(self.calendar_guest, halt)
        else:
            super()._halt(halt or self._waits)

    def reset(self) -> None:
        """Restarts it if it is off."""
        with self._lock:
            if self._state in ("stopped", "failed"):
                self.restart()

    def close(self) -> None:
        super().close()
        if self._wlan is not None:
            self._wlan[0].close()
            self._wlan = None
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def processes(self) -> list[int]:
        """PIDs of its machine's processes, in this process's namespace."""
        return processes_below(self._made.pid)[1:] if self._made is not None else []

    def last_lines(self) -> str:
        """The last lines of its console output."""
        log, text = self._log, ""
        if log is not None:
            with contextlib.suppress(OSError):  # the node may be closed at this moment
                end = os.fstat(log).st_size
                text = os.pread(log, _LAST_OCTETS, max(0, end - _LAST_OCTETS)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # A kernel prints its stack trace after the reason for the panic.
        reasons = [number for number, line in enumerate(lines) if "Kernel panic" in line]
        start = reasons[0] if reasons else len(lines)
        return "; ".join(lines[max(0, min(start, len(lines) - _LAST_LINES)) :][:_LAST_LINES])

    @property
    def is_gone(self) -> bool:
        """Whether its machine has ended."""
        return self._init is None or self._init.is_gone

    @property
    def log(self) -> int:
        """Descriptor of the file that stores its console output."""
        assert self._log is not None
        return self._log

    @property
    def radios(self) -> int:
        """Number of its radios that are wireless devices."""
        return sum(one.wlan is not None for node in self.inside for one in node.guest.interfaces)

    @property
    def bridge_modules(self) -> tuple[str, ...]:
        """Modules of the kernel for the bridges of its nodes."""
        bridged = any(one.bridge for node in self.inside for one in node.guest.interfaces)
        return ("bridge",) if bridged else ()

    @property
    def wlan_device(self) -> _engine.WlanDevice | None:
        made = self._wireless()
        return None if made is None else made[1]

    @property
    def handling(self) -> _engine.Handling | None:
        return self._handling

    @property
    def wlan_path(self) -> int | None:
        """The descriptor for its machine's connection to the wireless device."""
        made = self._wireless()
        return None if made is None else made[0].path

    def _wireless(self) -> tuple[GuestSocket, _engine.WlanDevice] | None:
        """Its wireless device and the socket of that, made when they are first needed."""
        if self._wlan is None and self.radios:
            made = GuestSocket.open()
            stream = not self.virtio_radios
            handling = None if stream else self.handling
            device = _engine.WlanDevice(made.listener.fileno(), stream, handling)
            self._wlan = (made, device)
        return self._wlan

    @property
    def inside(self) -> list[InnerNode]:
        """The nodes whose interfaces belong to its machine."""
        return self.parts or [self]

    def _boot(self, init: InitClient) -> None:
        machine = self.machine()
        order: Message = {
            "argv": machine.argv,
            "env": {"PATH": programs.search_path(), **machine.env},
            "folder": machine.folder,
            "descriptors": len(machine.descriptors),
            "sandbox": {
                "memory": machine.memory,
                "capabilities": machine.capabilities,
                "devices": machine.devices,
            },
            "timeout_ms": round(machine.timeout * 1000),
            "virtual_time": self._time is not None,
            "world": {
                **self._world(machine.root),
                "modules": machine.modules,
                "module_folder": machine.module_folder,
                "radios": None
                if machine.radio_stream is None
                else {"count": self.radios, "device": machine.radio_stream},
            },
        }
        self.timeout = machine.timeout
        wire = () if self._time is None else (self._time.wire[1].fileno(),)
        init.host(order, [self.log, *machine.descriptors, *wire])

    def _how(self, message: Message) -> str:
        how = super()._how(message).replace("its first process", "its machine", 1)
        said = self.last_lines()
        return f"{how}; last console output: {said}" if said else how

    def _fail(self, why: str) -> None:
        if not self.parts:
            super()._fail(why)
            return
        self._failure, self._state = why, "failed"
        for part in list(self.parts):
            part.lose(f"its guest {self.name} has ended: {why}")


def footprint_of(files: Sequence[Path]) -> Footprint | None:
    """Reads the status of tasks (``proc_pid_status(5)``); None if there are none any more.

    Memory is that of the largest process: the processes of User Mode Linux map the same memory, so a
    sum would count it several times.
    """
    found = []
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # it has just ended
            found.append(int(_lines(file).get("VmRSS", "0 kB").split()[0]) * 1024)
    return Footprint(max(found)) if found else None


def _lines(file: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in file.read_text().splitlines())


def _handling(plan: HandlingPlan, site: Site) -> _engine.Handling | None:
    """Returns what the engine's devices need to know; None for the default."""
    in_band = site.pacer is not None
    if plan == HandlingPlan() and not in_band:
        return None
    tlb = None
    if plan.entries is not None:
        tlb = _engine.IoTlb(plan.entries)
        if plan.translation == "merged":
            tlb = site.merged.setdefault(plan.entries, tlb)
    return _engine.Handling(
        plan.notifications, plan.frames or 1, plan.time or 0, plan.translation, tlb, in_band
    )


def _log(name: str, site: Site) -> int:
    """Opens the file for a guest's console output: a file of the run, or memory."""
    if site.log_path is None:
        return os.memfd_create(f"{name}-console", os.MFD_CLOEXEC)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(site.log_path(name, "console"), flags, 0o644)
