"""What ``airloom check`` says of slices that share a channel: what divides them, and how long each waits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from airloom.cli import app
from airloom.planning.gate import check
from airloom.planning.radio import media
from airloom.planning.slices import divisions
from airloom.scenario.model import Scenario
from airloom.scenario.model.media import Slots

MS = 1_000_000
SLOTS = {"frame": 3, "length": "20 ms", "guard": "100 us"}
HOPS = {"dwell": "20 ms", "sets": {"A": {"channels": [36, 44, 52]}}}
CODES = {"spreading": 4, "synchronous": True}
TAKEN = [
    {"at": "1 s", "slice": "one", "grant": {"nodes": []}},
    {"at": "1 s", "slice": "two", "grant": {"nodes": ["n1", "n2"]}},
]


def scenario(medium: dict[str, Any], one: dict[str, Any], two: dict[str, Any], **more: Any) -> dict[str, Any]:
    radios = {"wlan0": {}} if more else {"wlan0": {}, "wlan1": {}}
    nodes = {name: {"position": [f"{x} m", "0 m"], "radios": radios} for name, x in (("n1", 0), ("n2", 1))}
    grants = {
        name: {"grant": {"nodes": ["n1", "n2"], "channels": [36], **grant}}
        for name, grant in (("one", one), ("two", two))
    }
    return {
        "name": "s", "duration": "2 s", "media": {"air": medium}, "nodes": nodes, "slices": grants, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (scenario({"slots": SLOTS}, {"slots": [0, 1]}, {"slots": [2]}), divisions.SLOTS),
        (scenario({"codes": CODES}, {"code": 1}, {"code": 2}), divisions.CODES),
        (
            scenario(
                {"hops": HOPS},
                {"channels": [36, 44, 52], "hops": {"set": "A", "sequence": 0}},
                {"channels": [36, 44, 52], "hops": {"set": "A", "sequence": 1}},
            ),
            divisions.HOPS,
        ),
        (scenario({}, {}, {"nodes": []}, events=TAKEN), divisions.TURNS),
        (scenario({}, {}, {"channels": [40]}), None),
        (scenario({}, {"airtime_weight": 1}, {"airtime_weight": 2}), None),
    ],
    ids=["slots", "codes", "hops", "turns", "other channels", "one channel"],
)
def test_what_divides_slices_of_one_channel_is_named(said: dict[str, Any], found: str | None) -> None:
    named = divisions.over_time(check(Scenario.model_validate(said)).plans[0])
    expected = [] if found is None else [divisions.Division("one", "two", (36, 36), found)]
    assert named == expected


@pytest.mark.parametrize(
    ("own", "wait"),
    [([0], 40.1), ([0, 1], 20.1), ([2], 40.1), ([0, 2], 20.1), ([0, 1, 2], 0)],
    ids=repr,
)
def test_the_longest_wait_is_that_of_the_largest_gap(own: list[int], wait: float) -> None:
    assert divisions.longest_wait(media.slots(Slots(**SLOTS), own)) == round(wait * MS)


def test_slots_waits_hops_and_codes_are_in_the_table_of_grants(tmp_path: Any) -> None:
    def shown(said: dict[str, Any]) -> str:
        path = tmp_path / "s.yaml"
        path.write_text(json.dumps(said))
        done = CliRunner().invoke(app, ["check", str(path)], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done.output

    text = shown(scenario({"slots": SLOTS}, {"slots": [0, 1]}, {"slots": [2]}))
    for words in ("0, 1 of 3", "20.1 ms", "2 of 3", "40.1 ms"):
        assert words in text
    assert "Slices: one and two share channel 36, with different time slots" in text
    assert "no channel of one overlaps" not in text
    hops = {"channels": [36, 44, 52], "hops": {"set": "A", "sequence": 1}}
    text = shown(scenario({"hops": HOPS, "codes": CODES}, hops, {"channels": [60], "code": 2}))
    assert "A, sequence 1, every 20 ms" in text
    assert "code" in text
    assert "no channel of one overlaps" in shown(scenario({}, {}, {"channels": [40]}))
