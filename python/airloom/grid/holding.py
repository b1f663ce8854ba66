"""Holds a run to a reservation: its radios must fit the grant, and it ends when the window ends.

A reservation of some slots of the testbed's frame gives each radio these slots: it starts exchanges
only in them (``engine/src/medium/slots.rs``). A slice of the scenario may divide them further.

The isolation was computed from the inventory's positions, so a node with a radio stands where the
inventory has it and does not move.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airloom.errors import LabError, RunError, ScenarioError
from airloom.grid.messages import MOST_VIOLATIONS
from airloom.planning.channels import number_of
from airloom.planning.gate import Experiment
from airloom.planning.media import DEFAULT_POWER
from airloom.planning.network import expand
from airloom.planning.plan import GrantPlan, Plan, RadioPlan
from airloom.results import RunReader
from airloom.scenario.suggest import listing
from airloom.units.quantities import Duration

ASK_S = 5.0
"""How often the manager is asked whether the reservation still stands."""
_SAME_PLACE_M = 0.001


def held(experiment: Experiment, reservation: dict[str, Any], frame: dict[str, int]) -> Experiment:
    """Returns an experiment whose radios can leave the grant neither now nor later.

    ``frame``: the testbed's time division (``frame``, ``length_ns``, ``guard_ns``).
    Raises :class:`ScenarioError` with every radio that does not fit.
    """
    problems: list[ScenarioError] = []
    plans = tuple(_held(plan, reservation, frame, problems) for plan in experiment.plans)
    if problems:
        first, *rest = problems
        first.further = tuple(rest)
        raise first
    return dataclasses.replace(experiment, plans=plans)


def _held(
    plan: Plan, reservation: dict[str, Any], frame: dict[str, int], problems: list[ScenarioError]
) -> Plan:
    granted = reservation["grant"]["slots"]
    part = {**frame, "own": granted, "hold": True} if len(granted) < frame["frame"] else None
    lent = _lent(plan)
    media = {}
    for name, medium in plan.media.items():
        radios = []
        for radio in medium.radios:
            node, interface = lent[radio.port]
            problems += (_told(radio.port, *each) for each in _outside(radio, node, interface, reservation))
            settings = radio.settings
            if part is not None:
                problems += (_told(radio.port, *each) for each in _outside_slots(settings, part))
                settings = {**settings, "slots": {**part, **settings.get("slots", {}), "hold": True}}
            radios.append(dataclasses.replace(radio, settings=settings, grant=_narrowed(radio, reservation)))
        media[name] = dataclasses.replace(medium, radios=tuple(radios))
    problems += (_told(f"events[{number}]", *each) for number, each in _events(plan, reservation))
    for name, one in plan.scenario.slices.items():
        if one.grant is not None and one.grant.standby:
            why = "a grant of a reservation does not change during the run"
            problems.append(_told(f"slices.{name}.grant.standby", why, "leave it out"))
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


def violations(experiment: Experiment, folder: Path) -> list[dict[str, Any]]:
    """Returns the violations that the results in ``folder`` record, as the grid manager keeps them."""
    lent = {port: name for plan in experiment.plans for port, name in _lent(plan).items()}
    told = []
    for path in sorted(folder.rglob("result.json")):
        result = RunReader(path.parent).result
        began = datetime.fromisoformat(result.started)
        told += [
            {
                "at": (began + timedelta(microseconds=one.t_ns // 1000)).isoformat(),
                "until": (began + timedelta(microseconds=one.until_ns // 1000)).isoformat(),
                "radio": ":".join(lent[one.radio]),
                "what": one.what,
                "amount": one.amount,
                "unit": one.unit,
                "frames": one.frames,
                "channel": one.channel,
            }
            for one in result.violations
        ]
    return told[:MOST_VIOLATIONS]


def _narrowed(radio: RadioPlan, reservation: dict[str, Any]) -> GrantPlan:
    """Returns what a radio may be set to during the run: the slice's own grant within the lent one."""
    grant = reservation["grant"]
    channels, power = tuple(grant["channels"]), grant["power_dbm"]
    if radio.grant is None:
        return GrantPlan(reservation["slice"], channels, power)
    own = radio.grant.power_dbm
    return dataclasses.replace(
        radio.grant,
        channels=tuple(channel for channel in radio.grant.channels if channel in channels),
        power_dbm=power if own is None else min(own, power),
    )


def _outside(
    radio: RadioPlan, node: str, interface: str, reservation: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yields what of a radio is outside of the grant, with the cure."""
    grant = reservation["grant"]
    lent = grant["radios"].get(node, ())
    if not lent:
        yield f"the node {node!r} is not granted", f"granted: {listing(grant['radios'])}"
        return
    if interface not in lent:
        yield f"the radio {node}:{interface} is not granted", f"granted there: {', '.join(lent)}"
    if "channel" not in radio.settings:
        yield "a medium without channel access has no channels", "use access: {model: dcf}"
        return
    channels = [radio.settings["channel"], *(radio.grant.channels if radio.grant is not None else ())]
    for channel in dict.fromkeys(channels):
        if channel not in grant["channels"]:
            yield f"channel {channel} is not granted", f"granted: {', '.join(map(str, grant['channels']))}"
    power = radio.settings.get("power_dbm", float(DEFAULT_POWER))
    if power > grant["power_dbm"]:
        yield f"{power:g} dBm are not granted", f"set power: {grant['power_dbm']:g} dBm"
    place = radio.motion.get("static")
    x, y, z = reservation["positions"][node]
    if place is None or math.dist([place.get(axis, 0.0) for axis in "xyz"], (x, y, z)) > _SAME_PLACE_M:
        cure = f"position: [{x:g} m, {y:g} m, {z:g} m], no mobility"
        yield f"{node!r} is not where the testbed has it", cure


def _outside_slots(settings: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields what of a radio's slots is outside of a grant of some slots, with the cure."""
    slots = settings.get("slots")
    if slots is None:
        return
    if any(slots[key] != part[key] for key in ("frame", "length_ns", "guard_ns")):
        length, guard = Duration(part["length_ns"]), Duration(part["guard_ns"])
        cure = f"slots: {{frame: {part['frame']}, length: {length.text}, guard: {guard.text}}}"
        yield "its frame of slots is not the testbed's", cure
    if not slots["hold"]:
        yield "its frames do not wait for their slots", "leave out hold: false"
    strange = [slot for slot in slots["own"] if slot not in part["own"]]
    if strange:
        yield f"slot {strange[0]} is not granted", f"granted: {', '.join(map(str, part['own']))}"


def _events(plan: Plan, reservation: dict[str, Any]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields changes of radios by events that leave the grant; those of slices were checked before."""
    grant = reservation["grant"]
    phys = {
        radio.settings["phy"]
        for medium in plan.media.values()
        for radio in medium.radios
        if "phy" in radio.settings
    }
    for number, event in enumerate(plan.scenario.events):
        if event.grant is not None:
            yield number, ("it changes a grant, and that of the reservation stays", "leave it out")
        if event.position is not None:
            yield number, ("it moves a node of the testbed", "leave it out")
        if event.grant is not None:
            yield number, ("a grant of a reservation does not change during the run", "leave it out")
        tune = event.tune
        if tune is None:
            continue
        numbers = [] if tune.channel is None else [number_of(tune.channel, phy) for phy in phys]
        if any(channel not in grant["channels"] for channel in numbers):
            yield number, ("its channel is not granted", f"granted: {', '.join(map(str, grant['channels']))}")
        if tune.power is not None and tune.power > grant["power_dbm"]:
            yield number, (f"{tune.power.text} are not granted", f"at most {grant['power_dbm']:g} dBm")


def _told(where: str, message: str, cure: str) -> ScenarioError:
    return ScenarioError("grid.grant", message, where=where, cure=cure)


@contextlib.contextmanager
def within_window(remaining_s: float, stands: Callable[[], bool]) -> Iterator[None]:
    """Context manager: ends the run in order when the window ends or the reservation does not stand.

    Raises :class:`RunError` then, instead of the error of the interrupted run.
    """
    over, ended = threading.Event(), threading.Event()

    def watch() -> None:
        left = remaining_s
        while left > 0 and stands():
            if over.wait(min(ASK_S, left)):
                return
            left -= ASK_S
        if not over.is_set():
            ended.set()
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watch, name="window", daemon=True)
    thread.start()
    try:
        yield
    except LabError as error:
        if not ended.is_set():
            raise
        raise RunError("grid.window", f"the reservation ended during the run: {error.message}") from error
    finally:
        over.set()
