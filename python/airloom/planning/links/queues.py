"""Queues that change: what an event does not name of a queue stays."""

from __future__ import annotations

from airloom.planning.network import Network
from airloom.scenario.model import Queue, Scenario

STEPS = ("step_packets", "step_size", "step_time")
"""The thresholds of the discipline `step`; one is enough."""

_OWNERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("red_min", "red_max", "red_probability", "red_weight", "red_packet", "red_above"), ("red",)
    ),
    **dict.fromkeys(("target", "interval"), ("codel", "fq-codel", "cake")),
    **dict.fromkeys(("quantum", "flows"), ("fq-codel",)),
    **dict.fromkeys(("cake_isolation", "cake_tins"), ("cake",)),
    **dict.fromkeys(("pie_target", "pie_update", "pie_burst", "pie_alpha", "pie_beta"), ("pie",)),
    **dict.fromkeys(
        (
            "dualpi2_target",
            "dualpi2_update",
            "dualpi2_alpha",
            "dualpi2_beta",
            "dualpi2_coupling",
            "dualpi2_step",
            "dualpi2_ramp",
            "dualpi2_classic",
        ),
        ("dualpi2",),
    ),
    **dict.fromkeys(STEPS, ("step",)),
    "classes": ("priority", "drr"),
}


def owners(key: str) -> tuple[str, ...]:
    """Returns the disciplines that a setting belongs to; none if it belongs to all."""
    return _OWNERS.get(key, ())


def merged(before: Queue | None, change: Queue) -> Queue:
    """Returns the queue after a change: settings that it does not name stay.

    With another discipline, the settings of the former one are gone.
    """
    if before is None:
        return change
    named = {key: getattr(change, key) for key in change.model_fields_set}
    discipline = named.get("discipline", before.discipline)
    stay = {
        key: getattr(before, key)
        for key in before.model_fields_set
        if not owners(key) or discipline in owners(key)
    }
    given = {**stay, **named}
    return Queue.model_construct(_fields_set=set(given), **given)


def before_events(scenario: Scenario, network: Network) -> dict[int, tuple[Queue | None, ...]]:
    """Returns the queues that each event with a new queue changes, by the event's position in the list."""
    now = {
        wire.name: {"forward": wire.forward.queue, "backward": wire.backward.queue} for wire in network.wires
    }
    found: dict[int, tuple[Queue | None, ...]] = {}
    for index, event in sorted(enumerate(scenario.events), key=lambda one: one[1].at):
        if event.link not in now or event.set is None or event.set.queue is None:
            continue
        ways = now[event.link]
        words = [word for word in ways if event.direction in ("both", word)]
        found[index] = tuple(ways[word] for word in words)
        for word in words:
            ways[word] = merged(ways[word], event.set.queue)
    return found
