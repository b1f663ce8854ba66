"""The radio part of reports, on made-up radios: nothing was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.report import page, radio, tables
from airloom.report.all_tables import all_tables
from airloom.results import Details, Ledger, RunReader, RunWriter, Verdict
from airloom.results.details import ChannelUse, RadioLink, RadioUse
from helpers import fake_results

SECOND = 1_000_000_000


def use(number: int, channel: int = 36) -> RadioUse:
    return RadioUse(
        name=f"n{number}:wlan0",
        medium="air",
        mhz=5000 + 5 * channel,
        channel=channel,
        place_m=(10.0 * number, 5.0, 0.0),
        airtime_ns={"transmitting": 30, "receiving": 20, "collided": 10, "busy": 5, "idle": 35},
        counts={"sent": 1000, "unanswered": 50},
    )


@pytest.fixture
def run(tmp_path: Path) -> RunReader:
    with RunWriter(tmp_path / "run", scenario="air", seed=1, kinds=("netns",)) as writer:
        times = [0, SECOND, 2 * SECOND]
        for axis, values in (("x", [0.0, 5.0, 10.0]), ("y", [0.0, 0.0, 20.0]), ("z", [0.0, 0.0, 0.0])):
            writer.record("radio", axis, "m", times, values, node="n1:wlan0")
        for metric, unit, values in (("rate", "bit/s", [6e6, 54e6, 12e6]), ("retries", "1", [0.0, 0.5, 0.1])):
            writer.record("radio-link", metric, unit, times, values, node="n1:wlan0>n2:wlan0")
        details = Details(
            radios=(use(1), use(2), use(3, 40)),
            channels=(
                ChannelUse(
                    medium="air", channel=36, mhz=5180, frames=9, airtime_ns={"busy": 40, "overlapped": 5}
                ),
            ),
            radio_links=(
                RadioLink(
                    sender="n1:wlan0",
                    receiver="n2:wlan0",
                    attempts=1000,
                    unanswered=50,
                    rate_bit_s=12_000_000,
                ),
            ),
        )
        ledger = Ledger(delivered=900, dropped={"retry-limit": 7, "queue-full": 2})
        writer.finish(Verdict(status="valid"), ledger, details=details)
    return RunReader(tmp_path / "run")


def test_the_map_shows_ways_and_places(run: RunReader) -> None:
    found = {way.name: way for way in radio.ways(run, run.samples())}
    assert found["n1:wlan0"].moved
    assert found["n1:wlan0"].places.tolist() == [[0, 0], [5, 0], [10, 20]]
    assert not found["n3:wlan0"].moved
    assert found["n3:wlan0"].channel == "channel 40, 5200 MHz"


def test_shares_add_up(run: RunReader) -> None:
    for one in run.details.radios:
        assert sum(radio.shares(one).values()) == pytest.approx(1)


@pytest.mark.slow
def test_every_drawing_says_what_it_shows(run: RunReader) -> None:
    drawings = {one.name: one for one in radio.drawings(run, run.samples())}
    assert set(drawings) == {"radio-map", "radio-airtime", "radio-rate", "radio-retries"}
    assert "3 radios on 2 channels" in drawings["radio-map"].alt
    assert "transmitting 30.0 %" in drawings["radio-airtime"].alt
    assert "6 to 54 Mbit/s" in drawings["radio-rate"].alt
    assert "n1:wlan0 to n2:wlan0: 0 to 50 %" in drawings["radio-retries"].alt
    for one in drawings.values():
        assert one.svg("t").startswith("<svg")


def test_the_page_has_a_chapter_and_tables(run: RunReader) -> None:
    titles = [chapter.title for chapter in page.chapters(run, lambda *_: None)]
    assert "Radio" in titles
    assert "Topology" not in titles, "nodes that only radios join are in the map"
    names = [one.name for one in all_tables(run)]
    assert {"radios", "radio-links"} <= set(names)


def test_a_channel_is_in_use_by_one_or_several(run: RunReader) -> None:
    (row,) = radio.channels(run).rows
    assert [cell.text for cell in row] == ["air", "36", "5180", "40.0 %", "5.0 %", "9"]


def test_the_medium_explains_what_it_lost(run: RunReader) -> None:
    causes = {row[1].text for row in tables.ledger(run).rows}
    assert "retry limit: no acknowledgment after the last permitted transmission" in causes
    assert "queue full" in causes


def test_a_run_without_radios_has_no_such_chapter(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", scenario="wired", seed=1, kinds=("netns",)) as writer:
        writer.finish(Verdict(status="valid"), Ledger(delivered=1), details=fake_results.details(3))
    run = RunReader(tmp_path / "run")
    assert "Radio" not in [chapter.title for chapter in page.chapters(run, lambda *_: None)]
