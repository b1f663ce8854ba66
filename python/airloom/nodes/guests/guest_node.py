"""Nodes inside a guest: their programs run under the guest's kernel, reached over a channel.

Such a node has namespaces on the host like a ``netns`` node. Its first process there forwards
commands, reports and streams over a channel (``init/src/relay.rs``) to ``airloom-init`` in the
guest. The guest belongs to one node (:mod:`airloom.nodes.guests.guest`), or is shared by several
(:mod:`airloom.nodes.guests.shared`).
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from airloom import _engine
from airloom.errors import LabError, RunError
from airloom.measure.clock import ClockReading
from airloom.nodes.guests import tap_bridge
from airloom.nodes.guests.guest_sockets import GuestSocket
from airloom.nodes.kind import Monitor, Site
from airloom.nodes.kinds.netns import NetnsNode
from airloom.nodes.process.channel import Message
from airloom.nodes.process.init import InitClient
from airloom.nodes.spec import spec_of
from airloom.nodes.virtual_time import Pacer
from airloom.planning.plan import GuestPlan, InterfacePlan, NodePlan

_READINGS = 12
"""Readings of a guest's clock that are combined into an exact one."""
_ANSWER = 20.0
"""Seconds beyond the guest's own limit in which a node's first process must report a failed start."""
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


class InnerNode(NetnsNode):
    """A node inside a guest."""

    timeout: float
    """Seconds for it to become ready."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(outer(plan), kind, namespace, site)
        self.guest = plan
        """The plan of the node inside the guest."""
        names = [
            one.name
            for one in plan.interfaces
            if one.real is None and one.wlan is None and not one.bridge and one.name not in self.taps
        ]
        self._sockets = {name: GuestSocket.open() for name in names}
        self.vhost_sockets = {name: one.listener.fileno() for name, one in self._sockets.items()}
        self._monitors: dict[str, GuestSocket] = {}

    def open_monitors(self) -> None:
        """Creates the sockets on which its machine takes the link status of its cards."""
        self._monitors = {one.name: GuestSocket.open() for one in self.cards}
        self.monitors = {
            one.name: Monitor(self._monitors[one.name].listener.fileno(), card_name(one))
            for one in self.cards
        }

    @property
    def settings(self) -> GuestPlan:
        """Memory, network, scheduling and other settings of its guest."""
        assert self.guest.guest is not None
        return self.guest.guest

    @property
    def behind_taps(self) -> list[InterfacePlan]:
        """The interfaces connected through TAPs and interfaces of the host."""
        return [one for one in self.guest.interfaces if one.name in self.taps]

    @property
    def vhost_paths(self) -> list[tuple[InterfacePlan, int]]:
        """Interfaces that the engine serves, with the descriptors for the machine's connections."""
        plans = {one.name: one for one in self.guest.interfaces}
        return [(plans[name], one.path) for name, one in self._sockets.items()]

    @property
    def cards(self) -> list[InterfacePlan]:
        """The interfaces that are network cards of its machine."""
        return [*self.behind_taps, *(interface for interface, _ in self.vhost_paths)]

    @property
    def monitor_paths(self) -> list[int]:
        """Descriptors for the machine's connections to the monitors of its cards."""
        return [self._monitors[one.name].path for one in self.cards]

    @property
    def namespace_number(self) -> int:
        """The descriptor of its network namespace on the host."""
        return self._namespace.fileno()

    def _net(self, table: str) -> str:
        with contextlib.suppress(LabError):  # the node may just have ended
            return self._ready().read(f"/proc/net/{table}") or ""
        return ""

    def clock(self) -> ClockReading:
        """Reads both clocks several times. They run at one rate, so each reading bounds the offset."""
        init = self._ready()
        if self._site.pacer is not None:
            return virtual_clock(self._site.pacer, init)
        readings = [init.clock() for _ in range(_READINGS)]
        least = max(inside - after for _, inside, after in readings)
        most = min(inside - before for before, inside, _ in readings)
        return ClockReading(readings[-1][2], (least + most) // 2, max(1, (most - least) // 2))

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """In virtual time only what two logins have in common, so that two runs are the same."""
        found = super()._environment(more)
        if self._site.pacer is None:
            return found
        kept = {"PATH", "HOME", "LANG", "AIRLOOM_PYTHON", *more}
        return {name: value for name, value in found.items() if name in kept or name.startswith("LC_")}

    def halted(self) -> frozenset[int]:
        """None: the stopped processes of this machine are those that its guest's kernel traces."""
        return frozenset()

    def counters(self) -> dict[str, dict[str, int]]:
        """From the hosting interfaces if it is behind TAPs; otherwise from its own kernel."""
        if not self.taps:
            return self.inner_counters()
        return tap_bridge.as_one(super().counters(), [one.name for one in self.behind_taps])

    def inner_counters(self) -> dict[str, dict[str, int]]:
        """The counters of the guest's own kernel; empty once it has ended."""
        rows = (line.partition(":") for line in self._net("dev").splitlines()[2:])
        return {
            name.strip(): {word: int(values.split()[column]) for word, column in _DEV_FIELDS.items()}
            for name, _, values in rows
        }

    def close(self) -> None:
        super().close()
        for one in (*self._sockets.values(), *self._monitors.values()):
            one.close()
        self._sockets, self._monitors = {}, {}

    def lose(self, why: str) -> None:
        """Marks the node as failed because the part inside the guest has ended."""
        if self._state in ("up", "paused"):
            self._fail(why)

    def _world(self, root: Message) -> Message:
        """Configuration of the node inside the guest, as ``World`` in ``init/src/message.rs``."""
        plan = self.guest
        return {
            "name": plan.name,
            "root": root,
            "files": {**self._site.supervisor.common, **plan.files},
            # Visible host paths do not exist in a guest's own root file system.
            "visible": [str(path) for path in (*self._site.visible, *self._site.own)]
            if self.settings.root is None
            else [],
            "network": spec_of(plan, {interface.name for interface in plan.interfaces}),
        }

    def _ready(self) -> InitClient:
        init = super()._ready()
        try:
            notes = init.hosted(self.timeout + _ANSWER)
        except RunError as error:
            raise self._explained(error) from None
        with self._lock:
            self._notes = (*self._notes, *notes)
        return init

    def _explained(self, error: RunError) -> RunError:
        """An error of the guest's start, extended by the guest's own output."""
        said = self.last_lines()
        words = f"{error.message}; last console output: {said}" if said else error.message
        return RunError(error.code, words, where=error.where, cure=error.cure)

    def last_lines(self) -> str:
        """The last lines of its guest's console output."""
        raise NotImplementedError


def virtual_clock(pacer: Pacer, init: InitClient) -> ClockReading:
    """Reads a guest's clock against the calendar. Between both lies what its kernel did before it had
    a clock.
    """
    before = pacer.now()
    _, inside, _ = init.clock()
    after = pacer.now()
    return ClockReading(after, inside - (before + after) // 2, max(1, -(-(after - before) // 2)))


def card_name(interface: InterfacePlan) -> str:
    """Name of an interface's network card in its machine, in which no other has its address."""
    return "net" + interface.mac.replace(":", "")


def outer(plan: NodePlan) -> NodePlan:
    """A node's plan on the host: its cards, if connected through TAPs, without addresses."""
    assert plan.guest is not None
    taps = plan.guest.network == "tap"
    cards = [one for one in plan.interfaces if one.wlan is None and not one.bridge and taps]
    bare = tuple(replace(card, addresses=()) for card in cards)
    return replace(plan, interfaces=bare, routes=(), neighbours=(), forwarding=False, files={}, sysctl={})
