"""Settings of links and switches in the engine's own words (``engine/src/settings.rs``)."""

from __future__ import annotations

from typing import Any

from airloom.planning import tables
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


def link(direction: Direction) -> dict[str, Any]:
    """One direction's settings; the engine's own defaults stand for what is left out."""
    return changed({}, direction)


def changed(settings: dict[str, Any], change: Direction) -> dict[str, Any]:
    """The settings after a change: what it names is replaced, the rest stays."""
    result = dict(settings)
    if change.trace is not None:
        result["rate"] = {"trace": tables.trace(change.trace)}
    elif change.rate is not None:
        result["rate"] = "unlimited" if change.rate == "unlimited" else {"bits-per-second": int(change.rate)}
    if change.delay is not None:
        result["delay_ns"] = int(change.delay)
    if change.jitter is not None:
        result["jitter"] = _jitter(change.jitter)
    if change.loss is not None:
        result["loss"] = _loss(change.loss)
    for name in ("jitter_reorders", "duplicate", "corrupt", "reorder", "mtu", "segments", "late"):
        value = getattr(change, name)
        if value is not None:
            result[name] = value
    if change.overhead is not None:
        result["overhead"] = int(change.overhead)
    if change.queue is not None:
        result["queue"] = _queue(change.queue)
    return result


def wire(direction: Direction, sender: Adapter | None, receiver: Adapter | Switch | None) -> dict[str, Any]:
    """One direction's settings with the models of the equipment at its ends."""
    result = link(direction)
    if sender is not None and sender.gap:
        result["gap_ns"] = int(sender.gap)
    match receiver:
        case Adapter():
            adds = {"moderation_ns": int(receiver.moderation), "tick_ns": int(receiver.tick)}
            if receiver.service is not None:
                adds["service"] = _jitter(receiver.service)
            result["receiver"] = adds
        case Switch() if receiver.latency:
            result["receiver"] = {"latency_ns": int(receiver.latency)}
    return result


def switch(settings: Switch) -> dict[str, Any] | str:
    """A switch's or hub's settings."""
    if settings.kind == "hub":
        return "hub"
    return {"switch": {"ageing_ns": int(settings.ageing), "addresses": settings.addresses}}


def _jitter(jitter: Any) -> Any:
    match jitter:
        case UniformJitter():
            return {"uniform": {"spread_ns": int(jitter.uniform)}}
        case NormalJitter():
            return {"normal": {"sigma_ns": int(jitter.normal)}}
        case ParetoJitter():
            return {"pareto": {"scale_ns": int(jitter.pareto), "shape": jitter.shape}}
        case ExponentialJitter():
            return {"exponential": {"mean_ns": int(jitter.exponential)}}
        case TableJitter():
            return {"table": {"values_ns": tables.delays(jitter.table)}}
        case _:
            return "none"


def _loss(loss: float | GilbertElliott) -> Any:
    if isinstance(loss, GilbertElliott):
        return {
            "gilbert-elliott": {
                "good_to_bad": loss.good_to_bad,
                "bad_to_good": loss.bad_to_good,
                "loss_good": loss.loss_good,
                "loss_bad": loss.loss_bad,
            }
        }
    return {"bernoulli": {"probability": loss}} if loss > 0 else "none"


def _queue(queue: Queue) -> dict[str, Any]:
    limited = queue.packets is not None or queue.size is not None or queue.time is not None
    return {
        "packets": queue.packets if limited else 1000,
        "octets": None if queue.size is None else int(queue.size),
        "time_ns": None if queue.time is None else int(queue.time),
        "discipline": _discipline(queue),
        "ecn": queue.ecn,
    }


def _discipline(queue: Queue) -> Any:
    match queue.discipline:
        case "red":
            assert queue.red_min is not None
            assert queue.red_max is not None
            return {
                "red": {
                    "min_octets": int(queue.red_min),
                    "max_octets": int(queue.red_max),
                    "probability": queue.red_probability,
                    "weight": queue.red_weight,
                }
            }
        case "codel":
            return {"codel": {"target_ns": int(queue.target), "interval_ns": int(queue.interval)}}
        case "fq-codel":
            return {
                "fq-codel": {
                    "target_ns": int(queue.target),
                    "interval_ns": int(queue.interval),
                    "quantum": int(queue.quantum),
                    "flows": queue.flows,
                }
            }
        case _:
            return "drop-tail"
