"""Holds a run to a reservation: its radios must fit the grant.

A reservation of some slots of the testbed's frame gives each radio these slots: it starts exchanges
only in them (``engine/src/medium/slices/slots.rs``). A slice of the scenario may divide them further.

The isolation was computed from the inventory's positions, so a node with a radio stands where the
inventory has it and does not move.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.grid.answers import Lent, TimeDivision
from airloom.grid.grants import Grant, Outside
from airloom.grid.messages import MOST_VIOLATIONS, Violation
from airloom.planning.expand import expand
from airloom.planning.gate import Experiment
from airloom.planning.plan import GrantPlan, Plan, RadioPlan
from airloom.planning.radio.channels import number_of
from airloom.planning.radio.media import DEFAULT_POWER
from airloom.results import RunReader
from airloom.scenario.model import Event

_SAME_PLACE_M = 0.001
_STAYS = Outside("a grant of a reservation does not change during the run", "leave it out")


def held(experiment: Experiment, lent: Lent, division: TimeDivision) -> Experiment:
    """Returns an experiment whose radios can leave the grant neither now nor later.

    ``lent``: what its reservation may use. ``division``: the testbed's time slots.
    Raises :class:`ScenarioError` with every radio that does not fit.
    """
    problems: list[ScenarioError] = []
    plans = tuple(_held(plan, lent, division, problems) for plan in experiment.plans)
    if problems:
        first, *rest = problems
        first.further = tuple(rest)
        raise first
    return dataclasses.replace(experiment, plans=plans)


def _held(plan: Plan, lent: Lent, division: TimeDivision, problems: list[ScenarioError]) -> Plan:
    granted = lent.grant.slots
    part = {**dict(division), "own": list(granted), "hold": True} if len(granted) < division.frame else None
    radios_lent = _lent(plan)
    media = {}
    for name, medium in plan.media.items():
        radios = []
        for radio in medium.radios:
            outside = list(_outside(radio, *radios_lent[radio.port], lent))
            settings = radio.settings
            if part is not None:
                own = settings.get("slots")
                outside += [] if own is None else lent.grant.outside_slots(own, part)
                settings = {**settings, "slots": {**part, **(own or {}), "hold": True}}
            problems += (_problem(radio.port, one) for one in outside)
            radios.append(dataclasses.replace(radio, settings=settings, grant=_narrowed(radio, lent)))
        media[name] = dataclasses.replace(medium, radios=tuple(radios))
    for number, event in enumerate(plan.scenario.events):
        problems += (_problem(f"events[{number}]", one) for one in _of_event(event, plan, lent.grant))
    for name, one in plan.scenario.slices.items():
        if one.grant is not None and one.grant.standby:
            problems.append(_problem(f"slices.{name}.grant.standby", _STAYS))
    return dataclasses.replace(plan, media=media)


def _lent(plan: Plan) -> dict[str, tuple[str, str]]:
    """Returns node and radio of the testbed for each port of a radio."""
    slivers = expand(plan.scenario).slivers if plan.scenario.slices else {}
    found = {}
    for radio in (radio for medium in plan.media.values() for radio in medium.radios):
        sliver = slivers.get(radio.node)
        own = (radio.node, radio.port.partition(":")[2])
        found[radio.port] = own if sliver is None else (sliver.node, sliver.radio)
    return found


def violations(experiment: Experiment, folder: Path, *, refused: bool = False) -> list[Violation]:
    """Returns the violations that the results in ``folder`` record, as the grid manager keeps them.

    ``refused``: settings only that the run itself refused; a shared laboratory reports all else.
    """
    lent = {port: name for plan in experiment.plans for port, name in _lent(plan).items()}
    told: list[Violation] = []
    for path in sorted(folder.rglob("result.json")):
        result = RunReader(path.parent).result
        began = datetime.fromisoformat(result.started)
        told += [
            Violation(
                at=began + timedelta(microseconds=one.t_ns // 1000),
                until=began + timedelta(microseconds=one.until_ns // 1000),
                radio=":".join(lent[one.radio]),
                **one.model_dump(include={"what", "amount", "unit", "frames", "channel"}),
            )
            for one in result.violations
            if not refused or one.what == "setting"
        ]
    return told[:MOST_VIOLATIONS]


def _narrowed(radio: RadioPlan, lent: Lent) -> GrantPlan:
    """Returns what a radio may do during the run: the slice's own grant within the lent one, enforced by the
    medium, since wireless devices of guests choose channel and power themselves.
    """
    channels, power = lent.grant.channels, lent.grant.power_dbm
    if radio.grant is None:
        return GrantPlan(lent.slice, channels, power, police="enforce")
    own = radio.grant.power_dbm
    return dataclasses.replace(
        radio.grant,
        police="enforce" if radio.grant.police == "watch" else radio.grant.police,
        channels=tuple(channel for channel in radio.grant.channels if channel in channels),
        power_dbm=power if own is None else min(own, power),
    )


def _outside(radio: RadioPlan, node: str, name: str, lent: Lent) -> Iterator[Outside]:
    """Yields what of a radio is outside of the grant; ``node`` and ``name``: the testbed's radio."""
    grant = lent.grant
    strange = grant.outside_radio(node, name)
    if strange is not None:
        yield strange
    if node not in grant.radios:
        return
    if "channel" not in radio.settings:
        yield Outside("a medium without channel access has no channels", "use access: {model: dcf}")
        return
    channels = [radio.settings["channel"], *(radio.grant.channels if radio.grant is not None else ())]
    yield from _present(grant.outside_channel(channel) for channel in dict.fromkeys(channels))
    yield from _present([grant.outside_power(radio.settings.get("power_dbm", float(DEFAULT_POWER)))])
    place = radio.motion.get("static")
    x, y, z = lent.positions[node]
    if place is None or math.dist([place.get(axis, 0.0) for axis in "xyz"], (x, y, z)) > _SAME_PLACE_M:
        cure = f"position: [{x:g} m, {y:g} m, {z:g} m], no mobility"
        yield Outside(f"{node!r} is not where the testbed has it", cure)


def _of_event(event: Event, plan: Plan, grant: Grant) -> Iterator[Outside]:
    """Yields what of an event leaves the grant; tunings of slices were checked before."""
    if event.grant is not None:
        yield _STAYS
    if event.position is not None:
        yield Outside("it moves a node of the testbed", "leave it out")
    tune = event.tune
    if tune is None:
        return
    if tune.channel is not None:
        strange = _present(grant.outside_channel(number_of(tune.channel, phy)) for phy in _phys(plan))
        for one in list(strange)[:1]:
            # A frequency may be no channel at all, so the number is left out.
            yield Outside("its channel is not granted", one.cure)
    if tune.power is not None:
        yield from _present([grant.outside_power(float(tune.power))])


def _phys(plan: Plan) -> set[str]:
    """Returns the physical layers of a plan's radios."""
    radios = (radio for medium in plan.media.values() for radio in medium.radios)
    return {radio.settings["phy"] for radio in radios if "phy" in radio.settings}


def _present(found: Iterable[Outside | None]) -> Iterator[Outside]:
    return (one for one in found if one is not None)


def _problem(where: str, outside: Outside) -> ScenarioError:
    return ScenarioError("grid.grant", outside.message, where=where, cure=outside.cure)
