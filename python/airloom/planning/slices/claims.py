"""Which sliver has which radio of a shared node, from when to when.

A sliver keeps its radio, because its interface cannot become that of another node; the slices have
the radio in turn. It is chosen when the sliver is first named, at the start or by an event, in the
order of the slices. An entry ``node:radio`` of a grant asks for a certain one, so such entries are
served first. An entry ``node`` means a sliver that the slice has there already, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airloom.planning.slices.spans import Span, at_time
from airloom.planning.slices.stages import granted, stages
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest


@dataclass(eq=False, slots=True)
class Claim:
    """A sliver: its radio, and when it has it."""

    slice: str
    name: str
    """``NODE-SLICE``; a second one on the node is ``NODE-SLICE-2``."""
    node: str
    radio: str
    held: list[Span] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it has the radio as of the latest change."""
        return bool(self.held) and self.held[-1][1] is None

    def give_up(self, at: int) -> None:
        """Ends its latest span."""
        since, _ = self.held.pop()
        if since < at:
            self.held.append((since, at))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node, or ``node:radio``, in a grant."""

    slice: str
    node: str
    radio: str | None
    path: Path_


def claims(scenario: Scenario, of_node: dict[str, list[str]]) -> tuple[list[Claim], list[Problem]]:
    """Returns the slivers of all slices over the whole run, and the problems of those refused.

    ``of_node``: names of the radios of each node.
    """
    made = _Claims(of_node)
    first = granted(scenario)
    path: dict[str, Path_] = {name: ("slices", name, "grant") for name in first}
    made.set(0, {name: _entries(name, one.nodes, (*path[name], "nodes")) for name, one in first.items()})
    standby = {name: _entries(name, one.standby, (*path[name], "standby")) for name, one in first.items()}
    made.stand_by([entry for own in standby.values() for entry in own])
    for at, numbers, grants in stages(scenario):
        wanted = {}
        for number in numbers:
            event = scenario.events[number]
            if event.slice in grants and event.grant is not None and event.grant.nodes is not None:
                where: Path_ = ("events", number, "grant", "nodes")
                wanted[event.slice] = _entries(event.slice, grants[event.slice].nodes, where)
        made.set(at, wanted)
    known = {claim.slice for claim in made.claims}
    for name in first if not made.problems else ():
        if name not in known:
            made.problems.append(
                Problem(
                    "slice.node",
                    f"{name!r} has no node at any time",
                    (*path[name], "nodes"),
                    "name one, there or in an event",
                )
            )
    return made.claims, made.problems


def _entries(name: str, nodes: Sequence[str], path: Path_) -> list[_Entry]:
    split = (entry.partition(":") for entry in nodes)
    return [_Entry(name, node, radio or None, (*path, index)) for index, (node, _, radio) in enumerate(split)]


class _Claims:
    """The slivers so far."""

    def __init__(self, of_node: dict[str, list[str]]) -> None:
        self._of_node = of_node
        self.claims: list[Claim] = []
        self.problems: list[Problem] = []

    def set(self, at: int, wanted: dict[str, list[_Entry]]) -> None:
        """Gives slices the radios of their entries, and no others, from a time in ns on."""
        entries = [entry for own in wanted.values() for entry in own]
        kept: set[Claim] = set()
        begun = []
        for entry in sorted(entries, key=_is_open):
            claim = next((one for one in self._own(entry) if one.holds and one not in kept), None)
            if claim is None:
                begun.append(entry)
            else:
                kept.add(claim)
        for claim in self.claims:
            if claim.slice in wanted and claim.holds and claim not in kept:
                claim.give_up(at)
        made = {entry: claim for entry in begun if (claim := self._begin(entry, at)) is not None}
        self._name([(entry, made[entry]) for entry in entries if entry in made])

    def stand_by(self, entries: list[_Entry]) -> None:
        """Makes slivers that have no radio yet."""
        made = {}
        for entry in sorted(entries, key=_is_open):
            problem = self._unknown(entry)
            names, holders = self._of_node.get(entry.node, []), self._holders(entry.node)
            radio = entry.radio or next(
                (name for name in names if name not in holders), next(iter(names), "")
            )
            if problem is None and entry.radio is not None and any(self._own(entry)):
                problem = self._twice(entry, radio)
            if problem is not None:
                self.problems.append(problem)
                continue
            made[entry] = claim = Claim(entry.slice, "", entry.node, radio)
            self.claims.append(claim)
        self._name([(entry, made[entry]) for entry in entries if entry in made])

    def _own(self, entry: _Entry) -> Iterator[Claim]:
        """Yields the slivers that an entry can mean."""
        for claim in self.claims:
            if (claim.slice, claim.node) == (entry.slice, entry.node) and entry.radio in (None, claim.radio):
                yield claim

    def _holders(self, node: str) -> dict[str, Claim]:
        """Returns who has which radio of a node."""
        return {claim.radio: claim for claim in self.claims if claim.node == node and claim.holds}

    def _begin(self, entry: _Entry, at: int) -> Claim | None:
        """Gives an entry its radio; returns the sliver if it is a new one."""
        if (problem := self._unknown(entry)) is not None:
            self.problems.append(problem)
            return None
        holders = self._holders(entry.node)
        free = self._free(entry.node)
        idle = sorted(
            (claim for claim in self._own(entry) if not claim.holds),
            key=lambda claim: claim.radio in holders,
        )
        radio = idle[0].radio if idle else entry.radio or next(iter(free), None)
        if radio is None:
            self.problems.append(self._none_left(entry, at))
        elif radio in holders:
            self.problems.append(self._taken(entry, at, radio, holders[radio]))
        elif idle:
            idle[0].held.append((at, None))
        else:
            self.claims.append(Claim(entry.slice, "", entry.node, radio, [(at, None)]))
            return self.claims[-1]
        return None

    def _name(self, made: list[tuple[_Entry, Claim]]) -> None:
        """Names new slivers in the order of their entries."""
        for entry, claim in made:
            stem = f"{claim.node}-{claim.slice}"
            known = {one.name for one in self.claims if (one.node, one.slice) == (claim.node, claim.slice)}
            number = len(known - {""})
            claim.name = stem if number == 0 else f"{stem}-{number + 1}"
            if any(one is not claim and one.name == claim.name for one in self.claims):
                self.problems.append(
                    Problem(
                        "name.duplicate",
                        f"two slivers are called {claim.name!r}",
                        entry.path,
                        "give the node or the slice another name",
                    )
                )

    def _free(self, node: str) -> list[str]:
        holders = self._holders(node)
        return [name for name in self._of_node[node] if name not in holders]

    def _unknown(self, entry: _Entry) -> Problem | None:
        names = self._of_node.get(entry.node)
        if not names:
            return Problem(
                "slice.node",
                f"there is no node {entry.node!r} with radios to share",
                entry.path,
                nearest(entry.node, sorted(self._of_node)),
            )
        if entry.radio is not None and entry.radio not in names:
            message = f"{entry.node!r} has no radio {entry.radio!r}"
            return Problem("slice.radio", message, entry.path, nearest(entry.radio, names))
        return None

    def _twice(self, entry: _Entry, radio: str) -> Problem:
        return Problem(
            "slice.sliver",
            f"{entry.slice!r} already has a sliver of {entry.node!r} with {radio}",
            entry.path,
            f"one sliver for each radio; free there: {', '.join(self._free(entry.node)) or 'none'}",
        )

    def _taken(self, entry: _Entry, at: int, radio: str, owner: Claim) -> Problem:
        if owner.slice == entry.slice:
            return self._twice(entry, radio)
        free = f"free there: {', '.join(self._free(entry.node)) or 'none'}"
        return Problem(
            "slice.radio",
            f"{at_time(at)}{owner.slice!r} and {entry.slice!r} both claim the radio {entry.node}:{radio}",
            entry.path,
            f"{_HAND_OVER}; {free}" if at else free,
        )

    def _none_left(self, entry: _Entry, at: int) -> Problem:
        count = len(self._of_node[entry.node])
        whose = ", ".join(claim.slice for claim in self._holders(entry.node).values())
        return Problem(
            "slice.admission",
            f"{at_time(at)}no radio of {entry.node!r} is left for {entry.slice!r}: its "
            f"{count} {'radios are' if count > 1 else 'radio is'} held by {whose}",
            entry.path,
            _HAND_OVER
            if at
            else "a node carries at most as many slivers as it has radios: give it another radio",
        )


_HAND_OVER = "let the other slice hand one over at the same time or before"


def _is_open(entry: _Entry) -> bool:
    """Whether it leaves the radio open: others are served first, so that no entry takes their radio."""
    return entry.radio is None
