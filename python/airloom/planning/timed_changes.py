"""Timed events of a scenario: as changes for the engine, and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airloom.planning import media
from airloom.planning.link_settings import LinkSettings
from airloom.planning.plan import Plan
from airloom.planning.settings import changed
from airloom.scenario.model import Event


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
    for event in sorted(plan.scenario.events, key=lambda event: event.at):
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
    found: list[RadioChange] = []
    for event in sorted(plan.scenario.events, key=lambda event: event.at):
        if event.position is not None and event.node is not None:
            change = {"position": media.place(event.position)}
            found += [RadioChange(event.at, port, change) for port in ports.get(event.node, ())]
        if event.radio is not None:
            port = ports[event.radio][0] if event.radio in ports else event.radio
            if event.tune is None:
                found.append(RadioChange(event.at, port, {"on": event.action == "up"}))
            else:
                changes = media.tuning(event.tune, phys[port])
                found += [RadioChange(event.at, port, change) for change in changes]
    return found


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
    if event.position is not None:
        return f"node {event.node} at {', '.join(length.text for length in event.position)}"
    if event.program is not None:
        action = f"gets {event.signal}" if event.action == "signal" else event.action
        return f"program {event.program} {action}"
    return f"node {event.node} {event.action}"
