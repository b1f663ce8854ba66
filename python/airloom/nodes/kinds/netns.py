"""The kind ``netns``: the host's kernel with separate namespaces per node (virtual routing).

Network namespaces are created at bring-up, in Rust, many at a time. The PID, mount, UTS and IPC
namespaces, and the processes in them, are created with the node's first program.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from airloom import _engine
from airloom.errors import LabError, RunError, translated
from airloom.host import programs
from airloom.nodes.kernel_radios import is_radio
from airloom.nodes.kind import (
    Completed,
    Cpu,
    Kind,
    Launch,
    Nature,
    NodeHandle,
    Process,
    Properties,
    Site,
    State,
)
from airloom.nodes.network import refused, unsent
from airloom.nodes.process import halted, scheduling
from airloom.nodes.process.cgroups import Group
from airloom.nodes.process.channel import Message
from airloom.nodes.process.init import InitClient, streams
from airloom.nodes.process.supervisor import Made
from airloom.nodes.spec import no_longer_divided, spec_of
from airloom.planning.plan import NodePlan

_MACHINE = (Path("/run"),)
"""Folder through which a node in the machine's own network reaches the machine's daemons."""
_DYING = 30.0
"""Seconds that the kernel may take to end a node's processes."""
LISTENING = {"tcp": "0A", "udp": "07"}
"""States of sockets in /proc/net/tcp and udp: TCP_LISTEN, and TCP_CLOSE for an unconnected one."""


class NetnsNode(NodeHandle):
    """A node that uses the host's kernel."""

    missing: ClassVar[str] = (
        "install it, or give its path; files below /tmp and /run of the host are not seen in a node"
    )
    """What to do about a program that is not in the node."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        self.name = plan.name
        self.kind = kind
        self.taps: Mapping[str, _engine.Tap] = namespace.taps()
        self._plan = plan
        self._namespace = namespace
        self._site = site
        self._lock = threading.RLock()
        self._state: State = "up"
        self._failure: str | None = None
        self._made: Made | None = None
        self._init: InitClient | None = None
        self._group: Group | None = None
        self._notes: tuple[str, ...] = ()
        self._over = threading.Event()
        self._spent = Cpu(0, 0)
        self._scheduled: str | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def notes(self) -> Sequence[str]:
        return self._notes

    @property
    def wlan_device(self) -> _engine.WlanDevice | None:
        return self._site.radios.device if any(map(is_radio, self._plan.interfaces)) else None

    @property
    def plan(self) -> NodePlan:
        """Its plan."""
        return self._plan

    @property
    def namespace(self) -> _engine.Namespace:
        """Its network namespace; this machine's if it has none on this machine."""
        return self._namespace

    def wake(self) -> None:
        with self._lock:
            self._must_be_up()
            if self._init is not None:
                return
            # Set before the process exists, which may end at once.
            over = self._over = threading.Event()
            site = self._site
            made = site.supervisor.make(
                self.name,
                self._namespace.fileno(),
                files=self._plan.files,
                visible=self._visible(),
                cpu=self._plan.cpu,
                weight=self._weight,
                image=self._image(),
                mounts=self._plan.mounts,
                on_end=lambda message: self._ended(over, message),
            )
            self._made = made
            self._notes = made.notes
            self._group = Group(made.group, made.cpu_group) if made.group is not None else None
            self._init = InitClient(
                self.name, made.channel, site.supervisor.dispatcher, self.missing, site.pacer
            )
            self._schedule(made)

    def _schedule(self, made: Made) -> None:
        """Sets its processors and scheduling, before anything starts in it."""
        if self._plan.cpus is None:
            return
        try:
            scheduling.apply(self.name, made.pid, self._plan.cpus, weighed=self._site.weighs())
        except RunError:
            self.kill()
            raise

    def launch(self, launch: Launch) -> Process:
        env = launch.env if launch.bare else self._environment(launch.env)
        with contextlib.ExitStack() as stack:
            descriptors = streams(launch.stdin, launch.stdout, launch.stderr, stack)
            settled = replace(launch, env=env, folder=launch.folder or self._folder())
            started = self._ready().start(settled, descriptors)
        if self._plan.cpus is not None:
            self._read_scheduling()
        return started

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> Completed:
        launch = Launch(argv, self._environment(env or {}), folder=folder or self._folder())
        return self._ready().run(launch, input.encode() if isinstance(input, str) else input, timeout)

    @property
    def scheduling(self) -> str | None:
        if self._plan.cpus is not None:
            self._read_scheduling()
        return self._scheduled

    def _read_scheduling(self) -> None:
        """Reads what is in force for all its processes; keeps the last reading once they have ended."""
        made, wish = self._made, self._plan.cpus
        if made is None or wish is None or self._state != "up":
            return
        found = scheduling.of_tasks(scheduling.tasks_below(made.pid))
        if not found:
            return
        words = " / ".join(one.text for one in found)
        if wish.share is not None:
            how = scheduling.weight_of(made.group, made.cpu_group) or "by nice values"
            words += f"; share {wish.share:g}: {how}"
        self._scheduled = words

    @property
    def _weight(self) -> float | None:
        """The weight of its control group; None if nothing is weighed by control groups."""
        wish = self._plan.cpus
        return None if wish is None or wish.share is None or not self._site.weighs() else wish.share

    def tasks(self) -> list[int]:
        """Its first process and all processes and threads below it, in this process's namespace."""
        return [] if self._made is None else scheduling.tasks_below(self._made.pid)

    def listens(self, protocol: Literal["tcp", "udp"], port: int) -> bool:
        tables = (protocol, f"{protocol}6")
        return any(listening_in(self._net(table), LISTENING[protocol], port) for table in tables)

    def datagrams_refused(self) -> int:
        return refused.refused_in(self._net("snmp"), self._net("snmp6")) if self._state == "up" else 0

    def halted(self) -> frozenset[int]:
        return frozenset() if self._made is None else halted.groups_below(self._made.pid)

    def passed(self, *, idle: bool = True) -> unsent.Passed | None:
        if self._state != "up" or (self._made is None and not (idle and self._plan.forwarding)):
            return None
        plain = {"lo", *(interface.name for interface in self._plan.interfaces)}
        if self._made is not None:
            return unsent.passed(self._net, plain)
        with contextlib.suppress(OSError), translated():
            return unsent.passed_in(self._namespace.fileno(), plain)
        return None

    def _net(self, table: str) -> str:
        """A table in the node's ``/proc/net``; empty if missing, or if no program has run yet."""
        with contextlib.suppress(OSError):  # the node may just have ended, or have no IPv6
            if self._made is not None:
                return Path(f"/proc/{self._made.pid}/net/{table}").read_text()
        return ""

    def stop(self, grace: float = 2.0, *, ended: Callable[[], None] | None = None) -> None:
        with self._lock:
            if self._state not in ("up", "paused"):
                return
            self.resume()
            self._state = "stopped"
            if self._init is not None:
                self._account()
                with contextlib.suppress(LabError):  # it may just have ended by itself
                    self._init.stop(grace)
                if self._site.pacer is not None:
                    # The report of its end comes later, at no instant of virtual time.
                    init = self._init
                    self._site.pacer.until(lambda: init.is_gone, grace + _DYING)
            self._off(grace + _DYING, ended)

    def kill(self) -> None:
        with self._lock:
            if self._state not in ("up", "paused"):
                return
            self._state = "stopped"
            if self._init is not None:
                self._account()
                self._site.supervisor.kill(self.name)
            self._off(_DYING)

    def restart(self) -> None:
        with self._lock:
            if self._state not in ("stopped", "failed"):
                raise RunError(
                    "node.state", f"node {self.name} is {self._state}, so it cannot be switched on"
                )
            self._forget()
            with translated():
                self._namespace.set_up(True)
            self._failure = None
            self._state = "up"

    def change(self, plan: NodePlan, spec: dict[str, Any]) -> None:
        """Changes its network stack to that of a plan, with this specification."""
        with self._lock:
            self._must_be_up()
            with translated():
                self._namespace.change(spec)
            self._plan = plan
            self.taps = self._namespace.taps()

    def pause(self) -> None:
        with self._lock:
            if self._state == "paused":
                return
            self._must_be_up()
            if self._init is not None:
                self._halt(True)
            self._state = "paused"

    def resume(self) -> None:
        with self._lock:
            if self._state != "paused":
                return
            if self._init is not None:
                self._halt(False)
            self._state = "up"

    def cpu(self) -> Cpu:
        with self._lock:
            now = self._running_time()
            return self._spent if now is None else _sum(self._spent, now)

    def switches(self) -> dict[int, int]:
        group = self._group
        with contextlib.suppress(OSError):  # the supervisor removes it when the node has ended
            return group.switches() if group is not None else {}
        return {}

    def counters(self) -> dict[str, dict[str, int]]:
        with translated():
            return self._namespace.counters()

    def close(self) -> None:
        """Ends its processes. Its namespace is removed with those of all nodes of its kind."""
        with self._lock:
            self._state = "closed"
            if self._init is not None:
                with contextlib.suppress(LabError):  # without a supervisor there are no processes
                    self._site.supervisor.kill(self.name)
                self._init.close()

    def wait_closed(self) -> None:
        """Waits until its processes have ended."""
        self._wait_over(_DYING)

    def _wait_over(self, timeout: float) -> None:
        if self._init is not None and not self._over.wait(timeout):
            raise RunError("node.end", f"node {self.name}: its processes do not end within {timeout:g} s")

    def settle(self) -> None:
        """Waits until it can run programs."""
        self._ready()

    def _visible(self) -> tuple[Path, ...]:
        """Host folders and files that it sees even below its private folders."""
        return (*self._site.visible, *self._site.own, *(_MACHINE if self._plan.machine_network else ()))

    def _how(self, message: Message) -> str:
        """How its first process ended, according to the supervisor's message."""
        if self._init is not None and self._init.protocol_error is not None:
            return f"its first process violates the protocol: {self._init.protocol_error}"
        if message["signal"] is not None:
            how = f"was killed by signal {message['signal']}"
        elif message["code"] is not None:
            how = f"ended with exit code {message['code']}"
        else:
            how = "ended with the supervisor of all nodes"
        return f"its first process {how}"

    # Overridden by kinds with their own root file system

    def _image(self) -> Message | None:
        """The root file system of its programs; None for the host's."""
        return None

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The controller's environment and ``more``, without its temporary folder variables.

        A node has its own /tmp. ``AIRLOOM_PYTHON`` is Airloom's interpreter, with all packages
        installed for it.
        """
        own = {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "TMP", "TEMP")}
        own["PATH"] = programs.search_path()
        return {**own, "AIRLOOM_PYTHON": sys.executable, **more}

    def _folder(self) -> str:
        """The default working folder of its programs."""
        return "/tmp"

    def _ready(self) -> InitClient:
        self.wake()
        init = self._init
        if init is None:
            raise RunError("node.gone", f"node {self.name} has just ended")
        notes = init.ready()
        with self._lock:
            if self._init is init and self._made is not None:
                self._notes = (*self._made.notes, *notes)
        return init

    def _must_be_up(self) -> None:
        if self._state != "up":
            why = f": {self._failure}" if self._failure else ""
            raise RunError("node.state", f"node {self.name} is {self._state}{why}")

    def _halt(self, halt: bool) -> None:
        if self._group is not None:
            self._group.freeze(halt)
        elif self._init is not None:
            self._init.signal_all(signal.SIGSTOP if halt else signal.SIGCONT)

    def _off(self, timeout: float, ended: Callable[[], None] | None = None) -> None:
        """After its processes have ended: takes the interfaces down."""
        self._wait_over(timeout)
        self._forget()
        if ended is not None:
            ended()
        with translated():
            self._namespace.set_up(False)

    def _forget(self) -> None:
        if self._init is not None:
            self._init.close()
        self._init = self._made = self._group = None

    def _running_time(self) -> Cpu | None:
        """Processor time of the current first process and its programs."""
        if self._group is not None:
            with contextlib.suppress(OSError):  # the supervisor removes it when the node has ended
                return self._group.processor_time()
        elif self._init is not None and self._state == "up":
            with contextlib.suppress(LabError):
                return Cpu(*self._init.processor_time())
        return None

    def _account(self) -> None:
        """Adds the processor time used so far, before the cgroup that counts it is removed."""
        now = self._running_time()
        if now is not None:
            self._spent = _sum(self._spent, now)

    def _ended(self, over: threading.Event, message: Message) -> None:
        """Handles the supervisor's report of the first process's end. Called on the reading thread."""
        over.set()
        # Not under the lock: the thread that stops the node holds it and waits for this event.
        if self._state in ("up", "paused") and over is self._over:
            self._has_ended(message)
        if self._site.pacer is not None:
            self._site.pacer.over(self.name, self._failure)

    def _has_ended(self, message: Message) -> None:
        """Its first process has ended unexpectedly."""
        self._fail(self._how(message))

    def _fail(self, why: str) -> None:
        """Marks the node as failed and reports it to the run."""
        self._failure = why
        self._state = "failed"
        if self._site.on_failure is not None:
            self._site.on_failure(self)


class NetnsKind(Kind):
    """Creates nodes on the host's kernel; their interfaces are ports of the engine."""

    name: ClassVar[str] = "netns"
    properties: ClassVar[Properties] = Properties(
        programs=True, own_kernel=False, engine=True, cpu_share=True, pause=True, virtual_time=False
    )
    nature: ClassVar[Nature] = Nature(
        taxonomy="OS-level virtualization",
        backend="virtual routing",
        own_files=False,
        start="milliseconds",
        memory="0.3 MB: thousands on one machine (`bench bringup`)",
        porting="none: namespaces are a feature of the kernel",
        isolation="processes, network, temporary folders; other files and root's rights are the host's",
        transparency="programs and the host kernel's network stack",
        flexibility="the host's kernel with network settings of each node (`sysctl`)",
    )

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._nodes: dict[str, NetnsNode] = {}

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        wires = self.wires(plans)
        wired: dict[str, set[str]] = {}
        for a, a_interface, b, b_interface in wires:
            wired.setdefault(a, set()).add(a_interface)
            wired.setdefault(b, set()).add(b_interface)
        without = self.site.supervisor.folder is not None
        own = [] if without else [plan for plan in plans if not plan.machine_network]
        specs = [self.spec(plan, wired.get(plan.name, set())) for plan in own]
        with translated():
            made_at_once = _engine.bring_up(specs, wires, self.site.radios.device)
            namespaces = dict(zip((plan.name for plan in own), made_at_once, strict=True))
            for plan in plans:
                if without or plan.machine_network:
                    namespaces[plan.name] = _engine.Namespace.of_machine(plan.name)
        made = {plan.name: self.node(plan, namespaces[plan.name]) for plan in plans}
        self._nodes |= made
        return dict(made)

    def node(self, plan: NodePlan, namespace: _engine.Namespace) -> NetnsNode:
        """The handle of a node whose namespace has just been created."""
        return NetnsNode(plan, self.name, namespace, self.site)

    def settle(self) -> None:
        """No wait: these nodes can run programs as soon as they exist."""

    def change(self, plan: NodePlan) -> None:
        node, spec = self._nodes[plan.name], self.spec(plan, set())
        spec["sysctl"] = no_longer_divided(node.plan, plan) | spec["sysctl"]
        node.change(plan, spec)

    def drop(self, name: str) -> None:
        node = self._nodes.pop(name)
        node.close()
        try:
            node.wait_closed()
        finally:
            node.namespace.close()

    def spec(self, plan: NodePlan, wired: set[str]) -> dict[str, Any]:
        """The specification of a node's network namespace; interfaces in ``wired`` have no TAP."""
        return spec_of(plan, wired, self.site.radios.numbers([plan]))

    def wires(self, plans: Sequence[NodePlan]) -> list[tuple[str, str, str, str]]:
        """Links made of veth pairs instead of by the engine: (node, interface, node, interface)."""
        return []

    def close(self) -> list[Exception]:
        nodes, self._nodes = self._nodes, {}
        errors: list[Exception] = []
        # Stop all of them first, then wait for each.
        acts = [node.close for node in nodes.values()] + [node.wait_closed for node in nodes.values()]
        for act in acts:
            try:
                act()
            except LabError as error:
                errors.append(error)
        _engine.tear_down([node.namespace for node in nodes.values()])
        return errors


def listening_in(table: str, state: str, port: int) -> bool:
    """Whether a port is in ``state`` in the text of a table such as /proc/net/tcp."""
    rows = (line.split()[1:4] for line in table.splitlines()[1:])
    return any(is_in == state and int(local.rpartition(":")[2], 16) == port for local, _, is_in in rows)


def _sum(a: Cpu, b: Cpu) -> Cpu:
    def plus(x: int | None, y: int | None) -> int | None:
        return x if y is None else y if x is None else x + y

    return Cpu(
        a.user_ns + b.user_ns,
        a.system_ns + b.system_ns,
        plus(a.throttled_ns, b.throttled_ns),
        plus(a.wait_ns, b.wait_ns),
    )
