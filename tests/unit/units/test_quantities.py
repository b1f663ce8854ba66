"""Quantities: exact, with a unit, or refused."""

from __future__ import annotations

from fractions import Fraction as Exact
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from airloom.errors import ScenarioError
from airloom.units import figures, quantities
from airloom.units.addresses import Address
from airloom.units.quantities import (
    Chance,
    Duration,
    Fraction,
    Frequency,
    Length,
    Power,
    Rate,
    Size,
    Speed,
)
from airloom.units.reading import UnitError
from helpers import DATA

INTEGRAL = [Rate, Duration, Size, Frequency]


@pytest.mark.parametrize(
    ("made", "base"),
    [
        (Rate("10 Mbit/s"), 10_000_000),
        (Rate("10Mbit/s"), 10_000_000),
        (Rate("1e3 bit/s"), 1000),
        (Rate("0.5 kbit/s"), 500),
        (Duration("5 ms"), 5_000_000),
        (Duration("1.5 us"), 1500),
        (Duration("2 min"), 120_000_000_000),
        (Duration("1 h"), 3_600_000_000_000),
        (Duration("  7 ns "), 7),
        (Size("1470 B"), 1470),
        (Size("1 kB"), 1000),
        (Size("1 KiB"), 1024),
        (Size("1.5 MiB"), 1572864),
        (Frequency("5.18 GHz"), 5_180_000_000),
        (Power("20 dBm"), 20.0),
        (Power("100 mW"), 20.0),
        (Power("1 W"), 30.0),
        (Power("-90.5 dBm"), -90.5),
        (Length("1.2 km"), 1200.0),
        (Length("15 mm"), 0.015),
        (Speed("36 km/h"), 10.0),
    ],
)
def test_text_becomes_base_units(made: Any, base: float) -> None:
    assert made == pytest.approx(base, rel=1e-15)
    assert isinstance(made, int) == (type(made) in INTEGRAL)


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        (Rate, "10", "unit.missing"),
        (Rate, "10 Mbps", "unit.unknown"),
        (Rate, "10 Mb/s", "unit.unknown"),
        (Rate, "10 mbit/s", "unit.unknown"),
        (Rate, "", "unit.syntax"),
        (Rate, "Mbit/s", "unit.syntax"),
        (Rate, "ten Mbit/s", "unit.syntax"),
        (Rate, "1,5 Mbit/s", "unit.unknown"),
        (Rate, "nan bit/s", "unit.syntax"),
        (Rate, "inf bit/s", "unit.syntax"),
        (Rate, "0.1 bit/s", "unit.inexact"),
        (Duration, "5 m", "unit.unknown"),
        (Duration, "-1 s", "unit.negative"),
        (Duration, "1e99 h", "unit.range"),
        (Duration, "1e999999999 s", "unit.unknown"),
        (Duration, "1" * 100 + " s", "unit.syntax"),
        (Size, "5 K", "unit.unknown"),
        (Power, "0 mW", "unit.negative"),
    ],
)
def test_everything_else_is_refused(kind: Any, text: str, code: str) -> None:
    with pytest.raises(UnitError) as caught:
        kind(text)
    assert caught.value.code == code
    assert isinstance(caught.value, ScenarioError)


@pytest.mark.parametrize("kind", quantities.QUANTITIES)
@pytest.mark.parametrize("value", [5, 5.0, True, None, [], {}, "5"])
def test_a_bare_number_is_refused_in_python_too(kind: Any, value: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize("kind", quantities.QUANTITIES)
def test_a_number_made_on_purpose_is_taken(kind: Any) -> None:
    assert TypeAdapter(kind).validate_python(kind(5)) == 5


@given(st.sampled_from(INTEGRAL), st.integers(0, 2**63 - 1))
def test_integers_come_back_from_their_text(kind: Any, number: int) -> None:
    quantity = kind(number)
    assert kind(quantity.text) == quantity
    assert eval(repr(quantity)) == quantity
    assert str(quantity) == str(number)
    assert quantities.parse(quantity.text) == quantity


@given(st.sampled_from(INTEGRAL), st.fractions(0, 10**6), st.data())
def test_decimal_text_is_read_exactly_or_refused(kind: Any, number: Exact, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.UNITS)))
    text = f"{float(number):.6f}"
    exact = Exact(text) * kind.UNITS[unit]
    if exact.denominator == 1:
        assert kind(f"{text} {unit}") == exact
    else:
        with pytest.raises(UnitError, match="not a whole number"):
            kind(f"{text} {unit}")


@given(st.text())
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    for kind in quantities.QUANTITIES:
        try:
            kind(text)
        except UnitError:
            continue


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Rate(10_000_000), "10 Mbit/s"),
        (Rate(2_500_000), "2.5 Mbit/s"),
        (Duration(0), "0 ns"),
        (Duration(1_500_000), "1.5 ms"),
        (Duration(90_000_000_000), "90 s"),
        (Size(1470), "1470 B"),
        (Size(65536), "64 KiB"),
        (Size(1_000_000), "1 MB"),
        (Frequency(2_412_000_000), "2412 MHz"),
        (Power(20), "20 dBm"),
    ],
)
def test_quantities_are_shown_in_the_unit_people_use(quantity: Any, text: str) -> None:
    assert quantity.text == text


@pytest.mark.parametrize(
    ("said", "value"), [("1 %", 0.01), ("0.01", 0.01), (0.5, 0.5), (1, 1.0), ("100%", 1.0)]
)
def test_fractions_are_percent_or_plain(said: Any, value: float) -> None:
    assert TypeAdapter(Fraction).validate_python(said) == value


@pytest.mark.parametrize("said", [1, "1"])
def test_a_bare_1_is_no_chance_since_others_write_percent(said: Any) -> None:
    with pytest.raises(ValidationError, match="1 % or all"):
        TypeAdapter(Chance).validate_python(said)


@pytest.mark.parametrize(("said", "value"), [("1 %", 0.01), (0, 0.0), (0.5, 0.5), (1.0, 1.0), ("100 %", 1.0)])
def test_chances_are_fractions(said: Any, value: float) -> None:
    assert TypeAdapter(Chance).validate_python(said) == value


@pytest.mark.parametrize("said", ["101 %", 1.5, -0.1, "x", True, None, float("nan"), float("inf"), "1e99"])
def test_fractions_are_from_0_to_1(said: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Fraction).validate_python(said)


@pytest.mark.parametrize("said", ["10.0.0.1", "10.0.0.1/33", "fd00::1", 1, None, "10.0.0.1/", "::/x"])
def test_addresses_need_their_prefix_length(said: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Address).validate_python(said)


VECTORS = [line.split(",") for line in (DATA / "units.csv").read_text("ascii").split("\n")[1:-1]]
KINDS = {"rate": Rate, "duration": Duration, "size": Size}


@pytest.mark.parametrize(("kind", "text", "base"), VECTORS)
def test_a_scenario_and_the_generator_read_the_same(kind: str, text: str, base: str) -> None:
    """The generator's own test reads the same file (``traffic/src/quantity.rs``)."""
    if base:
        assert KINDS[kind](text) == int(base)
    else:
        with pytest.raises(UnitError):
            KINDS[kind](text)


@pytest.mark.parametrize(("word", "kind"), KINDS.items())
def test_every_unit_is_compared_with_the_generator(word: str, kind: Any) -> None:
    read = {text.strip(" +-.0123456789eE") for name, text, base in VECTORS if name == word and base}
    assert set(kind.UNITS) <= read


def test_the_units_of_results_are_those_of_scenarios_and_more() -> None:
    for kind, base in ((Rate, "bit/s"), (Duration, "ns"), (Size, "B"), (Frequency, "Hz")):
        for unit, factor in kind.UNITS.items():
            value, dimension = figures.UNITS[unit]
            assert dimension == figures.UNITS[base][1]
            assert value == pytest.approx(float(factor) * figures.UNITS[base][0], rel=1e-15)


@pytest.mark.parametrize(("unit", "shown"), [("bit/s", "0 bit/s"), ("ns", "0 s"), ("octets", "0 B")])
def test_nothing_is_shown_in_the_basic_unit(unit: str, shown: str) -> None:
    assert figures.readable(0.0, unit) == shown
