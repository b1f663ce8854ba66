"""Converts a scenario's settings of links and switches for the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airloom.planning import tables
from airloom.planning.links import queues, series
from airloom.planning.links.link_settings import Law, LinkSettings, PolicerSettings, QueueSettings, Receiver
from airloom.planning.plan import OffloadsPlan
from airloom.scenario.model import (
    Adapter,
    Direction,
    ExponentialJitter,
    GilbertElliott,
    Interface,
    Node,
    NormalJitter,
    ParetoJitter,
    Queue,
    QueueClass,
    Switch,
    TableJitter,
    UniformJitter,
)


def link(direction: Direction) -> LinkSettings:
    """Returns one direction's settings at time zero; the engine's defaults replace omitted ones."""
    found = changed(LinkSettings(), direction)
    first = None if direction.series is None else series.read(direction.series)[0]
    return found if first is None or first.at else changed(found, first.said)


def changed(settings: LinkSettings, change: Direction) -> LinkSettings:
    """Returns the settings after a change: properties that it does not name stay."""
    update: dict[str, Any] = {}
    if change.trace is not None:
        update["rate"] = tables.trace(change.trace)
    elif change.rate is not None:
        update["rate"] = None if change.rate == "unlimited" else int(change.rate)
    if change.burst is not None:
        update["burst"] = int(change.burst)
    if change.peak is not None:
        update["peak"] = int(change.peak)
    if change.policer is not None:
        update["policer"] = PolicerSettings(int(change.policer.rate), int(change.policer.burst))
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
        before = None if settings.queue is None else settings.queue.said
        update["queue"] = _queue(queues.merged(before, change.queue))
    return replace(settings, **update)


def offloads(node: Node, interface: Interface) -> OffloadsPlan:
    """Returns the offloads of an interface."""
    said = node.offloads if interface.offloads is None else interface.offloads
    if isinstance(said, bool):
        return OffloadsPlan(said, said)
    return OffloadsPlan(said.transmit, said.receive)


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
        return QueueSettings(discipline=_discipline(queue), ecn=queue.ecn, said=queue)
    return QueueSettings(queue.packets, octets, time, _discipline(queue), queue.ecn, said=queue)


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
                    "packet_octets": int(queue.red_packet),
                    "marks_above": queue.red_above == "mark",
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
        case "cake":
            return Law(
                "cake",
                {
                    "target_ns": int(queue.target),
                    "interval_ns": int(queue.interval),
                    "isolation": queue.cake_isolation,
                    "tins": queue.cake_tins,
                },
            )
        case "pie":
            return Law(
                "pie",
                {
                    "target_ns": int(queue.pie_target),
                    "update_ns": int(queue.pie_update),
                    "burst_ns": int(queue.pie_burst),
                    "alpha": queue.pie_alpha,
                    "beta": queue.pie_beta,
                },
            )
        case "dualpi2":
            return Law(
                "dualpi2",
                {
                    "target_ns": int(queue.dualpi2_target),
                    "update_ns": int(queue.dualpi2_update),
                    "alpha": queue.dualpi2_alpha,
                    "beta": queue.dualpi2_beta,
                    "coupling": queue.dualpi2_coupling,
                    "step_ns": int(queue.dualpi2_step),
                    "ramp_ns": int(queue.dualpi2_ramp),
                    "classic": queue.dualpi2_classic,
                },
            )
        case "step":
            octets, time = (None if one is None else int(one) for one in (queue.step_size, queue.step_time))
            return Law("step", {"packets": queue.step_packets, "octets": octets, "time_ns": time})
        case "priority" | "drr":
            return Law(queue.discipline, {"classes": [_class(one) for one in queue.classes or ()]})
        case _:
            return None


def _class(said: QueueClass) -> dict[str, Any]:
    return {"dscp": said.dscp, "quantum": int(said.quantum), "packets": said.packets}
