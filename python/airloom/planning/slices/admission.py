"""Admission of slices: every sliver becomes a node with one radio of the shared node.

A radio belongs to one sliver at a time (see ``claims.py``). Slices that share a node need channels
that do not overlap, different time slots, hopping sequences that never meet, or different codes with
aligned chips, while both have a radio there. The grant is stored with the sliver's radio and limits
later changes of that radio.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from airloom.planning.network import Sliver
from airloom.planning.radio import media
from airloom.planning.radio.channels import number_of
from airloom.planning.radio.radios import RadioEnd
from airloom.planning.slices import claims, codes, hopping
from airloom.planning.slices.hopping import overlap
from airloom.planning.slices.spans import meet, within
from airloom.scenario.model import Grant, Medium, Node, Radio, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.quantities import Frequency


@dataclass(slots=True)
class Admission:
    """The slivers that were admitted, and the problems of the others."""

    slivers: list[Sliver] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def admit(scenario: Scenario, nodes: dict[str, Node], radios: list[RadioEnd]) -> Admission:
    """Creates the slivers of every slice; replaces shared nodes and radios by theirs, in place."""
    found = Admission()
    of_node: dict[str, list[RadioEnd]] = {}
    for end in radios:
        of_node.setdefault(end.node, []).append(end)
    granted = {name: (one, one.grant) for name, one in scenario.slices.items() if one.grant is not None}
    found.problems += _without_grant(scenario)
    claimed, refused = claims.claims(
        scenario, {node: [end.name for end in ends] for node, ends in of_node.items() if node in nodes}
    )
    found.problems += refused
    for claim in claimed:
        end = next(end for end in of_node[claim.node] if end.name == claim.radio)
        one, grant = granted[claim.slice]
        phy = media.phy_of(_merged(end, claim.slice, one.radio)[0])
        channels = tuple(number_of(channel, phy) for channel in grant.channels)
        layers = (one.node, scenario.nodes.get(claim.name, Node()))
        own = any({"position", "mobility"} & layer.model_fields_set for layer in layers)
        found.slivers.append(
            Sliver(
                claim.name,
                claim.slice,
                claim.node,
                claim.radio,
                channels,
                grant,
                tuple(claim.held),
                "" if own else claim.node,
            )
        )
    found.problems += _grants(scenario, found.slivers, of_node)
    if not found.problems:
        _replace(scenario, nodes, radios, found.slivers, of_node)
    return found


def _without_grant(scenario: Scenario) -> Iterator[Problem]:
    for name, one in scenario.slices.items():
        if "violations" in one.model_fields_set and one.police != "cut":
            yield Problem(
                "slice.police",
                f"{name!r} counts violations, but never turns a radio off",
                ("slices", name, "violations"),
                "add police: cut, or leave it out",
                key=True,
            )
        for key in sorted({"node", "police", "radio"} & one.model_fields_set):
            if one.grant is None:
                yield Problem(
                    "slice.key",
                    f"{name!r} has no grant, so it has no {key}",
                    ("slices", name, key),
                    "give it a grant: {nodes: [...], channels: [...]}",
                    key=True,
                )


def _grants(
    scenario: Scenario, slivers: list[Sliver], of_node: dict[str, list[RadioEnd]]
) -> Iterator[Problem]:
    """Checks that the granted channels exist and do not overlap, and that the power is allowed."""
    told: set[Path_] = set()
    names: dict[str, str] = {}
    for number, sliver in enumerate(slivers):
        end = _radio(scenario, sliver, of_node)
        phy = media.phy_of(end.said)
        path: Path_ = ("slices", sliver.slice, "grant", "channels")
        yield from no_channel(sliver, phy, path, told)
        yield from outside(end, sliver, told)
        own: Path_ = ("slices", sliver.slice, "grant", "slots")
        yield from no_slot(scenario, end.medium, sliver.grant.slots, own, told)
        if not sliver.grant.hold and sliver.grant.slots is None and own not in told:
            told.add(own)
            yield Problem(
                "slice.slots",
                f"{sliver.slice!r} has no slots that frames could wait for",
                ("slices", sliver.slice, "grant", "hold"),
                "give it slots, or leave hold out",
                key=True,
            )
        for problem in (
            *hopping.problems(scenario, end.medium, sliver.slice, sliver.channels, phy),
            *codes.problems(scenario, end.medium, sliver.slice),
        ):
            if problem.path not in told:
                told.add(problem.path)
                yield problem
        owner = names.setdefault(end.said["ssid"], sliver.slice)
        if owner != sliver.slice:
            yield from taken(end, owner, sliver.slice, told)
        if getattr(scenario.nodes.get(sliver.name), "radios", None):
            yield Problem(
                "slice.sliver",
                f"{sliver.name!r} has the radio that it was granted of {sliver.node!r}, and no other",
                ("nodes", sliver.name, "radios"),
                f"set it for all slivers under slices.{sliver.slice}.radio",
                key=True,
            )
        for other in slivers[:number]:
            if not meet(sliver.held, other.held):
                continue
            air = scenario.media[end.medium]
            same = _same(sliver, other, phy, air)
            if same is not None:
                if same.path not in told:
                    told.add(same.path)
                    yield same
                continue
            if not (within(sliver.held, 0) and within(other.held, 0)):
                continue
            both = conflict(sliver, other, phy, air)
            if both is not None and path not in told:
                told.add(path)
                yield Problem(
                    "slice.channels",
                    f"channel {both[0]} of {sliver.slice!r} overlaps channel {both[1]} of "
                    f"{other.slice!r}, and both are on {sliver.node!r}",
                    path,
                    "channels of slices that share a node lie 20 MHz apart, 25 MHz with 802.11b, "
                    "or the slices have different slots, different hopping sequences of one set, different "
                    "codes of a synchronous medium, or both an airtime_weight",
                )


def conflict(one: Sliver, other: Sliver, phy: str, air: Medium) -> tuple[int, int] | None:
    """Returns channels of two slivers of one node that overlap and that nothing divides between them."""
    if one.slice == other.slice or one.node != other.node or _divided(one.grant, other.grant):
        return None
    if hopping.never_meet(air.hops, one.grant, other.grant, phy):
        return None
    if codes.orthogonal(air.codes, one.grant, other.grant):
        return None
    pairs = ((mine, theirs) for mine in one.channels for theirs in other.channels)
    return next((pair for pair in pairs if all(pair) and overlap(*pair, phy)), None)


def _same(sliver: Sliver, other: Sliver, phy: str, air: Medium) -> Problem | None:
    """Returns the problem if two slivers of one node have one hopping sequence, or one code on overlapping
    channels, and nothing else divides between them.
    """
    if sliver.slice == other.slice or sliver.node != other.node or _divided(sliver.grant, other.grant):
        return None
    if codes.orthogonal(air.codes, sliver.grant, other.grant):
        return None
    path: Path_ = ("slices", sliver.slice, "grant")
    hops = sliver.grant.hops
    if hops is not None and hops == other.grant.hops:
        return Problem(
            "slice.hops",
            f"{other.slice!r} and {sliver.slice!r} both have sequence {hops.sequence} of set {hops.set!r}",
            (*path, "hops", "sequence"),
            "give each slice a sequence or nodes of its own, or different slots",
        )
    hop = hops is not None and other.grant.hops is not None
    both = any(overlap(a, b, phy) for a in sliver.channels for b in other.channels if a and b)
    if not both or hop or not codes.same(sliver.grant, other.grant):
        return None
    return Problem(
        "slice.code",
        f"{other.slice!r} and {sliver.slice!r} both have code {sliver.grant.code} on one channel",
        (*path, "code"),
        "give each slice a code, a channel or nodes of its own, or different slots",
    )


def _divided(one: Grant, other: Grant) -> bool:
    """Whether two slices share a channel by different slots, or by weights."""
    in_turn = one.slots is not None and other.slots is not None and not {*one.slots} & {*other.slots}
    return in_turn or (one.airtime_weight is not None and other.airtime_weight is not None)


def no_channel(sliver: Sliver, phy: str, path: Path_, told: set[Path_]) -> Iterator[Problem]:
    """Checks that the physical layer has the granted channels."""
    for index, channel in enumerate(sliver.grant.channels):
        here = (*path, index)
        if here not in told and not _has_channel(phy, sliver.channels[index]):
            told.add(here)
            where = f"at {channel.text}" if isinstance(channel, Frequency) else channel
            message = f"{phy} has no channel {where}"
            yield Problem("radio.channel", message, here, "such as 36, or 5.18 GHz")


def _has_channel(phy: str, number: int) -> bool:
    from airloom import _engine

    try:
        _engine.check_radio("radio", {"phy": phy, "channel": number})
    except _engine.EngineError:
        return False
    return True


def no_slot(
    scenario: Scenario, medium: str, slots: list[int] | None, path: Path_, told: set[Path_]
) -> Iterator[Problem]:
    """Checks that the medium has the granted slots."""
    if slots is None or path in told:
        return
    frame = scenario.media[medium].slots
    if frame is None:
        told.add(path)
        cure = f"media: {{{medium}: {{slots: {{frame: {max(slots) + 1}}}}}}}"
        yield Problem("slice.slots", f"the medium {medium!r} has no slots", path, cure)
        return
    if frame.guard >= frame.length:
        told.add(path)
        where: Path_ = ("media", medium, "slots", "guard")
        yield Problem("slice.slots", "the guard takes the whole slot", where, "make it shorter")
        return
    for index, slot in enumerate(slots):
        if slot >= frame.frame or slot in slots[:index]:
            told.add(path)
            twice = slot in slots[:index]
            message = f"slot {slot} is given twice" if twice else f"there is no slot {slot}"
            yield Problem("slice.slots", message, (*path, index), f"slots are 0 to {frame.frame - 1}")
            return


def _merged(shared: RadioEnd, slice_name: str, radio: Radio) -> tuple[dict[str, Any], dict[str, Path_]]:
    """Returns the settings of a sliver's radio and where they are said: those of the node's radio, then of
    the slice, then of the generator and the medium.
    """
    said, origin = dict(shared.said), dict(shared.origin)
    for key in radio.model_fields_set:
        value = getattr(radio, key)
        if value is not None and origin.get(key, ("media",))[0] != "nodes":
            said[key], origin[key] = value, ("slices", slice_name, "radio", key)
    return said, origin


def _shared(sliver: Sliver, of_node: dict[str, list[RadioEnd]]) -> RadioEnd:
    """Returns the radio of the shared node."""
    return next(end for end in of_node[sliver.node] if end.name == sliver.radio)


def _radio(scenario: Scenario, sliver: Sliver, of_node: dict[str, list[RadioEnd]]) -> RadioEnd:
    """Returns the radio of a sliver with its settings from node, slice and grant."""
    one = scenario.slices[sliver.slice]
    shared = _shared(sliver, of_node)
    path: Path_ = ("slices", sliver.slice, "grant")
    grant = sliver.grant
    said, origin = _merged(shared, sliver.slice, one.radio)
    # The grant overrides defaults of the medium.
    if origin.get("channel", ("media",))[0] == "media":
        said["channel"], origin["channel"] = grant.channels[0], (*path, "channels", 0)
    if said.get("mode") == "station" and origin.get("scan", ("media",))[0] == "media":
        said["scan"], origin["scan"] = list(grant.channels), (*path, "channels")
    if grant.power is not None and origin.get("power", ("media",))[0] == "media":
        said["power"] = min(said.get("power", media.DEFAULT_POWER), grant.power)
        origin["power"] = (*path, "power")
    frame = scenario.media[shared.medium].slots
    if grant.slots is not None and frame is not None:
        said["slots"], origin["slots"] = media.slots(frame, grant.slots, hold=grant.hold), (*path, "slots")
    hops = scenario.media[shared.medium].hops
    if grant.hops is not None and hops is not None and grant.hops.set in hops.sets:
        said["hops"] = hopping.settings(hops, grant.hops, media.phy_of(said))
        origin["hops"] = (*path, "hops")
        if grant.hops.sequence < len(said["hops"]["channels"]):
            said["channel"] = hopping.channels(said["hops"])[0]
            origin["channel"] = (*path, "hops", "sequence")
    if grant.code is not None and (known := scenario.media[shared.medium].codes) is not None:
        said["code"], origin["code"] = codes.settings(known, grant.code), (*path, "code")
    said.setdefault("ssid", sliver.slice)
    return replace(shared, node=sliver.name, said=said, origin=origin)


def outside(end: RadioEnd, sliver: Sliver, told: set[Path_]) -> Iterator[Problem]:
    """Checks a sliver's radio against its grant; ``told`` holds the places already reported."""
    said = end.said
    wanted = [("channel", said["channel"])] if said.get("channel") is not None else []
    wanted += [("scan", channel) for channel in said.get("scan") or ()]
    for key, channel in wanted:
        path = end.said_at(key)
        if number_of(channel, media.phy_of(said)) not in sliver.channels and path not in told:
            told.add(path)
            yield Problem(
                "slice.grant",
                f"channel {getattr(channel, 'text', channel)} is outside the grant of {sliver.slice!r}",
                path,
                f"granted: {', '.join(str(one) for one in sliver.channels)}",
            )
    power, path = said.get("power"), end.said_at("power")
    if (
        sliver.grant.power is not None
        and power is not None
        and power > sliver.grant.power
        and path not in told
    ):
        told.add(path)
        yield Problem(
            "slice.grant",
            f"{power.text} is more than the grant of {sliver.slice!r} allows",
            path,
            f"at most {sliver.grant.power.text}",
        )


def taken(end: RadioEnd, owner: str, name: str, told: set[Path_]) -> Iterator[Problem]:
    """Refuses the SSID of a radio of the slice ``name``: another slice has it."""
    path = end.said_at("ssid") if "ssid" in end.origin else ("slices", name)
    if path not in told:
        told.add(path)
        yield Problem(
            "slice.ssid",
            f"{end.said['ssid']!r} is the SSID of {owner!r}",
            path,
            f"choose another one; without one it is {name!r}",
        )


def _replace(
    scenario: Scenario,
    nodes: dict[str, Node],
    radios: list[RadioEnd],
    slivers: list[Sliver],
    of_node: dict[str, list[RadioEnd]],
) -> None:
    shared = {sliver.node: nodes.pop(sliver.node) for sliver in reversed(slivers) if sliver.node in nodes}
    radios[:] = [end for end in radios if end.node not in shared]
    for sliver in slivers:
        one = scenario.slices[sliver.slice]
        layers = [shared[sliver.node], one.node, scenario.nodes.get(sliver.name, Node())]
        nodes[sliver.name] = _joined(layers, sliver.radio)
        radios.append(_radio(scenario, sliver, of_node))


def _joined(layers: list[Node], radio: str) -> Node:
    """Merges the shared node, the slice's settings for all its slivers, and those of this sliver."""
    update: dict[str, Any] = {}
    for layer in layers:
        for key in layer.model_fields_set - {"radios"}:
            value = getattr(layer, key)
            update[key] = {**update.get(key, {}), **value} if isinstance(value, dict) else value
    update["interfaces"] = {
        name: said for name, said in update.get("interfaces", {}).items() if name == radio
    }
    return Node().model_copy(update=update)
