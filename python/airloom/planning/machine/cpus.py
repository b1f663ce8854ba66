"""Processors and scheduling of nodes, shared guests and the engine on this machine.

Sets without numbers (``one``, ``two``, ``shared``) are mapped to processors that no set with numbers
names: in the order of the engine, the guests and the nodes, the highest number first, because
interrupts usually go to the lowest. What has no set may use all processors but the exclusive ones.

Beside guests that take turns the engine has a processor to itself, if there are two: it serves them
while they are frozen, and must not wait for those that run.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from airloom.planning.machine.guests import MEMORY, said, said_at, shared_by
from airloom.planning.network import Network
from airloom.planning.plan import CpusPlan, NodePlan
from airloom.scenario.model import Cpus, EngineCpus, Guest, Node, Processors, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.given import given
from airloom.units.text import of_nodes

ENGINE = ""
"""Key of the engine among the elements; no node has this name."""
REAL_TIME = ("fifo", "round-robin")
_OWN = {"one": 1, "two": 2}
_OF_GUEST = ("processors", "nice", "policy", "priority")
"""Keys of ``guest`` with the meaning of the same keys of ``cpus``."""


@dataclass(slots=True)
class _Element:
    """A node, a guest or the engine, and what the scenario says of it."""

    name: str
    said: Cpus
    path: Path_
    """Where that is said."""

    @property
    def title(self) -> str:
        return "the engine" if self.name == ENGINE else of_nodes([self.name])


@dataclass(slots=True)
class _Set:
    """A set of processors and the elements that use it."""

    count: int
    """Processors to choose; 0 if their numbers are given."""
    members: list[_Element] = field(default_factory=list)
    exclusive: bool = False
    numbers: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The set and its members, for errors."""
        return " and ".join(member.title for member in self.members[:3])


@dataclass(frozen=True, slots=True)
class Assigned:
    """The processors and the scheduling of every element."""

    nodes: dict[str, CpusPlan]
    """By the name of the node or shared guest; without entries that restrict nothing."""
    engine: tuple[int, ...]
    """Processors of the engine; empty: all."""
    engine_scheduling: CpusPlan | None = None
    """Policy, priority and nice value of the engine; None: it adapts them."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with processors and scheduling."""
    elements, found = _elements(scenario, network)
    yield from found
    told: set[tuple[Path_, str]] = set()
    for element in elements:
        for problem in (*_scheduling(element), *_polled(scenario, element)):
            if (problem.path, problem.code) not in told:
                told.add((problem.path, problem.code))
                yield problem
    wish = scenario.engine.cpus
    if isinstance(wish, EngineCpus):
        yield from _engine_policy(wish)
    if not found:
        sets, unplaced = _placed(elements)
        yield from unplaced
        if not unplaced:
            yield from _apart(scenario, elements, sets)


def assigned(scenario: Scenario, network: Network) -> Assigned:
    """Returns the processors of a scenario without problems."""
    elements, _ = _elements(scenario, network)
    sets, _ = _placed(elements)
    most = max((given(one.said.share, 1.0) for one in elements if one.name != ENGINE), default=1.0)
    weighed = any(element.said.share is not None for element in elements)
    numbers, rest = _numbers(sets)
    nodes = {}
    for element in elements:
        one = element.said
        plan = CpusPlan(
            numbers.get(element.name, rest),
            one.policy,
            one.priority,
            one.nice,
            given(one.share, 1.0) if weighed else None,
            nice_of(given(one.share, 1.0), most) if weighed else 0,
        )
        if element.name != ENGINE and plan != CpusPlan():
            nodes[element.name] = plan
    wish = scenario.engine.cpus
    fixed = None
    if isinstance(wish, EngineCpus) and wish.policy is not None:
        fixed = CpusPlan((), wish.policy, wish.priority, wish.nice)
    return Assigned(nodes, numbers.get(ENGINE, rest), fixed)


def applied(nodes: dict[str, NodePlan], found: Assigned) -> dict[str, NodePlan]:
    """Returns the plans with their processors and scheduling."""

    def one(plan: NodePlan) -> NodePlan:
        guest = plan.guest
        if guest is not None and guest.shared is not None:
            return replace(plan, guest=replace(guest, cpus=found.nodes.get(guest.shared)))
        return replace(plan, cpus=found.nodes.get(plan.name))

    return {name: one(plan) for name, plan in nodes.items()} if found.nodes else nodes


def nice_of(share: float, most: float) -> int:
    """Returns the nice value with which a task has ``share / most`` of the weight at nice 0.

    The kernel's weights fall by 1.25 per step (Linux, ``sched_prio_to_weight`` in
    ``kernel/sched/core.c``). Rounding to whole steps changes a ratio by at most 12 %.
    """
    return round(math.log(most / share) / math.log(1.25))


def available() -> tuple[int, ...]:
    """The processors that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def _elements(scenario: Scenario, network: Network) -> tuple[list[_Element], list[Problem]]:
    """Returns the engine, the shared guests and all nodes, with problems of double settings."""
    found: list[Problem] = []
    default = as_cpus(scenario.cpus)
    engine = scenario.engine.cpus
    own = as_cpus(engine) if engine is not None else _only_processors(default)
    path: Path_ = ("engine", "cpus") if engine is not None else ("cpus",)
    named = engine is not None and own is not None and (own.processors, own.shared) != (None, None)
    if _frozen(scenario) and not named and len(available()) > 1:
        own, path = Cpus(processors="one"), ("turns",)
    elements = [_Element(ENGINE, own or Cpus(), path)]
    machines = {name: Node(inside=name, kind=one.kind) for name, one in scenario.guests.items()}
    alone = {name: node for name, node in network.nodes.items() if node.inside is None}
    for name, node in {**machines, **alone}.items():
        shared = shared_by(scenario, node)
        choice = node.cpus if shared is None else shared.cpus
        path = ("cpus",)
        if choice is not None and shared is not None:
            path = ("guests", name, "cpus")
        elif choice is not None:
            path = said_at("cpus", name, scenario, network)
        wish = as_cpus(choice) if choice is not None else default
        if (node.kind or scenario.kind) in MEMORY:
            machine = said(scenario, node)
            keys = [key for key in _OF_GUEST if getattr(machine, key) != Guest.model_fields[key].default]
            where = _guest_path(scenario, name, node)
            if keys and wish is not None:
                cure = f"write it under cpus, and leave {keys[0]} out"
                message = f"{name!r} has `cpus` already, and a guest's {keys[0]} is part of it"
                found.append(Problem("cpus.twice", message, where, cure))
                continue
            if keys:
                wish, path = Cpus(**{key: getattr(machine, key) for key in keys}), where
        elements.append(_Element(name, wish or Cpus(), path))
    for switch in sorted(network.open_switches):
        elements.append(_Element(switch, Cpus(), ("switches", switch)))
    return elements, found


def _guest_path(scenario: Scenario, name: str, node: Node) -> Path_:
    """Returns where the machine of an element is described."""
    if node.inside is not None:
        own = scenario.guests[name].model_fields_set & set(_OF_GUEST)
        return ("guests", name) if own else ("guest",)
    if node.guest is not None and name in scenario.nodes and node.guest.model_fields_set & set(_OF_GUEST):
        return ("nodes", name, "guest")
    return ("guest",)


def as_cpus(choice: Processors | Literal["one", "two"] | list[int] | None) -> Cpus | None:
    """Returns the short forms of a set as settings."""
    if choice is None or isinstance(choice, Cpus):
        return choice
    if isinstance(choice, EngineCpus):
        return Cpus(**choice.model_dump(exclude_none=True))
    if isinstance(choice, Processors):
        return Cpus(processors=choice.processors, shared=choice.shared, exclusive=choice.exclusive)
    return Cpus(processors=choice)


def _only_processors(one: Cpus | None) -> Cpus | None:
    if one is None:
        return None
    return Cpus(processors=one.processors, shared=one.shared, exclusive=one.exclusive)


def _scheduling(element: _Element) -> Iterator[Problem]:
    """Checks settings against each other and against the rights of this user."""
    one, path = element.said, element.path
    if one.processors is not None and one.shared is not None:
        cure = "leave one of them out"
        yield Problem("cpus.set", "a set is either `processors` or `shared`", path, cure)
    elif one.exclusive and one.processors is None and one.shared is None:
        cure = "name them: processors, or shared"
        yield Problem("cpus.set", "`exclusive` without processors", path, cure)
    if (one.policy in REAL_TIME) != (one.priority > 0):
        if path[-1] == "cpus":  # the rules of guests report their own keys
            yield Problem(
                "cpus.priority",
                f"the policy {one.policy!r} has no priority {one.priority}",
                path,
                f"{' and '.join(REAL_TIME)} have 1 to 99, the others none",
            )
        return
    if one.share is not None and (one.nice or one.policy in (*REAL_TIME, "idle")):
        other = f"nice {one.nice}" if one.nice else f"policy {one.policy}"
        yield Problem("cpus.share", f"a share has no effect with {other}", path, "leave one of them out")
    if one.nice < 0 and not _may(lambda: os.setpriority(os.PRIO_PROCESS, 0, one.nice)):
        yield _no_right(f"nice {one.nice}", path)
    if one.priority and not _may(
        lambda: os.sched_setscheduler(0, POLICIES[one.policy], os.sched_param(one.priority))
    ):
        yield _no_right(f"policy {one.policy}, priority {one.priority}", path)


def _engine_policy(one: EngineCpus) -> Iterator[Problem]:
    """Checks the scheduling of the engine beyond what all elements have in common."""
    path: Path_ = ("engine", "cpus")
    if one.policy is None and one.nice:
        cure = "set policy: other, with which nice values act"
        yield Problem("cpus.policy", "`nice` of the engine without a policy", path, cure)
    elif one.nice and one.policy in (*REAL_TIME, "idle"):
        yield Problem("cpus.policy", f"nice {one.nice} has no effect with {one.policy}", path, "leave it out")


def _polled(scenario: Scenario, element: _Element) -> Iterator[Problem]:
    """Refuses the policy of the threads that poll where it is a node's too: they would share equally."""
    if scenario.engine.idle == "poll" and element.said.policy == "idle":
        yield Problem(
            "engine.idle",
            f"{element.title} has policy idle, and half of its processor would go to polling",
            ("engine", "idle"),
            "give it policy batch and nice 19, or leave out `idle: poll`",
        )


def _no_right(what: str, path: Path_) -> Problem:
    return Problem(
        "cpus.rights",
        f"this user may not raise priorities: {what}",
        path,
        "run as root, or raise its limits nice and rtprio (limits.conf(5))",
    )


POLICIES = {
    "other": os.SCHED_OTHER,
    "fifo": os.SCHED_FIFO,
    "round-robin": os.SCHED_RR,
    "batch": os.SCHED_BATCH,
    "idle": os.SCHED_IDLE,
}
"""Numbers of the kernel's scheduling policies (``sched(7)``)."""


def _may(act: Callable[[], object]) -> bool:
    """Tries a call in a thread of its own, whose scheduling ends with it."""
    refused: list[OSError] = []

    def attempt() -> None:
        try:
            act()
        except OSError as error:
            refused.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return not refused


def _placed(elements: list[_Element]) -> tuple[list[_Set], list[Problem]]:
    """Maps all sets to processors of this machine."""
    sets = _sets(elements)
    here = available()
    found: list[Problem] = []
    for one in sets:
        missing = [number for number in one.numbers if number not in here]
        if missing:
            message = f"this machine has no processor {missing[0]} for {one.words}"
            found.append(Problem("cpus.missing", message, one.members[0].path, f"it has {_listed(here)}"))
    named = {number for one in sets for number in one.numbers}
    free = [number for number in reversed(here) if number not in named]
    wanted = sum(one.count for one in sets)
    for one in sets:
        if one.count > len(free):
            found.append(
                Problem(
                    "cpus.few",
                    f"this machine has too few processors for {one.words}: the scenario's sets need "
                    f"{wanted + len(named)}, and it has {len(here)}",
                    one.members[0].path,
                    "let them share one: cpus: {shared: NAME}",
                )
            )
            break
        if one.count:
            one.numbers = tuple(sorted(free[: one.count]))
            del free[: one.count]
    if not found:
        found += _exclusive(elements, sets, here)
    return sets, found


def _sets(elements: list[_Element]) -> list[_Set]:
    """Returns the sets that the elements name; the same name or the same numbers are one set.

    Exclusive numbers are one set for the elements that have them from one place of the scenario.
    """
    sets: dict[object, _Set] = {}
    for element in elements:
        one = element.said
        key: object
        if one.shared is not None:
            key, made = one.shared, _Set(1)
        elif isinstance(one.processors, str):
            key, made = (element.name,), _Set(_OWN[one.processors], exclusive=True)
        elif one.processors:
            numbers = tuple(sorted(set(one.processors)))
            key, made = (numbers, element.path if one.exclusive else None), _Set(0, numbers=numbers)
        else:
            continue
        here = sets.setdefault(key, made)
        here.members.append(element)
        here.exclusive |= one.exclusive
    return list(sets.values())


def _exclusive(elements: list[_Element], sets: list[_Set], here: tuple[int, ...]) -> Iterator[Problem]:
    """Checks that exclusive sets overlap no other, and leave something for everything else."""
    for one in (one for one in sets if one.exclusive):
        for other in sets:
            both = sorted(set(one.numbers) & set(other.numbers))
            if other is not one and both:
                yield Problem(
                    "cpus.overlap",
                    f"{one.words} has processor {both[0]} alone, and {other.words} uses it too",
                    one.members[0].path,
                    "give them different processors, or leave `exclusive` out",
                )
                return
    taken = {number for one in sets if one.exclusive for number in one.numbers}
    bound = {member.name for one in sets for member in one.members}
    free = [element for element in elements if element.name not in bound]
    if taken >= set(here) and free:
        yield Problem(
            "cpus.none",
            f"no processor of this machine is left for {free[0].title}: all {len(here)} are exclusive",
            next(one for one in sets if one.exclusive).members[0].path,
            "give it a set of its own, or let others share: cpus: {shared: NAME}",
        )


def _numbers(sets: list[_Set]) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    """Returns the processors of each element with a set, and those of all others; empty: all."""
    taken = {number for one in sets if one.exclusive for number in one.numbers}
    rest = tuple(number for number in available() if number not in taken) if taken else ()
    return {member.name: one.numbers for one in sets for member in one.members}, rest


def _apart(scenario: Scenario, elements: list[_Element], sets: list[_Set]) -> Iterator[Problem]:
    """Checks that the engine shares no processor with guests that take turns, if there are two."""
    here = available()
    if len(here) < 2 or not _frozen(scenario):
        return
    numbers, rest = _numbers(sets)

    def of(name: str) -> set[int]:
        return set(numbers.get(name, rest) or here)

    members = {name for said in scenario.turns.values() for name in said.nodes}
    engine = next(element for element in elements if element.name == ENGINE)
    for element in elements:
        both = sorted(of(ENGINE) & of(element.name))
        if element.name in members and both:
            yield Problem(
                "turns.engine",
                f"the engine is on processor {both[0]}, and so is {element.title}, which takes turns",
                engine.path,
                "leave out where the engine is, or give it a processor of its own: cpus: one",
            )
            return


def _frozen(scenario: Scenario) -> bool:
    """Whether guests are frozen while they wait for their turn; in virtual time no time passes for them."""
    return bool(scenario.turns) and scenario.time != "virtual"


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
