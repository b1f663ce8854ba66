"""Turns the raw text of a scenario into a checked scenario and its plans.

Every plan is made here, from files and from Python alike, so everything that runs has been checked
and ``airloom check`` reports what a run would report. This module reads files and has no other side
effects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import airloom.planning.make as planning
from airloom.errors import ScenarioError
from airloom.planning import replayed
from airloom.planning.expand import expand
from airloom.planning.machine import containers
from airloom.planning.machine.virtual_time import in_guests
from airloom.planning.names import named, seeded
from airloom.planning.plan import Plan
from airloom.planning.routing.frr import with_daemons
from airloom.planning.routing.reach import unreachable
from airloom.planning.routing.visibility import with_events
from airloom.planning.rules import problems
from airloom.planning.sweep import MOST_PLANS, derived_seed, points
from airloom.scenario import paths
from airloom.scenario import problems as refusal
from airloom.scenario.model import Scenario
from airloom.scenario.reader import opened, validated
from airloom.scenario.source import Source


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked scenario and the plans of all its points and repetitions, in run order."""

    scenario: Scenario
    plans: tuple[Plan, ...]

    @property
    def shares(self) -> dict[str, float]:
        """Returns the CPU share that a plan limits a node or guest to, by name."""
        return {name: share for plan in self.plans for name, share in plan.shares.items()}

    @property
    def virtual(self) -> bool:
        """True if the run is in virtual time."""
        return self.scenario.time == "virtual"

    @property
    def has_taps(self) -> bool:
        """True if a plan creates TAPs in the kernel."""
        return any(plan.has_taps for plan in self.plans)


def check(
    source: str | Path | Scenario,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    *,
    seed: int | None = None,
) -> Experiment:
    """Checks a scenario and plans it.

    ``source`` is a path, or a :class:`Scenario`; :func:`airloom.scenario.read` makes one from text.
    ``overrides`` are ``path=value`` texts as after ``--set``, the value in YAML, or a mapping from
    path to value. ``seed`` overrides the scenario's.

    Raises ``ScenarioError`` for the first mistake in the text; ``further`` has the others.
    """
    raw = _override(opened(source), overrides)
    if seed is not None:
        raw = paths.put(raw, "seed", seed, "--seed", "--seed")
    base = validated(raw)
    found = points(raw, base)
    if len(found) * base.repetitions > MOST_PLANS:
        raise ScenarioError(
            "sweep.size",
            f"{len(found)} points x {base.repetitions} repetitions are more than {MOST_PLANS} runs",
            where=raw.where(("sweep",) if len(found) > base.repetitions else ("repetitions",)),
        )
    plans: list[Plan] = []
    for point in found:
        try:
            scenario = validated(point.source) if point.values else base
            plan = _plan(point.source, scenario, base.seed)
        except ScenarioError as error:
            raise _at_point(error, point.values) from None
        for repetition in range(base.repetitions):
            plans.append(_seeded(plan, base, point.values, repetition))
    return Experiment(base, tuple(plans))


def _override(source: Source, overrides: Iterable[str] | Mapping[str, Any]) -> Source:
    if isinstance(overrides, Mapping):
        pairs = [(path, value) for path, value in overrides.items()]
    else:
        pairs = [_option(text) for text in overrides]
    for path, value in pairs:
        origin = f"--set {path}"
        source = paths.put(source, path, value, origin, origin)
    return source


def _option(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    where = f"--set {path.strip()}"
    if not equals:
        raise ScenarioError(
            "path.syntax",
            f"{text!r} gives no value",
            where="--set",
            cure="write it like links[0].rate='10 Mbit/s'",
        )
    return path.strip(), Source.of_text(value, where).data


def _plan(source: Source, scenario: Scenario, seed: int) -> Plan:
    scenario = replayed.with_durations(in_guests(seeded(scenario, seed)))
    try:
        network = expand(scenario)
        scenario = named(containers.with_commands(scenario, network), network)
        refusal.raise_first(problems(scenario, network), source)
        scenario = containers.with_digests(with_events(scenario, network))
        plan = planning.make(scenario, network)
        routed = with_daemons(scenario, network, plan)
        if routed is not scenario:
            network = expand(routed)
            plan = planning.make(routed, network)
        refusal.raise_first(unreachable(plan, network), source)
    except refusal.Problem as problem:
        raise refusal.of_problems([problem], source) from None
    except refusal.Problems as several:
        raise refusal.of_problems(several.problems, source) from None
    return plan


def _at_point(error: ScenarioError, values: dict[str, Any]) -> ScenarioError:
    """Returns the error with the point of the sweep at which it occurs."""
    if values:
        point = ", ".join(f"{path} = {value}" for path, value in values.items())
        for each in (error, *error.further):
            each.message = f"at the point {point}: {each.message}"
    return error


def _seeded(plan: Plan, base: Scenario, point: dict[str, Any], repetition: int) -> Plan:
    seed = base.seed if not point and base.repetitions == 1 else derived_seed(base.seed, point, repetition)
    single = plan.scenario.model_copy(update={"seed": seed, "sweep": {}, "repetitions": 1})
    return dataclasses.replace(plan, scenario=single, seed=seed, point=point, repetition=repetition)
