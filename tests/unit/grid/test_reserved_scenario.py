"""The scenario of a reservation is held by that reservation as it is."""

from __future__ import annotations

from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.grid import holding
from airloom.grid.answers import Inventory, Lent, Reservation
from airloom.grid.reserved_scenario import scenario_of
from airloom.planning.gate import check
from airloom.scenario import read
from airloom.units.quantities import Power
from helpers.grid import Manager


def reserved(manager: Manager, **asked: Any) -> tuple[Reservation, Lent, Inventory]:
    """Returns a reservation, its grant as a run gets it, and the inventory."""
    one = manager.book((0, 2), slice="mine", **asked)
    path = f"/v1/reservations/{one['id']}"
    return (
        Reservation.model_validate(manager.must("GET", path)),
        Lent.model_validate(manager.must("GET", f"{path}/grant")),
        Inventory.model_validate(manager.must("GET", "/v1/inventory")),
    )


@pytest.mark.parametrize(
    "asked",
    [{"count": 2}, {"count": 1}, {"count": 3, "radios": 2, "channel_count": 2}, {"power_dbm": 4.5}],
    ids=str,
)
def test_it_fits_the_reservation(manager: Manager, asked: dict[str, Any]) -> None:
    reservation, lent, inventory = reserved(manager, **asked)
    scenario = scenario_of(reservation, inventory)
    again = read(scenario.to_yaml())
    assert again == scenario
    held = holding.held(check(again), lent, inventory.slots)
    (plan,) = held.plans
    radios = plan.media["air"].radios
    assert {radio.port.partition(":")[0] for radio in radios} == set(lent.grant.radios)
    assert scenario.media["air"].radio.power == Power(f"{lent.grant.power_dbm:g} dBm")
    assert scenario.media["air"].propagation.model == "log-distance"


def test_slots_are_those_of_the_reservation(one_node: Manager) -> None:
    reservation, lent, inventory = reserved(one_node, slots=1)
    held = holding.held(check(scenario_of(reservation, inventory)), lent, inventory.slots)
    (radio,) = held.plans[0].media["air"].radios
    assert radio.settings["slots"]["own"] == list(lent.grant.slots)


def test_what_waits_has_no_scenario(one_node: Manager) -> None:
    one_node.book((0, 1), radios=2)
    asked = {"project": "p", "slice": "t", "end": "2027-01-15T09:00:00Z", "wait": True}
    waiting = Reservation.model_validate(one_node.must("POST", "/v1/reservations", asked))
    with pytest.raises(ScenarioError, match="it has no grant"):
        scenario_of(waiting, Inventory.model_validate(one_node.must("GET", "/v1/inventory")))


def test_a_node_that_is_not_lent_any_more_is_named(manager: Manager) -> None:
    reservation, _, inventory = reserved(manager, nodes=["a1"])
    del inventory.nodes["a1"]
    with pytest.raises(ScenarioError, match="'a1'"):
        scenario_of(reservation, inventory)
