"""The MTU study: its cases, ideals, models of equipment, and how a series of packets is judged."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from airloom.experiments.found import Found
from airloom.experiments.registry import find

run = find("mtu-study").load()
module = run.__globals__
cases, equipment = module["cases"], module["equipment"]


def test_the_nine_cases_have_the_studys_numbers_and_the_wires_ideals() -> None:
    assert [(one.link, one.load, one.frame) for one in cases.NINE[:4]] == [
        (10, 10, 1518), (10, 10, 4370), (10, 10, 7999), (100, 10, 1518),
    ]  # fmt: skip
    ideals = [round(one.ideal, 2) for one in cases.NINE]
    assert ideals == [9.87, 9.95, 9.98, 10, 10, 10, 98.7, 99.54, 99.75]
    published = cases.published()
    assert len(published) == 18
    assert published["E-MTU-1", "mininet"].bandwidth == (10, 20.8, 9.9)
    assert published["E-MTU-9", "mininet"].bandwidth[2] is None, "printed as 100 kb/s"


@pytest.mark.parametrize("case", cases.NINE, ids=lambda case: case.id)
def test_without_equipment_a_case_is_exact_from_the_first_packet_on(case) -> None:
    reading = equipment.simulate(case, equipment.Model("none", 0.0, 0.0), 200)
    series = cases.Series.of(reading, case.frame)
    assert series.peak <= case.link * 1.000
    assert series.mean == pytest.approx(case.ideal, rel=1e-4)
    assert series.top == pytest.approx(case.ideal, rel=1e-4)
    assert series.low == pytest.approx(case.ideal, rel=1e-4)


def test_an_interruption_of_a_full_link_is_told_apart() -> None:
    case = cases.NINE[6]
    reading = equipment.simulate(case, equipment.Model("none", 0.0, 0.0), 200)
    later = reading.arrived_at + np.where(np.arange(200) < 100, 0, 7_000_000)
    series = cases.Series.of(dataclasses.replace(reading, arrived_at=later), case.frame, case.full)
    assert series.mean < 0.9 * case.ideal
    assert series.running == pytest.approx(case.ideal, rel=1e-4)
    assert cases.NINE[3].full == math.inf, "below its capacity a link has gaps of its own"


def test_a_rest_after_each_frame_costs_what_it_says() -> None:
    case = cases.NINE[6]
    reading = equipment.simulate(case, equipment.Model("none", 0.0, 4.0), 200)
    assert set(np.diff(reading.arrived_at)) == {127_040}, "123.04 us on the wire and 4 us of rest"


def test_service_comes_nearest_to_the_real_network() -> None:
    published = cases.published()
    jitters = {one.id: published[one.id, "real"].jitter[0] for one in cases.NINE}
    bandwidths = {one.id: published[one.id, "real"].bandwidth[0] for one in cases.NINE}
    fits = equipment.fit(cases.NINE, jitters, bandwidths, 300, lambda _: None)
    for link, most in ((10, 2.0), (100, 1.5)):
        ours = [fit for fit in fits if fit.link == link]
        assert ours[0].model.word == "service"
        assert ours[0].factor < most < next(fit for fit in ours if fit.model.word == "none").factor


def test_distances_are_factors() -> None:
    assert math.exp(equipment.distance([(2.0, 1.0), (0.5, 1.0)])) == pytest.approx(2.0)
    assert equipment.distance([(3.0, 3.0)]) == 0.0


def test_differences_are_drawn_with_interval_and_published_extremes() -> None:
    found, here = Found(), module["AIRLOOM"]
    for difference in (0.1e6, 0.2e6, 0.3e6):
        labels = {"case": "E-MTU-1", "network": here}
        found.add(labels, {"difference.bandwidth_real": (difference, "bit/s")})
    drawn = {figure.name: figure for figure in module["_differences"](found)}
    expected = {f"{one}-differences-{of}" for one in ("bandwidth", "jitter") for of in ("real", "mininet")}
    assert set(drawn) == expected
    lines = {line.label: line for line in drawn["bandwidth-differences-real"].lines}
    of_mean = [lines[f"published: {word}"].y[0] for word in ("mean", "most", "least")]
    assert of_mean == pytest.approx([0, 100 * 0.4 / 9.5, -100 * 2.8 / 9.5]), "9.5, 9.9 and 6.7 Mbit/s"
    assert lines[here].y[0] == pytest.approx(100 * 0.2 / 9.5)
    # Student's t of 2 degrees of freedom, 4.303, times 0.1 / sqrt(3).
    assert lines[here].ci95[0] == pytest.approx(100 * 4.303 * 0.1 / math.sqrt(3) / 9.5, rel=1e-3)


def test_the_inner_ideal_is_smaller_by_the_tunnels_octets() -> None:
    case = cases.NINE[6]
    reading = equipment.simulate(case, equipment.Model("none", 0.0, 0.0), 200)
    inner = case.frame - module["tunnelled"].OVERHEAD
    found = module["_inner"](cases.Series.of(reading, inner), case, inner)
    assert found["of_inner_ideal.mean"][0] == pytest.approx(1, rel=1e-4)
