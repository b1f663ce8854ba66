"""Nodes under a kernel of their own: what is inside runs at the far end of a channel.

Such a node has a place on the host like a ``netns`` node, with a first process that passes orders, reports
and streams over a channel (``init/src/relay.rs``) to ``airloom-init`` in the guest. The guest may be
the node's own (:mod:`airloom.nodes.guests.guest`), or shared with others
(:mod:`airloom.nodes.guests.shared`).
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
from dataclasses import replace

from airloom import _engine
from airloom.errors import LabError, RunError
from airloom.measure.clock import ClockReading
from airloom.nodes.guests import tap_bridge
from airloom.nodes.guests.vhost_sockets import Door
from airloom.nodes.kind import Site
from airloom.nodes.kinds.netns import NetnsNode
from airloom.nodes.process.channel import Message
from airloom.nodes.process.init import InitClient
from airloom.nodes.spec import spec_of
from airloom.planning.plan import GuestPlan, InterfacePlan, NodePlan

_READINGS = 12
"""Of a guest's clock, for one that is exact."""
_ANSWER = 20.0
"""How much longer than its guest a node's first process may take to say that it gave up, in seconds."""
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

    patience: float
    """Seconds that it may take to be ready."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(outer(plan), kind, namespace, site)
        self.guest = plan
        """What is to be inside."""
        names = [one.name for one in plan.interfaces if one.real is None and one.name not in self.taps]
        self._doors = {name: Door.open() for name in names}
        self.doors = {name: door.listener.fileno() for name, door in self._doors.items()}

    @property
    def settings(self) -> GuestPlan:
        """Its guest's memory, network, scheduling and so on."""
        assert self.guest.guest is not None
        return self.guest.guest

    @property
    def behind_taps(self) -> list[InterfacePlan]:
        """The interfaces that it has by way of the host's."""
        return [one for one in self.guest.interfaces if one.name in self.taps]

    @property
    def knockers(self) -> list[tuple[InterfacePlan, int]]:
        """The interfaces that the engine serves, each with the descriptor by which its machine reaches it."""
        plans = {one.name: one for one in self.guest.interfaces}
        return [(plans[name], door.knocker) for name, door in self._doors.items()]

    @property
    def namespace_number(self) -> int:
        """The descriptor of its network namespace on the host."""
        return self._namespace.fileno()

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

    def counters(self) -> dict[str, dict[str, int]]:
        """As the hosting interfaces count if the node is behind some; else as its own kernel does."""
        if not self.taps:
            return self.inner_counters()
        return tap_bridge.as_one(super().counters(), [one.name for one in self.behind_taps])

    def inner_counters(self) -> dict[str, dict[str, int]]:
        """As the guest's own kernel counts; nothing once it has gone."""
        rows = (line.partition(":") for line in self._net("dev").splitlines()[2:])
        return {
            name.strip(): {word: int(values.split()[column]) for word, column in _DEV_FIELDS.items()}
            for name, _, values in rows
        }

    def close(self) -> None:
        super().close()
        for door in self._doors.values():
            door.close()
        self._doors = {}

    def lose(self, why: str) -> None:
        """What was inside has gone."""
        if self._state in ("up", "paused"):
            self._fail(why)

    def _world(self, root: Message) -> Message:
        """What is to be made inside, in the words of ``World`` in ``init/src/message.rs``."""
        plan = self.guest
        return {
            "name": plan.name,
            "root": root,
            "files": {**self._site.keeper.common, **plan.files},
            # What the host shows is not in a root of the guest's own.
            "visible": [str(path) for path in (*self._site.visible, *self._site.own)]
            if self.settings.root is None
            else [],
            "network": spec_of(plan, {interface.name for interface in plan.interfaces}),
        }

    def _ready(self) -> InitClient:
        init = super()._ready()
        try:
            notes = init.hosted(self.patience + _ANSWER)
        except RunError as error:
            raise self._explained(error) from None
        with self._lock:
            self._notes = (*self._notes, *notes)
        return init

    def _explained(self, error: RunError) -> RunError:
        """An error of the guest's start, with what the guest itself said of it."""
        said = self.last_lines()
        words = f"{error.message}; its console said last: {said}" if said else error.message
        return RunError(error.code, words, where=error.where, cure=error.cure)

    def last_lines(self) -> str:
        """The end of what its guest's console said."""
        raise NotImplementedError


def outer(plan: NodePlan) -> NodePlan:
    """The place of a node: its interfaces, if it is behind some of the host's, without addresses."""
    assert plan.guest is not None
    interfaces = plan.interfaces if plan.guest.network == "tap" else ()
    bare = tuple(replace(interface, addresses=()) for interface in interfaces)
    return replace(plan, interfaces=bare, routes=(), forwarding=False, files={}, sysctl={})
