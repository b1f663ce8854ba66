"""Compares what runs in a laboratory with the plan of a changed scenario.

The comparison is of plans, so a default that is written out is no difference. The result lists each
step from one to the other, and what cannot be changed while a laboratory runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from airloom.planning import event_difference, timed_changes
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import InterfacePlan, LinkPlan, NodePlan, Plan
from airloom.planning.radio import difference as radio_difference
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Event, Program
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.given import given

Sign = Literal["+", "-", "~", "!"]
"""Added, removed, changed in place, or restarted."""

CHANGED_IN_PLACE = ("netns", "container")
"""Kinds whose network stack can change while their programs run."""
DIRECTIONS = ("forward", "backward")
_COMPARED = {
    "nodes",
    "switches",
    "tunnels",
    "links",
    "media",
    "topology",
    "programs",
    "addresses",
    "slices",
    "events",
}
"""Keys of a scenario whose meaning is in its plan, or that are compared here."""
_OF_NODES = {"kind", "image", "cpus", "guest", "guests", "routing", "routes", "equal_paths"}
"""Keys of a scenario whose meaning is in the plans of its nodes."""
_OF_RUNS = {"name", "description", "measurements", "claims", "duration", "repetitions", "sweep"}
"""Keys of a scenario without a meaning for a laboratory, which runs until it is ended."""
_ANEW = {
    "kind": "its kind changes",
    "cpu": "its share of a processor changes",
    "cpus": "its processors change",
    "files": "its files change",
    "sysctl": "its sysctl settings change",
    "openvswitch": "its bridges change",
    "image": "its image changes",
    "guest": "its machine changes",
    "mounts": "its mounts change",
}
"""Parts of a node's plan that hold from its start."""
_KEPT = "end the laboratory, and start it with the new file"


@dataclass(frozen=True, slots=True)
class Present:
    """A laboratory as it runs now."""

    plan: Plan
    now: int
    """Engine time in ns."""
    settings: Mapping[str, Mapping[str, LinkSettings]]
    """By emulated link and direction: its settings in force."""
    down: frozenset[str] = frozenset()
    """Links that are down."""
    states: Mapping[str, str] = field(default_factory=dict)
    """By node: ``up``, ``paused``, ``stopped``, ``failed``."""
    radios: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By port: the state of a radio in the engine."""
    switches: Mapping[str, Any] = field(default_factory=dict)
    """Switches that the engine has had, with their last settings."""
    laws: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Media that the engine has had, with their last settings."""
    by_hand: Sequence[Event] = ()
    """Events of the plan that its file does not have: changes of grants by hand."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that changes."""

    sign: Sign
    what: str
    """Such as ``link h1-s1``."""
    said: str = ""
    """From what to what, or why."""

    def __str__(self) -> str:
        return f"{self.sign} {self.what}" + (f": {self.said}" if self.said else "")


@dataclass(slots=True)
class Difference:
    """From what runs to the plan of a changed scenario."""

    before: Plan
    after: Plan
    steps: list[Step] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """What cannot change while the laboratory runs."""
    nodes_removed: list[str] = field(default_factory=list)
    nodes_added: list[str] = field(default_factory=list)
    nodes_restarted: list[str] = field(default_factory=list)
    """Nodes that end and are made anew, alone."""
    nodes_changed: list[str] = field(default_factory=list)
    """Nodes whose network stack changes while their programs run."""
    switches_set: list[str] = field(default_factory=list)
    """Switches that are new, or have new settings."""
    links_removed: list[str] = field(default_factory=list)
    links_added: list[str] = field(default_factory=list)
    links_set: list[tuple[str, str, LinkSettings]] = field(default_factory=list)
    """Link, direction and its new settings."""
    links_raised: list[tuple[str, bool]] = field(default_factory=list)
    """Links that come up or go down."""
    links_tagged: list[str] = field(default_factory=list)
    """Links with other VLANs at a switch."""
    radio: radio_difference.RadioDifference = field(default_factory=radio_difference.RadioDifference)
    """What changes on the air."""
    events: event_difference.EventDifference = field(default_factory=event_difference.EventDifference)
    """What changes of events."""
    published: bool = False
    """Whether this machine offers other ports of nodes."""
    programs_removed: list[str] = field(default_factory=list)
    """Programs that end; those that change are in ``programs_added`` too."""
    programs_added: list[str] = field(default_factory=list)

    @property
    def moves_addresses(self) -> bool:
        """True if an address leads to another interface than before."""
        return _places(self.before) != _places(self.after)

    def __bool__(self) -> bool:
        return bool(self.steps)


def compare(present: Present, after: Plan) -> Difference:
    """Returns the difference from what runs to a plan."""
    found = Difference(present.plan, after)
    _scenario(found)
    _nodes(found, present)
    _switches(found, present)
    _links(found, present)
    off = frozenset(name for name, state in present.states.items() if state not in ("up", "paused"))
    air = radio_difference.Air(present.now, present.radios, present.laws, off)
    found.radio = radio_difference.compare(present.plan, after, air)
    found.problems += found.radio.problems
    found.steps += [Step(*step) for step in found.radio.steps]
    _programs(found)
    found.events = event_difference.compare(present.plan, after, present.now, present.by_hand)
    found.events.reschedules |= bool(found.radio.added or found.links_added)
    found.problems += found.events.problems
    found.steps += [Step(*step) for step in found.events.steps]
    _published(found)
    return found


def _scenario(found: Difference) -> None:
    """Refuses other values of keys that hold from the start."""
    before, after = found.before, found.after
    compared = _COMPARED | _OF_NODES | _OF_RUNS
    for key in type(after.scenario).model_fields:
        if key not in compared and getattr(before.scenario, key) != getattr(after.scenario, key):
            cure = f"{_KEPT}, or leave `{key}` as it is"
            found.problems.append(
                Problem("apply.fixed", f"`{key}` cannot change while the laboratory runs", (key,), cure)
            )
    if before.tunnels != after.tunnels:
        found.problems.append(
            Problem("apply.fixed", "tunnels cannot change while the laboratory runs", ("tunnels",), _KEPT)
        )
    engine = (before.engine_processors, before.engine_scheduling)
    if engine != (after.engine_processors, after.engine_scheduling):
        what = "processors and scheduling of the engine cannot change while the laboratory runs"
        found.problems.append(Problem("apply.fixed", what, ("cpus",), _KEPT))


# Nodes


def _nodes(found: Difference, present: Present) -> None:
    before, after = found.before.nodes, found.after.nodes
    for name in before.keys() - after.keys():
        _refuse_alone(found, before[name], "be removed")
    for name in (name for name in before if name not in after):
        found.nodes_removed.append(name)
        found.steps.append(Step("-", f"node {name}"))
    for name, node in after.items():
        if name not in before:
            _refuse_alone(found, node, "be added")
            found.nodes_added.append(name)
            found.steps.append(Step("+", f"node {name}", _addresses(node)))
            continue
        why = _why_anew(before[name], node)
        if why is not None:
            _refuse_alone(found, before[name], f"be restarted, which is necessary as {why}")
            _refuse_alone(found, node, f"be restarted, which is necessary as {why}")
            found.nodes_restarted.append(name)
            found.steps.append(Step("!", f"node {name}", f"restarted alone, as {why}"))
            continue
        words = list(_in_place(before[name], node))
        if words or before[name].collect != node.collect:
            found.nodes_changed.append(name)
            found.steps.append(Step("~", f"node {name}", "; ".join(words) or "the files that it collects"))
            state = present.states.get(name, "up")
            if state != "up":
                what = f"node {name} is {state}, so that it cannot change"
                cure = f"airloom node {name} {'resume' if state == 'paused' else 'start'}"
                found.problems.append(Problem("apply.node", what, ("nodes", name), cure))


def _refuse_alone(found: Difference, node: NodePlan, how: str) -> None:
    """Refuses a node that cannot be made or ended while the others run."""
    why = None
    if node.kind == "native":
        why = "its links are pairs of interfaces of this machine's kernel (kind native)"
    elif node.guest is not None and node.guest.shared is not None:
        why = f"its guest {node.guest.shared} boots with all its nodes"
    elif any(one.wlan is not None for one in node.interfaces):
        why = "its radios are devices of its kernel"
    elif any(one.real is not None for one in node.interfaces):
        why = "it has a real interface"
    if why is not None:
        what = f"node {node.name} cannot {how}: {why}"
        if all(what != problem.message for problem in found.problems):
            found.problems.append(Problem("apply.node", what, ("nodes", node.name), _KEPT))


def _why_anew(before: NodePlan, after: NodePlan) -> str | None:
    """Returns why a node has to be made anew; None if it can change in place, or need not."""
    other = [why for key, why in _ANEW.items() if getattr(before, key) != getattr(after, key)]
    if other:
        return ", ".join(other)
    old, new = _interfaces(before), _interfaces(after)
    if old == new and (before.routes, before.neighbours, before.forwarding) == (
        after.routes,
        after.neighbours,
        after.forwarding,
    ):
        return None
    if before.kind not in CHANGED_IN_PLACE:
        return f"a node of kind {before.kind} does not change in place"
    if any(one.wlan is not None for one in old.values()):
        return "a wireless device does not change in place"
    for name in old.keys() & new.keys():
        if _made_of(old[name]) != _made_of(new[name]):
            return f"{name} is made in another way"
    if old.keys() != new.keys() and any(one.bridge for one in (*old.values(), *new.values())):
        return "it has a bridge"
    return None


def _interfaces(node: NodePlan) -> dict[str, InterfacePlan]:
    """Returns the interfaces by name, without the links that are named only for information."""
    return {one.name: replace(one, link="") for one in node.interfaces}


def _made_of(one: InterfacePlan) -> Any:
    return one.real, one.wlan, one.offloads, one.bridge


def _in_place(before: NodePlan, after: NodePlan) -> Iterator[str]:
    """Yields what changes in a node's network stack."""
    old, new = _interfaces(before), _interfaces(after)
    for name in (name for name in old if name not in new):
        yield f"{name} removed"
    for name, one in new.items():
        was = old.get(name)
        if was is None:
            yield f"{name} added ({_said(one) or 'no address'})"
        elif was != one:
            pairs = (("MAC", was.mac, one.mac), ("MTU", was.mtu, one.mtu))
            words = [f"{word} {x} -> {y}" for word, x, y in pairs if x != y]
            if was.addresses != one.addresses:
                words.append(f"{_said(was) or 'no address'} -> {_said(one) or 'no address'}")
            yield f"{name} {', '.join(words)}"
    if before.routes != after.routes:
        gone = [one for one in before.routes if one not in after.routes]
        come = [one for one in after.routes if one not in before.routes]
        yield f"routes: {len(gone)} removed, {len(come)} added"
    if before.neighbours != after.neighbours:
        yield "neighbours"
    if before.forwarding != after.forwarding:
        yield "forwards packets" if after.forwarding else "forwards no packets"


def _said(one: InterfacePlan) -> str:
    return " ".join(str(address) for address in one.addresses)


def _addresses(node: NodePlan) -> str:
    said = ", ".join(f"{one.name} {_said(one)}".strip() for one in node.interfaces)
    return f"{node.kind}, {said}" if said else node.kind


def _places(plan: Plan) -> dict[Any, str]:
    return {
        address.ip: interface.mac
        for node in plan.nodes.values()
        for interface in node.interfaces
        for address in interface.addresses
    }


# Switches and links


def _switches(found: Difference, present: Present) -> None:
    before, after = found.before.switches, found.after.switches
    for name in (name for name in before if name not in after):
        found.steps.append(Step("-", f"switch {name}"))
    for name, switch in after.items():
        known = present.switches.get(name)
        if name not in before:
            found.steps.append(Step("+", f"switch {name}"))
        elif known != switch.settings:
            found.steps.append(Step("~", f"switch {name}", "other settings"))
        if known is not None and known != switch.settings and _path(known) != _path(switch.settings):
            what = f"switch {name} cannot get or lose shortest paths, or another time of convergence"
            path: Path_ = ("switches", name)
            found.problems.append(Problem("apply.switch", what, path, "give a new switch another name"))
        if known != switch.settings:
            found.switches_set.append(name)


def _path(settings: Any) -> Any:
    """Returns what makes a switch part of an area."""
    inner = settings.get("shortest-path") if isinstance(settings, dict) else None
    return None if inner is None else inner["convergence_ns"]


def _links(found: Difference, present: Present) -> None:
    before, after = found.before.links, found.after.links
    expected = {name: _Expected(link) for name, link in after.items()}
    changes = timed_changes.link_changes(found.after)
    for change in changes:
        if change.at <= present.now:
            expected[change.link].follow(change)
    for name, link in before.items():
        if name not in after or _is_other(link, after[name]):
            _refuse_link(found, found.before, link)
            found.links_removed.append(name)
            found.steps.append(Step("-", f"link {name}", f"{link.a} <-> {link.b}"))
    for name, link in after.items():
        was = before.get(name)
        if was is None or _is_other(was, link):
            _refuse_link(found, found.after, link)
            found.links_added.append(name)
            found.steps.append(Step("+", f"link {name}", f"{link.a} <-> {link.b}, {_both(link)}"))
            _take_over(
                found, name, expected[name], {"forward": link.forward, "backward": link.backward}, True
            )
        elif name in present.settings:
            _change(found, was, link)
            up = name not in present.down
            _take_over(found, name, expected[name], present.settings[name], up, tell=True)
        elif (was.forward, was.backward) != (link.forward, link.backward):
            what = f"link {name} joins native nodes, and its settings cannot change"
            found.problems.append(Problem("apply.link", what, ("links",), _KEPT))


class _Expected:
    """A link as its scenario wants it at a time."""

    def __init__(self, link: LinkPlan) -> None:
        self.settings = {"forward": link.forward, "backward": link.backward}
        self.up = True

    def follow(self, change: timed_changes.LinkChange) -> None:
        """Takes a timed change into account."""
        if change.settings is not None:
            for direction in DIRECTIONS if change.direction == "both" else (change.direction,):
                self.settings[direction] = change.settings
        self.up = given(change.up, self.up)


def _is_other(before: LinkPlan, after: LinkPlan) -> bool:
    return (before.a, before.b) != (after.a, after.b)


def _both(link: LinkPlan) -> str:
    there, back = link.forward.text, link.backward.text
    return there if there == back else f"{there} / {back}"


def _refuse_link(found: Difference, plan: Plan, link: LinkPlan) -> None:
    """Refuses a link whose ends cannot be had or freed."""
    why = None
    ends = [end.partition(":")[0] for end in (link.a, link.b)]
    if any(end in plan.switches and _path(plan.switches[end].settings) is not None for end in ends):
        why = "it ends at a switch with shortest paths"
    elif any(end in plan.tunnels for end in ends):
        why = "it ends at a tunnel"
    elif all(end in plan.nodes and plan.nodes[end].kind == "native" for end in ends):
        why = "it joins native nodes"
    if why is not None:
        how = "added or removed" if plan is found.after else "removed"
        what = f"link {link.name} cannot be {how}: {why}"
        found.problems.append(Problem("apply.link", what, ("links",), f"set it down instead, or {_KEPT}"))


def _change(found: Difference, before: LinkPlan, after: LinkPlan) -> None:
    """Compares what a link has beside its settings."""
    if before.series != after.series:
        found.steps.append(Step("~", f"link {after.name}", "another table of settings"))
    if before.vlans != after.vlans:
        if [one is None for one in before.vlans] != [one is None for one in after.vlans]:
            what = f"link {after.name} cannot get or lose VLANs, as its switch would"
            found.problems.append(Problem("apply.link", what, ("links",), _KEPT))
        found.links_tagged.append(after.name)
        found.steps.append(Step("~", f"link {after.name}", "VLANs"))


def _take_over(
    found: Difference,
    name: str,
    wanted: _Expected,
    now: Mapping[str, LinkSettings],
    up: bool,
    *,
    tell: bool = False,
) -> None:
    """Adds the changes from the present settings of a link to the wanted ones."""
    other = [direction for direction in DIRECTIONS if now[direction] != wanted.settings[direction]]
    found.links_set += [(name, direction, wanted.settings[direction]) for direction in other]
    words = {direction: _from_to(now[direction], wanted.settings[direction]) for direction in other}
    if wanted.up != up:
        found.links_raised.append((name, wanted.up))
        words["carrier"] = "up" if wanted.up else "down"
    if not tell:
        return
    if len(other) == len(DIRECTIONS) and words["forward"] == words["backward"]:
        words = {"both directions": words["forward"], **{k: v for k, v in words.items() if k == "carrier"}}
    found.steps += [Step("~", f"link {name}", f"{direction} {said}") for direction, said in words.items()]


def _from_to(before: LinkSettings, after: LinkSettings) -> str:
    """Says a change of a direction: in short, and by its values where the short form is the same."""
    if before.text != after.text:
        return f"{before.text} -> {after.text}"
    keys = (key for key in LinkSettings.__dataclass_fields__ if getattr(before, key) != getattr(after, key))
    return ", ".join(f"{key} {_value(before, key)} -> {_value(after, key)}" for key in keys)


def _value(settings: LinkSettings, key: str) -> str:
    value = getattr(settings, key)
    return str(getattr(value, "text", "default" if value is None else value))


# Published ports


def _published(found: Difference) -> None:
    """Compares the ports of nodes that this machine offers."""
    old, new = _offers(found.before), _offers(found.after)
    found.published = old != new
    for key, said in old.items():
        if new.get(key) != said:
            found.steps.append(Step("-", f"host port {key[2]}", said))
    for key, said in new.items():
        if old.get(key) != said:
            found.steps.append(Step("+", f"host port {key[2]}", said))


def _offers(plan: Plan) -> dict[tuple[str, str, int], str]:
    return {
        (port.protocol, port.host_address, port.host_port): f"{port.protocol} port {port.port} of {node.name}"
        for node in plan.nodes.values()
        for port in node.publish
    }


# Programs


def _programs(found: Difference) -> None:
    before, after = (
        {one.name: one for one in plan.scenario.programs} for plan in (found.before, found.after)
    )
    anew = {*found.nodes_restarted, *found.nodes_removed}
    for name, program in before.items():
        if name is not None and (name not in after or after[name] != program):
            found.programs_removed.append(name)
            if name not in after:
                found.steps.append(Step("-", f"program {name}", f"in {program.node}"))
    for name, program in after.items():
        if name is None or before.get(name) == program:
            continue
        found.programs_added.append(name)
        sign: Sign = "~" if name in before else "+"
        again = "" if program.node in anew or name not in before else "ends, and starts anew: "
        found.steps.append(Step(sign, f"program {name}", f"{again}{_command(program)} in {program.node}"))


def _command(program: Program) -> str:
    return shlex.join(words_of(program.run)) if program.run is not None else "the image's command"
