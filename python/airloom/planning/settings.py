"""Converts a scenario's settings of links and switches for the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airloom.planning import tables
from airloom.planning.link_settings import Law, LinkSettings, QueueSettings, Receiver
from airloom.scenario.model import (
    Adapter,
    Direction,
    ExponentialJitter,
    GilbertElliott,
    NormalJitter,
    ParetoJitter,
    Queue,
    Switch,
    TableJitter,
    UniformJitter,
)


def link(direction: Direction) -> LinkSettings:
    """Returns one direction's settings; the engine's defaults replace omitted ones."""
    return changed(LinkSettings(), direction)


def changed(settings: LinkSettings, change: Direction) -> LinkSettings:
    """Returns the settings after a change: properties that it does not name stay."""
    update: dict[str, Any] = {}
    if change.trace is not None:
        update["rate"] = tables.trace(change.trace)
    elif change.rate is not None:
        update["rate"] = None if change.rate == "unlimited" else int(change.rate)
    if change.delay is not None:
        update["delay"] = int(change.delay)
    if change.jitter is not None:
        update["jitter"] = _jitter(change.jitter)
    if change.loss is not None:
        update["loss"] = _loss(change.loss)
    same = ("jitter_reorders", "duplicate", "corrupt", "reorder", "mtu", "segments", "late", "carrier")
    for name in same:
        value = getattr(change, name)
        if value is not None:
            update[name] = value
    if change.coalesce is not None:
        update["coalesce"] = int(change.coalesce)
    if change.overhead is not None:
        update["overhead"] = int(change.overhead)
    if change.queue is not None:
        update["queue"] = _queue(change.queue)
    return replace(settings, **update)


def wire(direction: Direction, sender: Adapter | None, receiver: Adapter | Switch | None) -> LinkSettings:
    """Returns one direction's settings with the models of the equipment at its ends."""
    return replace(link(direction), gap=gap(sender), receiver=equipment(receiver))


def gap(sender: Adapter | None) -> int:
    """Returns the minimum gap of the sending adapter after each frame, in ns."""
    return 0 if sender is None else int(sender.gap)


def equipment(receiver: Adapter | Switch | None) -> Receiver | None:
    """Returns the delays that the equipment at the receiving end adds; None if there is none."""
    match receiver:
        case Adapter():
            service = None if receiver.service is None else _jitter(receiver.service)
            return Receiver(moderation=int(receiver.moderation), service=service, tick=int(receiver.tick))
        case Switch() if receiver.latency:
            return Receiver(latency=int(receiver.latency))
        case _:
            return None


def switch(settings: Switch) -> dict[str, Any] | str:
    """Returns the settings of a switch or hub."""
    if settings.kind == "hub":
        return "hub"
    table = {"ageing_ns": int(settings.ageing), "addresses": settings.addresses}
    if settings.forwarding == "shortest-path":
        return {"shortest-path": {**table, "convergence_ns": int(settings.convergence)}}
    return {"switch": table}


def _jitter(jitter: Any) -> Law | None:
    match jitter:
        case UniformJitter():
            return Law("uniform", {"spread_ns": int(jitter.uniform)})
        case NormalJitter():
            return Law("normal", {"sigma_ns": int(jitter.normal)})
        case ParetoJitter():
            return Law("pareto", {"scale_ns": int(jitter.pareto), "shape": jitter.shape})
        case ExponentialJitter():
            return Law("exponential", {"mean_ns": int(jitter.exponential)})
        case TableJitter():
            return Law("table", {"values_ns": tables.delays(jitter.table)})
        case _:
            return None


def _loss(loss: float | GilbertElliott) -> float | Law:
    if isinstance(loss, GilbertElliott):
        return Law("gilbert-elliott", {name: getattr(loss, name) for name in GilbertElliott.model_fields})
    return loss


def _queue(queue: Queue) -> QueueSettings:
    octets, time = (None if given is None else int(given) for given in (queue.size, queue.time))
    if queue.packets is None and octets is None and time is None:
        return QueueSettings(discipline=_discipline(queue), ecn=queue.ecn)
    return QueueSettings(queue.packets, octets, time, _discipline(queue), queue.ecn)


def _discipline(queue: Queue) -> Law | None:
    match queue.discipline:
        case "red":
            assert queue.red_min is not None
            assert queue.red_max is not None
            return Law(
                "red",
                {
                    "min_octets": int(queue.red_min),
                    "max_octets": int(queue.red_max),
                    "probability": queue.red_probability,
                    "weight": queue.red_weight,
                },
            )
        case "codel":
            return Law("codel", {"target_ns": int(queue.target), "interval_ns": int(queue.interval)})
        case "fq-codel":
            return Law(
                "fq-codel",
                {
                    "target_ns": int(queue.target),
                    "interval_ns": int(queue.interval),
                    "quantum": int(queue.quantum),
                    "flows": queue.flows,
                },
            )
        case _:
            return None
