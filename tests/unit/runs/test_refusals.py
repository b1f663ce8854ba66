"""Settings that the grant of a slice forbids are refused and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.errors import RunError
from airloom.planning.gate import check
from airloom.runs import radio_control
from airloom.runs.radio_requests import Change
from airloom.runs.refusals import MOST, Refusals
from airloom.runs.slice_monitor import violations

SLICES = """\
name: slices
duration: 1 s
media: {air: {radio: {channel: 36}}}
nodes: {n1: {position: [0 m, 0 m], radios: {wlan0: }}}
slices: {one: {grant: {nodes: [n1], channels: [36, 40], power: 10 dBm}}}
"""


class World:
    """A world whose engine records no transmission."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.refusals = Refusals()
        self.times = 0
        self.set: list[Any] = []

    def now(self) -> int:
        self.times += 1
        return self.times

    def radios(self) -> list[dict[str, Any]]:
        radio = self.plan.media["air"].radios[0]
        return [{"port": radio.port, "settings": {**radio.settings, "power_dbm": 10.0}}]

    def set_radio(self, port: str, change: Any) -> None:
        self.set.append(change)

    def violations(self) -> dict[str, Any]:
        return {"found": [], "unrecorded": 2}


@pytest.fixture
def world(tmp_path: Path) -> Any:
    file = tmp_path / "slices.yaml"
    file.write_text(SLICES)
    return World(check(file).plans[0])


def asked(world: Any, key: str, value: Any) -> None:
    radio_control.answer(world, "n1-one", Change(do="set", key=key, value=value))


def test_what_the_grant_forbids_is_recorded_with_the_number_of_attempts(world: Any) -> None:
    asked(world, "channel", 40)
    for key, value in (("channel", 44), ("channel", 44), ("power", "20 dBm")):
        with pytest.raises(RunError):
            asked(world, key, value)
    found, unrecorded = violations(world)
    assert [(one.what, one.slice, one.radio, one.channel, one.frames) for one in found] == [
        ("setting", "one", "n1-one:wlan0", 44, 2),
        ("setting", "one", "n1-one:wlan0", 36, 1),
    ]
    assert found[0].t_ns < found[0].until_ns < found[1].t_ns
    assert (world.set, unrecorded) == ([{"channel": 40}], 2)


def test_what_is_no_setting_at_all_is_no_violation(world: Any) -> None:
    with pytest.raises(RunError):
        asked(world, "colour", "red")
    assert violations(world)[0] == ()


def test_attempts_beyond_the_records_are_counted() -> None:
    refusals = Refusals()
    for number in range(MOST + 3):
        refusals.add("one", "n1:wlan0", number, number)
    found, unrecorded = refusals.found()
    assert (len(found), unrecorded) == (MOST, 3)
