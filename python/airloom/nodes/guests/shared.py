"""Shared guests: several nodes in one guest, each in its own namespaces of the guest's kernel.

The guest's machine is a :class:`~airloom.nodes.guests.guest.GuestNode` that is not a node of the
run. It starts ``airloom-init part`` for each of its nodes, as it starts programs. Standard input
and output of that program are the channel to the node's own first process on the host. A node in a
shared guest is therefore controlled, watched and ended like any other, and its namespaces on the
host contain the control socket of its radios and the TAPs of its interfaces.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from airloom import _engine
from airloom.errors import LabError, RunError
from airloom.nodes.guests import initramfs
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.guests.guest_node import InnerNode, outer
from airloom.nodes.kind import Cpu, Exit, NodeHandle, Site, State
from airloom.nodes.kinds.netns import NetnsKind
from airloom.nodes.process.channel import Message
from airloom.nodes.process.init import InitClient
from airloom.planning.plan import GuestPlan, NodePlan

_INIT = "/proc/1/exe"
"""The guest's own first process, as an executable."""
_TIMEOUT = 30.0
"""Seconds for a part to become ready; after a restart its interfaces have to be returned first."""


class PartNode(InnerNode):
    """One of several nodes of a guest."""

    timeout = _TIMEOUT
    machine: GuestNode

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(plan, kind, namespace, site)
        self._joined: InitClient | None = None
        """The client of the first process that has joined the guest."""
        self._hung_up = False
        """Whether one end of its channel has ended since then."""

    @property
    def wlan_device(self) -> _engine.WlanDevice | None:
        return self.machine.wlan_device

    @property
    def handling(self) -> _engine.Handling | None:
        return self.machine.handling

    @property
    def state(self) -> State:
        return "paused" if self._state == "up" and self._is_held else self._state

    def resume(self) -> None:
        self._must_not_be_held()
        super().resume()

    def restart(self) -> None:
        self._must_not_be_held()
        self.machine.reset()
        self.wait_closed()
        super().restart()
        self.settle()

    def last_lines(self) -> str:
        return self.machine.last_lines()

    @property
    def _is_held(self) -> bool:
        """Whether its guest as a whole is paused."""
        return self.machine.state == "paused"

    def _must_not_be_held(self) -> None:
        if self._is_held:
            guest = self.machine.name
            raise RunError(
                "node.state",
                f"node {self.name} is paused: its guest {guest} is",
                cure=f"resume {guest} first",
            )

    def _must_be_up(self) -> None:
        super()._must_be_up()
        self._must_not_be_held()

    def _ready(self) -> InitClient:
        self._must_be_up()
        self.machine.settle()
        with self._lock:
            self.wake()
            if self._init is not None and self._joined is not self._init:
                self._join(self._init)
        return super()._ready()

    def _join(self, init: InitClient) -> None:
        """Starts the node's part in the guest and connects its first process to it."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with near, far:
            self.machine.start(
                [_INIT, "part"],
                folder="/",
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=self.machine.log,
                on_exit=lambda exit: self._parted(init, exit),
            )
            order = {
                "timeout_ms": round(self.timeout * 1000),
                "virtual_time": self._site.pacer is not None,
                "world": self._world({"from": "part"}),
            }
            init.join(order, near.fileno())
        self._joined = init

    def _parted(self, init: InitClient, exit: Exit) -> None:
        """Called on the reading thread when its part ends. A guest that ends reports this itself."""
        if init is not self._init or self.machine.is_gone:
            return
        signalled = exit.signal is not None
        how = f"was killed by signal {exit.signal}" if signalled else f"ended with code {exit.code}"
        self._lose_unless_hung_up(exit.code, f"its first process in the guest {self.machine.name} {how}")

    def _how(self, message: Message) -> str:
        return super()._how(message).replace("its first process", "its first process on the host", 1)

    def _has_ended(self, message: Message) -> None:
        self._lose_unless_hung_up(message["code"], self._how(message))

    def _lose_unless_hung_up(self, code: int | None, why: str) -> None:
        """Code 0: the channel closed. The other end gives the reason unless it exits with 0 too."""
        if code != 0 or self._hung_up:
            self.lose(why)
        self._hung_up = True

    def _halt(self, halt: bool) -> None:
        """Stops or continues its processes; the kernel is shared with other nodes."""
        if self._joined is not None:
            self._joined.signal_all(signal.SIGSTOP if halt else signal.SIGCONT)

    def _forget(self) -> None:
        super()._forget()
        self._joined = None
        self._hung_up = False

    def _running_time(self) -> Cpu | None:
        """From the guest's kernel, because on the host all nodes share one machine."""
        # No other request is allowed until its part is ready.
        if self._joined is not None and self._joined.is_hosted and self.state == "up":
            with contextlib.suppress(LabError):
                return Cpu(*self._joined.processor_time())
        return None


class GuestKind(NetnsKind):
    """Creates guests: first their namespaces on the host, then all machines in parallel."""

    machines: ClassVar[type[GuestNode]]

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        shared: dict[str, list[NodePlan]] = {}
        self._note_regulatory(plans)
        for plan in plans:
            assert plan.guest is not None
            if plan.guest.shared is not None:
                shared.setdefault(plan.guest.shared, []).append(plan)
        for name in shared:
            if name in self._nodes:
                cure = f"add it with a guest of its own: kind {self.name}"
                raise RunError("lab.grow", f"the guest {name} runs, and takes no more nodes", cure=cure)
        made = super().bring_up([*(_machine(name, one) for name, (one, *_) in shared.items()), *plans])
        for name, several in shared.items():
            machine = made[name]
            assert isinstance(machine, GuestNode)
            for plan in several:
                part = made[plan.name]
                assert isinstance(part, PartNode)
                part.machine = machine
                part.calendar_guest = machine.calendar_guest
                machine.parts.append(part)
        for handle in made.values():
            handle.wake()
        return {plan.name: made[plan.name] for plan in plans}

    def _note_regulatory(self, plans: Sequence[NodePlan]) -> None:
        """Notes that channels of 5 GHz are closed, before programs wait for them for ever."""
        wireless = any(one.wlan is not None for plan in plans for one in plan.interfaces)
        if wireless and not initramfs.regulatory() and initramfs.WITHOUT_REGULATORY not in self.notes:
            self.notes.append(initramfs.WITHOUT_REGULATORY)

    def node(self, plan: NodePlan, namespace: _engine.Namespace) -> InnerNode:
        assert plan.guest is not None
        kind: type[InnerNode] = self.machines if plan.guest.shared is None else PartNode
        node = kind(plan, self.name, namespace, self.site)
        if self.machines.monitored:
            node.open_monitors()
        return node

    @property
    def shared(self) -> dict[str, GuestNode]:
        """The guests that several nodes share, by name."""
        return {
            name: node for name, node in self._nodes.items() if isinstance(node, GuestNode) and node.parts
        }

    def settle(self) -> None:
        for node in self._nodes.values():
            node.settle()

    def spec(self, plan: NodePlan, wired: set[str]) -> dict[str, Any]:
        return super().spec(outer(plan), wired)


def _machine(name: str, plan: NodePlan) -> NodePlan:
    """The plan of the shared guest itself."""
    assert plan.guest is not None
    own: GuestPlan = replace(plan.guest, shared=None)
    return NodePlan(name, plan.kind, (), (), False, own.cpu, {}, {}, guest=own, cpus=own.cpus)
