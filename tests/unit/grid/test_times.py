"""Lengths and times on the command line of the grid manager."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from airloom.errors import ScenarioError
from airloom.grid import times
from airloom.grid.lengths import WindowLength

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("2 h", 2),
        ("90 days", 2160),
        ("1 day", 24),
        ("3 d", 72),
        ("1.5 d", 36),
        ("2 hours", 2),
        ("2Days ", 48),
    ],
)
def test_windows_are_long(text: str, hours: int) -> None:
    assert WindowLength(text) == hours * HOUR


def test_the_length_is_that_of_the_window() -> None:
    begin, end = times.window("2027-03-01T00:00:00+00:00", "3 d")
    assert (begin, end) == ("2027-03-01T00:00:00Z", "2027-03-04T00:00:00Z")


def test_limits_are_told_in_days() -> None:
    assert WindowLength("2160 h").text == "90 d"


@pytest.mark.parametrize("text", ["3", "3 fortnights", "d", "-1 d", "3 m"])
def test_what_is_no_length_is_refused_with_the_units(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        times.window(None, text)
    assert caught.value.where == "--for"
    assert caught.value.code.startswith("unit.")


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("UTC", "2027-01-15 08:00:00 UTC"),
        ("CET-1CEST,M3.5.0,M10.5.0", "2027-01-15 09:00:00 CET\n2027-01-15 08:00:00 UTC"),
        ("<+0530>-5:30", "2027-01-15 13:30:00 UTC+05:30\n2027-01-15 08:00:00 UTC"),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_times_are_local_and_utc(said: str) -> None:
    assert times.shown("2027-01-15T08:00:00Z") == said


@pytest.mark.parametrize(
    ("zone", "lines"),
    [
        ("UTC", ["2027-01-15 08:00 to", "2027-01-18 09:30 UTC"]),
        (
            "CET-1CEST,M3.5.0,M10.5.0",
            ["2027-01-15 09:00 to", "2027-01-18 10:30 CET", "2027-01-15 08:00 to", "2027-01-18 09:30 UTC"],
        ),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_a_span_fits_a_narrow_column(lines: list[str]) -> None:
    assert times.span("2027-01-15T08:00:00Z", "2027-01-18T09:30:00Z").splitlines() == lines
