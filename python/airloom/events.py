"""Timed events of a scenario: as changes that the engine carries out, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airloom.plan import Plan
from airloom.planning.settings import changed
from airloom.scenario.model import Event


@dataclass(frozen=True, slots=True)
class LinkChange:
    """One change of a link at an exact engine time; either ``settings`` or ``up``."""

    at: int
    link: str
    direction: str
    settings: dict[str, Any] | None = None
    up: bool | None = None


def link_changes(plan: Plan) -> list[LinkChange]:
    """What the engine will do, in the order of time; a change keeps what earlier ones set."""
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


def describe(event: Event) -> str:
    """What an event does, in a few words."""
    if event.link is not None:
        way = "" if event.direction == "both" else f" {event.direction}"
        if event.set is not None:
            said = event.set.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            return f"link {event.link}{way}: {', '.join(f'{key} {value}' for key, value in said.items())}"
        return f"link {event.link}{way} {event.action}"
    if event.program is not None:
        action = f"gets {event.signal}" if event.action == "signal" else event.action
        return f"program {event.program} {action}"
    return f"node {event.node} {event.action}"
