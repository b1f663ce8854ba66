"""Finds what a request may be granted: which nodes and radios, which channels, which slots.

A grant may stand beside those that are held in its window if no radio is in both, and if for each of
them the channels do not overlap, or the slots are disjoint, or the nodes are so far apart that
neither disturbs the other (:mod:`airloom.grid.isolation`). OR-Tools' CP-SAT searches for such a grant,
and proves that there is none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from airloom.grid.grants import Grant
from airloom.grid.isolation import Isolation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

LIMIT_S = 2.0
"""How long a search may take; then the best grant found so far counts."""
_OF_A_RADIO = 100
"""Cost of a node where another slice holds a radio: slices of one node share its processors."""


@dataclass(frozen=True, slots=True)
class Held:
    """A grant that is held from ``start`` to ``end``, in seconds since 1970."""

    id: str
    slice: str
    start: int
    end: int
    grant: Grant


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked for; the window is from ``start`` to ``end``, in seconds since 1970."""

    start: int
    end: int
    slice: str
    nodes: tuple[str, ...] = ()
    """Nodes that the grant must have."""
    count: int = 1
    """How many nodes, those of ``nodes`` included."""
    area: tuple[float, float, float, float] | None = None
    """Least x and y and largest x and y of the other nodes, in metres."""
    radios: int = 1
    """Radios on each node."""
    channels: tuple[int, ...] = ()
    """Channels that the grant must have."""
    channel_count: int = 1
    """How many channels, those of ``channels`` included."""
    slots: int | None = None
    """How many slots; None: the whole frame."""
    power_dbm: float = 16.0
    apart: bool = False
    """Its nodes may stand in parts of the testbed that do not hear each other."""

    def at(self, start: int) -> Ask:
        """Returns the same request at another time."""
        return replace(self, start=start, end=start + self.end - self.start)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found."""

    status: Literal["granted", "impossible", "undecided"]
    """``impossible`` is proven; ``undecided``: the time was over."""
    grant: Grant | None = None
    best: bool = False
    """The grant is proven to be the best one."""
    reason: str = ""
    """Why there is none."""


def beside(held: Iterable[Held], start: int, end: int) -> list[Held]:
    """Returns what is held at some time of a window."""
    return [one for one in held if one.start < end and start < one.end]


def conflict(isolation: Isolation, slice_name: str, grant: Grant, other: Held) -> str | None:
    """Returns why a grant cannot stand beside another one at the same time; None if it can."""
    if slice_name == other.slice:
        return f"a slice {slice_name!r} is on the air then"
    for node in grant.radios.keys() & other.grant.radios.keys():
        both = set(grant.radios[node]) & set(other.grant.radios[node])
        if both:
            return f"{node}:{min(both)} is held"
    if not set(grant.slots) & set(other.grant.slots):
        return None
    for channel in grant.channels:
        for theirs in other.grant.channels:
            if theirs not in isolation.overlaps[channel]:
                continue
            there = isolation.excess_db(grant.nodes, grant.power_dbm, other.grant.nodes, theirs)
            back = isolation.excess_db(other.grant.nodes, other.grant.power_dbm, grant.nodes, channel)
            power, above = max(there, back, key=lambda one: one[1])
            if above > 0:
                return (
                    f"on channel {channel} slices would disturb each other with {power:.1f} dBm, "
                    f"and {power - above:.1f} dBm are allowed"
                )
    return None


def find(isolation: Isolation, ask: Ask, held: Iterable[Held], limit_s: float = LIMIT_S) -> Answer:
    """Searches for the best grant beside what is held in the request's window."""
    field = _Field(isolation, ask, beside(held, ask.start, ask.end))
    reason = field.refusal()
    if reason is not None:
        return Answer("impossible", reason=reason)
    return field.solve(limit_s)


def nearest(
    isolation: Isolation,
    ask: Ask,
    held: Sequence[Held],
    earliest: int,
    latest: int,
    limit_s: float = LIMIT_S,
) -> tuple[int | None, Answer]:
    """Returns the possible start between ``earliest`` and ``latest`` that is nearest to the asked one.

    What is held in a window of given length changes only where the window begins at the end of
    something held, or ends at its start, so only those starts are tried. The answer without a start
    is ``impossible`` if all of them were excluded, and ``undecided`` if the time was over before.
    """
    over = time.monotonic() + limit_s
    length = ask.end - ask.start
    starts = {ask.start, earliest, latest, *(one.end for one in held), *(one.start - length for one in held)}
    allowed = (start for start in starts if earliest <= start <= latest)
    undecided = False
    for start in sorted(allowed, key=lambda start: (abs(start - ask.start), start)):
        left = over - time.monotonic()
        if left <= 0:
            undecided = True
            break
        answer = find(isolation, ask.at(start), held, left)
        if answer.grant is not None:
            return start, answer
        undecided = undecided or answer.status == "undecided"
    reason = "no start in that time was found" if undecided else "no start in that time is possible"
    return None, Answer("undecided" if undecided else "impossible", reason=reason)


class _Field:
    """What is free for a request: by node, by channel and slot."""

    def __init__(self, isolation: Isolation, ask: Ask, held: list[Held]):
        self.isolation = isolation
        self.ask = ask
        self.held = held
        self.testbed = isolation.testbed
        self.names = list(self.testbed.nodes)
        self.channels = self.testbed.inventory.channels
        taken: dict[str, set[str]] = {}
        for one in held:
            for node, radios in one.grant.radios.items():
                taken.setdefault(node, set()).update(radios)
        self.taken = {node: len(radios) for node, radios in taken.items()}
        self.free = {
            name: [radio for radio in node.radios if radio not in taken.get(name, ())]
            for name, node in self.testbed.nodes.items()
        }
        self.usable = np.array([self._is_usable(name) for name in self.names])
        self.blocked = self._blocked()
        self.parts = [0] * len(self.names) if ask.apart else isolation.parts(ask.power_dbm)

    def _is_usable(self, name: str) -> bool:
        if len(self.free[name]) < self.ask.radios:
            return False
        if name in self.ask.nodes or self.ask.area is None:
            return True
        x, y, _ = self.testbed.place(name)
        low_x, low_y, high_x, high_y = self.ask.area
        return low_x <= x <= high_x and low_y <= y <= high_y

    def _blocked(self) -> Mask:
        """Where and when each channel is in use: an array (channels, slots, nodes)."""
        found = np.zeros((len(self.channels), self.testbed.frame, len(self.names)), dtype=np.bool_)
        for one in self.held:
            grant = one.grant
            for number, channel in enumerate(self.channels):
                for theirs in self.isolation.overlaps[channel].intersection(grant.channels):
                    found[number, list(grant.slots)] |= self.isolation.disturbed(
                        grant.nodes, grant.power_dbm, theirs, self.ask.power_dbm, channel
                    )
        return found

    def refusal(self) -> str | None:
        """Returns why there is no grant, where that shows without a search."""
        ask = self.ask
        if any(one.slice == ask.slice for one in self.held):
            return f"a slice {ask.slice!r} is on the air then"
        for name in ask.nodes:
            if len(self.free[name]) < ask.radios:
                return f"{name} has {len(self.free[name])} free radios then"
        if self.usable.sum() < ask.count:
            return f"{int(self.usable.sum())} nodes have free radios then"
        enough = self._enough()
        for channel in ask.channels:
            if not enough[self.channels.index(channel)]:
                return f"channel {channel} is in use then within range of the nodes"
        if enough.sum() < ask.channel_count:
            return f"{int(enough.sum())} channels are free then for so many nodes and slots"
        return None

    def _enough(self) -> Mask:
        """Returns for each channel whether it has enough slots with enough free nodes each."""
        ask = self.ask
        free = ~self.blocked & self.usable
        nodes = free.sum(axis=2) >= ask.count
        named = [self.names.index(name) for name in ask.nodes]
        nodes &= free[:, :, named].all(axis=2)
        if ask.slots is None:
            enough: Mask = nodes.all(axis=1) & (free.all(axis=1).sum(axis=1) >= ask.count)
            return enough
        return np.asarray(nodes.sum(axis=1) >= ask.slots)

    def _alike(self) -> list[list[int]]:
        """Groups usable nodes that differ in nothing a search could see, in the order of the inventory."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in map(int, np.flatnonzero(self.usable)):
            name = self.names[number]
            own = name if name in self.ask.nodes else None
            key = (own, self.parts[number], self.taken.get(name, 0), self.blocked[:, :, number].tobytes())
            groups.setdefault(key, []).append(number)
        return list(groups.values())

    def solve(self, limit_s: float) -> Answer:
        """Searches with CP-SAT. Nodes that are alike are one variable, how many of them are taken."""
        from ortools.sat.python import cp_model

        ask = self.ask
        model = cp_model.CpModel()
        groups = self._alike()
        taken = [model.new_int_var(0, len(group), "") for group in groups]
        channel = [model.new_bool_var("") for _ in self.channels]
        slot = [model.new_bool_var("") for _ in range(self.testbed.frame)]
        model.add(sum(taken) == ask.count)
        model.add(sum(channel) == ask.channel_count)
        model.add(sum(slot) == (self.testbed.frame if ask.slots is None else ask.slots))
        for group, number in zip(groups, taken, strict=True):
            if self.names[group[0]] in ask.nodes:
                model.add(number == 1)
        for wanted in ask.channels:
            model.add(channel[self.channels.index(wanted)] == 1)
        part = {number: model.new_bool_var("") for number in sorted(set(self.parts))}
        model.add_exactly_one(part.values())
        for group, number in zip(groups, taken, strict=True):
            model.add(number == 0).only_enforce_if(part[self.parts[group[0]]].negated())
        for of_channel, row in zip(channel, self.blocked, strict=True):
            for of_slot, nodes in zip(slot, row, strict=True):
                if (~nodes & self.usable).sum() < ask.count:
                    model.add_bool_or(of_channel.negated(), of_slot.negated())
                    continue
                for group, number in zip(groups, taken, strict=True):
                    if nodes[group[0]]:
                        model.add(number == 0).only_enforce_if(of_channel, of_slot)
        cost = [
            _OF_A_RADIO * self.taken.get(self.names[group[0]], 0) * number
            for group, number in zip(groups, taken, strict=True)
        ]
        cost += [number * var for number, var in enumerate(channel)]
        cost += [number * var for number, var in enumerate(slot)]
        model.minimize(sum(cost))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = max(limit_s, 0.01)
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            return Answer("impossible", reason="no nodes, channels and slots keep the isolation then")
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Answer("undecided", reason=f"no grant was found in {limit_s:.1f} s, and none excluded")
        chosen = sorted(
            one for group, number in zip(groups, taken, strict=True) for one in group[: solver.value(number)]
        )
        grant = Grant(
            {self.names[one]: tuple(self.free[self.names[one]][: ask.radios]) for one in chosen},
            tuple(self.channels[number] for number, var in enumerate(channel) if solver.value(var)),
            tuple(number for number, var in enumerate(slot) if solver.value(var)),
            ask.power_dbm,
        )
        return Answer("granted", grant, best=status == cp_model.OPTIMAL)


def conflicts(
    isolation: Isolation, slice_name: str, grant: Grant, held: Iterable[Held]
) -> Iterator[tuple[Held, str]]:
    """Yields each held grant that a grant cannot stand beside, with the reason."""
    for one in held:
        reason = conflict(isolation, slice_name, grant, one)
        if reason is not None:
            yield one, reason
