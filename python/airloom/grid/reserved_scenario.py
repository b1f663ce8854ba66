"""The scenario that a reservation can run: its nodes, radios, channels and power on the testbed's medium."""

from __future__ import annotations

from typing import Any

from airloom.errors import ScenarioError
from airloom.grid.answers import Inventory, Reservation
from airloom.grid.inventory import MEDIUM
from airloom.scenario.model import Scenario

_SECONDS = 10


def scenario_of(reservation: Reservation, inventory: Inventory) -> Scenario:
    """Returns a scenario that fits a reservation, with a ping between its first two nodes.

    The radios of a node take the granted channels in
    turn. Slots are left out: a run in a reservation of some slots holds them by itself.
    Raises :class:`ScenarioError` if nothing is granted.
    """
    grant = reservation.grant
    if grant is None:
        raise ScenarioError(
            "reservation.grant", f"the reservation is {reservation.state}: it has no grant",
            cure="airloom grid show ID",
        )  # fmt: skip
    channels = grant.channels
    nodes = {}
    for name, radios in grant.radios.items():
        lent = inventory.nodes.get(name)
        if lent is None:
            raise ScenarioError(
                "grid.inventory", f"the testbed does not lend {name!r} any more", cure="airloom grid nodes"
            )
        nodes[name] = {
            "position": [f"{metres:g} m" for metres in lent.position_m],
            "radios": {
                radio: {"channel": channels[number % len(channels)]} for number, radio in enumerate(radios)
            },
        }
    medium = dict(inventory.medium)
    medium["radio"] = {**medium.get("radio", {}), "power": f"{grant.power_dbm:g} dBm"}
    found: dict[str, Any] = {"name": reservation.slice, "media": {MEDIUM: medium}, "nodes": nodes}
    first, *others = nodes
    if others:
        echoes = {"from": first, "to": others[0], "count": _SECONDS, "interval": "1 s"}
        found["measurements"] = [{"name": "rtt", "ping": echoes}]
    else:
        found["duration"] = f"{_SECONDS} s"
    return Scenario.model_validate(found)
