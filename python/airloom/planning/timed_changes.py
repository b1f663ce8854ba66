"""Timed events of a scenario: as changes for the engine, and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from airloom.planning.links import series
from airloom.planning.links.encoding import changed
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import GrantPlan, Plan, RadioPlan
from airloom.planning.radio import media
from airloom.planning.radio.channels import number_of
from airloom.scenario.model import Direction, Event, GrantChange, Slots


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A change of a link at an exact engine time; either ``settings`` or ``up``."""

    at: int
    link: str
    direction: str
    settings: LinkSettings | None = None
    up: bool | None = None


def link_changes(plan: Plan) -> list[LinkChange]:
    """Returns all link changes in time order; each keeps the properties set by earlier ones."""
    now = {name: {"forward": link.forward, "backward": link.backward} for name, link in plan.links.items()}
    found: list[LinkChange] = []
    rows = [
        (row.at, name, direction, row.said)
        for name, link in plan.links.items()
        for direction, file in zip(("forward", "backward"), link.series, strict=True)
        for row in (series.read(file) if file is not None else ())
        if row.at and (plan.scenario.duration is None or row.at <= plan.scenario.duration)
    ]
    # At one time an event follows the row of a table.
    steps: list[tuple[int, Event | tuple[int, str, str, Direction]]] = [(row[0], row) for row in rows]
    steps += [(event.at, event) for event in plan.scenario.events]
    for at, event in sorted(steps, key=lambda step: step[0]):
        if isinstance(event, tuple):
            _, name, direction, said = event
            settings = now[name][direction] = changed(now[name][direction], said)
            found.append(LinkChange(at, name, direction, settings))
            continue
        if event.link is None:
            continue
        if event.set is None:
            found.append(LinkChange(event.at, event.link, event.direction, up=event.action == "up"))
            continue
        for direction in ("forward", "backward"):
            if event.direction in ("both", direction):
                settings = now[event.link][direction] = changed(now[event.link][direction], event.set)
                found.append(LinkChange(event.at, event.link, direction, settings))
    return found


@dataclass(frozen=True, slots=True)
class RadioChange:
    """A change of a radio at an exact engine time, in the engine's encoding."""

    at: int
    port: str
    change: dict[str, Any]


def radio_changes(plan: Plan) -> list[RadioChange]:
    """Returns all radio changes in time order."""
    ports: dict[str, list[str]] = {}
    phys: dict[str, str | None] = {}
    for medium in plan.media.values():
        for radio in medium.radios:
            ports.setdefault(radio.node, []).append(radio.port)
            phys[radio.port] = radio.settings.get("phy")
    found: list[RadioChange] = [
        RadioChange(at, radio.port, {"on": on})
        for medium in plan.media.values()
        for radio in medium.radios
        for at, on in radio.switched
    ]
    grants = {port: grant for port, (grant, _, _) in _granted(plan).items()}
    for event in sorted(plan.scenario.events, key=lambda event: event.at):
        if event.position is not None and event.node is not None:
            change = {"position": media.place(event.position)}
            found += [RadioChange(event.at, port, change) for port in ports.get(event.node, ())]
        if event.slice is not None and event.grant is not None:
            for port, (grant, phy, frame) in _granted(plan).items():
                if grant.slice != event.slice:
                    continue
                grants[port] = _changed(grants[port], event.grant, phy)
                found.append(RadioChange(event.at, port, {"grant": grants[port].engine(event.at)}))
                own = plan.scenario.slices[event.slice].grant
                if event.grant.slots is not None and frame is not None and own is not None:
                    slots = media.slots(frame, event.grant.slots, hold=own.hold)
                    found.append(RadioChange(event.at, port, {"slots": slots}))
        if event.radio is not None:
            port = ports[event.radio][0] if event.radio in ports else event.radio
            if event.tune is None:
                found.append(RadioChange(event.at, port, {"on": event.action == "up"}))
            else:
                changes = media.tuning(event.tune, phys[port])
                found += [RadioChange(event.at, port, change) for change in changes]
    return sorted(found, key=lambda change: change.at)


class RadiosThen:
    """The radios of a plan as it wants them at a time in ns: with what its events have changed until then."""

    def __init__(self, plan: Plan, at: int) -> None:
        self._plan, self._at = plan, at
        self._changes: dict[str, list[dict[str, Any]]] = {}
        for change in radio_changes(plan):
            if change.at <= at:
                self._changes.setdefault(change.port, []).append(change.change)

    def of(self, radio: RadioPlan) -> RadioPlan:
        """Returns a radio of the plan."""
        for change in self._changes.get(radio.port, ()):
            ((what, value),) = change.items()
            radio = _followed(radio, what, value)
        return (
            radio if radio.grant is None else replace(radio, grant=grant_at(self._plan, radio.port, self._at))
        )


_SETTINGS = {"power": "power_dbm", "channel": "channel", "rate": "rate", "rts-octets": "rts_octets"}
"""The engine's word for a change of a radio: its setting."""


def _followed(radio: RadioPlan, what: str, value: Any) -> RadioPlan:
    """Returns a radio after a change in the engine's encoding."""
    settings = dict(radio.settings)
    if what == "position":
        return replace(radio, motion={"static": value})
    if what == "on":
        return replace(radio, up=value)
    if what == "slots":
        settings["slots"] = value
    elif what == "ssid":
        ((kind, membership),) = settings["membership"].items()
        settings["membership"] = {kind: {**membership, "ssid": value}}
    elif what != "grant":
        settings[_SETTINGS[what]] = value
    elif settings.get("membership") != "wlan":
        # The engine brings a radio within its new grant (engine/src/medium/change.rs).
        if value["channels"] and settings["channel"] not in value["channels"]:
            settings["channel"] = value["channels"][0]
        power = settings.get("power_dbm", float(media.DEFAULT_POWER))
        if value["power_dbm"] is not None and power > value["power_dbm"]:
            settings["power_dbm"] = value["power_dbm"]
    return replace(radio, settings=settings)


def grant_at(plan: Plan, port: str, at: int) -> GrantPlan | None:
    """Returns the grant of a radio at a time in ns; None if it belongs to no slice."""
    if port not in (granted := _granted(plan)):
        return None
    grant, phy, _ = granted[port]
    for event in sorted(plan.scenario.events, key=lambda event: event.at):
        if event.at <= at and event.slice == grant.slice and event.grant is not None:
            grant = _changed(grant, event.grant, phy)
    return grant


def granted(plan: Plan) -> Iterator[tuple[int, Plan]]:
    """Yields each time in ns from which other grants hold, 0 first, and the plan with its radios then.

    They have the grants, the time slots and, if a grant has lowered it, the power of that time.
    """
    changes = [event for event in plan.scenario.events if event.grant is not None]
    for at in sorted({0, *(event.at for event in changes)}):
        media_then = {}
        for name, medium in plan.media.items():
            radios = tuple(
                radio if radio.grant is None else _radio_at(plan, radio, plan.scenario.media[name].slots, at)
                for radio in medium.radios
            )
            media_then[name] = replace(medium, radios=radios)
        yield at, replace(plan, media=media_then)


def _radio_at(plan: Plan, radio: RadioPlan, frame: Slots | None, at: int) -> RadioPlan:
    grant = grant_at(plan, radio.port, at)
    assert grant is not None
    settings = dict(radio.settings)
    if grant.power_dbm is not None:
        settings["power_dbm"] = min(float(settings.get("power_dbm", media.DEFAULT_POWER)), grant.power_dbm)
    own = plan.scenario.slices[grant.slice].grant
    for event in sorted(plan.scenario.events, key=lambda event: event.at):
        slots = event.grant.slots if event.at <= at and event.grant and event.slice == grant.slice else None
        if slots is not None and frame is not None and own is not None:
            settings["slots"] = media.slots(frame, slots, hold=own.hold)
    return replace(radio, grant=grant, settings=settings)


def _granted(plan: Plan) -> dict[str, tuple[GrantPlan, str, Slots | None]]:
    """By port of each slice's radio: its first grant, its physical layer, the slots of its medium."""
    return {
        radio.port: (radio.grant, radio.settings["phy"], plan.scenario.media[medium.name].slots)
        for medium in plan.media.values()
        for radio in medium.radios
        if radio.grant is not None
    }


def _changed(grant: GrantPlan, change: GrantChange, phy: str) -> GrantPlan:
    if change.channels is not None:
        grant = replace(grant, channels=tuple(number_of(channel, phy) for channel in change.channels))
    if change.power is not None:
        grant = replace(grant, power_dbm=float(change.power))
    if change.airtime_weight is not None:
        grant = replace(grant, airtime_weight=change.airtime_weight)
    return grant


def describe(event: Event) -> str:
    """Returns a short description of an event."""
    if event.link is not None:
        way = "" if event.direction == "both" else f" {event.direction}"
        if event.set is not None:
            said = event.set.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            return f"link {event.link}{way}: {', '.join(f'{key} {value}' for key, value in said.items())}"
        return f"link {event.link}{way} {event.action}"
    if event.radio is not None:
        if event.tune is not None:
            said = event.tune.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            return f"radio {event.radio}: {', '.join(f'{key} {value}' for key, value in said.items())}"
        return f"radio {event.radio} {event.action}"
    if event.grant is not None:
        said = event.grant.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        return f"slice {event.slice}: {', '.join(f'{key} {value}' for key, value in said.items())}"
    if event.position is not None:
        return f"node {event.node} at {', '.join(length.text for length in event.position)}"
    if event.program is not None:
        action = f"gets {event.signal}" if event.action == "signal" else event.action
        return f"program {event.program} {action}"
    if event.turns is not None:
        return f"turns {event.turns} {event.action}"
    return f"node {event.node} {event.action}"
