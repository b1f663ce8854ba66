"""Ranges of settings of links, queues, adapters and switches, as the engine checks them.

If the engine refuses, each property is checked alone, so that every value out of range is found.
The engine's error code is the path of its own setting, which is mapped to the scenario's key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from airloom.planning import tables
from airloom.planning.links import encoding
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.rules.ask import asked
from airloom.scenario.model import Adapter, Direction, Queue, Switch
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.quantities import Size
from airloom.units.text import percent

_KEYS: dict[str, Path_] = {
    "link.rate.trace.length": ("trace",),
    "link.rate.trace.order": ("trace",),
    "link.rate.trace.period": ("trace",),
    "link.rate.trace.octets": ("trace",),
    "link.jitter.uniform.spread": ("jitter", "uniform"),
    "link.jitter.normal.sigma": ("jitter", "normal"),
    "link.jitter.pareto.scale": ("jitter", "pareto"),
    "link.jitter.pareto.shape": ("jitter", "shape"),
    "link.jitter.exponential.mean": ("jitter", "exponential"),
    "link.jitter.table.length": ("jitter", "table"),
    "link.jitter.table.value": ("jitter", "table"),
    "link.loss.probability": ("loss",),
    "link.queue.red.min": ("queue", "red_min"),
    "link.queue.red.max": ("queue", "red_max"),
    "link.queue.red.probability": ("queue", "red_probability"),
    "link.queue.red.weight": ("queue", "red_weight"),
    "link.queue.red.packet": ("queue", "red_packet"),
    "link.policer.rate": ("policer", "rate"),
    "link.policer.burst": ("policer", "burst"),
    "link.queue.pie.target": ("queue", "pie_target"),
    "link.queue.pie.update": ("queue", "pie_update"),
    "link.queue.pie.burst": ("queue", "pie_burst"),
    "link.queue.pie.alpha": ("queue", "pie_alpha"),
    "link.queue.pie.beta": ("queue", "pie_beta"),
    "link.queue.dualpi2.target": ("queue", "dualpi2_target"),
    "link.queue.dualpi2.update": ("queue", "dualpi2_update"),
    "link.queue.dualpi2.alpha": ("queue", "dualpi2_alpha"),
    "link.queue.dualpi2.beta": ("queue", "dualpi2_beta"),
    "link.queue.dualpi2.coupling": ("queue", "dualpi2_coupling"),
    "link.queue.dualpi2.step": ("queue", "dualpi2_step"),
    "link.queue.dualpi2.ramp": ("queue", "dualpi2_ramp"),
    "link.queue.dualpi2.classic": ("queue", "dualpi2_classic"),
    "link.queue.step.time": ("queue", "step_time"),
    "link.queue.codel.target": ("queue", "target"),
    "link.queue.codel.interval": ("queue", "interval"),
    "link.queue.fq-codel.quantum": ("queue", "quantum"),
    "link.queue.fq-codel.flows": ("queue", "flows"),
    "link.receiver.latency": ("latency",),
    "link.receiver.moderation": ("moderation",),
    "link.receiver.tick": ("tick",),
}
"""The engine's code: the scenario's key, if it differs from the rest of the code."""
_BESIDE = {"burst": ("rate",), "peak": ("rate", "burst")}
"""Properties without which another one has no effect."""
_CODES = {"link.rate": "link.rate.range"}
"""The engine's code: the published code of the scenario, if it differs."""
_WORDS = {"min_octets": "red_min"}
"""The engine's name in a list of allowed values: the scenario's."""
_MOST = 2**32 - 1


def of_direction(said: Direction, path: Path_) -> Iterator[Problem]:
    """Yields properties of a direction that are out of range or in an unusable file."""
    given = {
        name: _within_32_bits(value)
        for name in Direction.model_fields
        if (value := getattr(said, name)) is not None
    }
    with contextlib.suppress(tables.TableError):
        if not any(_link(encoding.link(Direction.model_construct(**given)), said, path)):
            return
    for name, value in given.items():
        # A bucket is one with its rate alone.
        beside = {key: given[key] for key in _BESIDE.get(name, ()) if key in given}
        where: Path_ = (*path, "jitter", "table") if name == "jitter" else (*path, name)
        try:
            one = encoding.link(Direction.model_construct(**{name: value}, **beside))
        except tables.TableError as error:
            yield Problem(error.code, error.message, where, error.cure)
            continue
        yield from _link(one, said, path)


def of_adapter(said: Adapter, path: Path_) -> Iterator[Problem]:
    """Yields properties of an adapter that are out of range."""
    yield from _link(LinkSettings(gap=encoding.gap(said)), said, path)
    for name in ("moderation", "tick"):
        one = Adapter.model_construct(**{name: getattr(said, name)})
        yield from _link(LinkSettings(receiver=encoding.equipment(one)), said, path)
    if said.service is not None:
        # The engine has one law for both; its error names the link's setting.
        for found in of_direction(Direction.model_construct(jitter=said.service), path):
            key = found.path[len(path) + 1 :]
            yield Problem(found.code, found.message, (*path, "service", *key), found.cure)


def of_switch(said: Switch, path: Path_) -> Iterator[Problem]:
    """Yields properties of an engine's switch that are out of range; a hub has none."""
    if said.kind != "switch":
        return
    yield from _link(LinkSettings(receiver=encoding.equipment(said)), said, path)
    plain = Switch(forwarding=said.forwarding)
    for name in ("ageing", "addresses", "convergence"):
        if getattr(said, name) != getattr(plain, name):
            one = encoding.switch(plain.model_copy(update={name: getattr(said, name)}))
            yield from _objection(asked(partial(_check_switch, one)), said, path)


def _check_switch(one: Any, engine: ModuleType) -> None:
    engine.check_switch("", one)


def _link(one: LinkSettings, said: Any, path: Path_) -> Iterator[Problem]:
    encoded = one.engine()
    if encoded:
        yield from _objection(asked(lambda engine: engine.check_link("", encoded)), said, path)


def _objection(error: Any, said: Any, path: Path_) -> Iterator[Problem]:
    if error is None:
        return
    code: str = error.args[0]
    keys = _KEYS.get(code, tuple(code.split(".")[1:]))
    value = said
    for key in keys:
        value = getattr(value, str(key))
    if value == 0 and code in _ZERO:
        yield _ZERO[code](str(keys[-1]), (*path, *keys))
        return
    if keys[-1] in ("table", "trace"):
        text = Path(value).name
    elif isinstance(value, float):
        text = percent(value)
    else:
        text = getattr(value, "text", str(value))
    allowed = error.allowed
    for word, own in _WORDS.items():
        allowed = allowed.replace(word, own)
    yield Problem(_CODES.get(code, code), f"{text} is out of range", (*path, *keys), allowed)


def _within_32_bits(value: Any) -> Any:
    """Caps sizes at the largest that the engine can parse, which is already out of range."""
    if isinstance(value, Queue):
        return value.model_copy(update={"quantum": _within_32_bits(value.quantum)})
    return Size(_MOST) if isinstance(value, Size) and value > _MOST else value


def zero(name: str, path: Path_) -> Problem:
    """Returns the problem of a queue parameter that is zero."""
    return Problem("queue.zero", f"{name} must be above zero", path)


def _zero_rate(_: str, path: Path_) -> Problem:
    return Problem(
        "link.rate.zero", "a rate of zero lets nothing pass", path, "to cut a link, set it down by an event"
    )


_ZERO: dict[str, Callable[[str, Path_], Problem]] = {
    "link.rate": _zero_rate,
    "link.queue.codel.target": zero,
    "link.queue.codel.interval": zero,
    "link.queue.fq-codel.quantum": zero,
}
"""The engine's code: the problem to report for a zero."""
