"""Runs inside a reservation: what does not fit the grant is refused, and settings are held to it."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import RunError, ScenarioError
from airloom.grid.holding import held, must_have_whole_frame, within_window
from airloom.planning.gate import check

PLAIN = """\
name: lent
duration: 1 s
media: {air: {radio: {channel: 36, power: 10 dBm}}}
nodes:
  a1: {position: [0 m, 0 m], radios: {wlan0: }}
  a2: {position: [3 m, 0 m], radios: {wlan0: }}
"""
SLICED = PLAIN + "slices: {one: {grant: {nodes: [a1, a2], channels: [36, 40], power: 5 dBm}}}\n"
TUNE = "{at: 0.5 s, radio: a1, tune: {channel: 44}}"
MOVE = "{at: 0.5 s, node: a1, position: [9 m, 0 m]}"
WLAN1 = "a2: {position: [3 m, 0 m], radios: {wlan1: }}"
LENT: dict[str, Any] = {
    "slice": "mine",
    "grant": {
        "radios": {"a1": ["wlan0"], "a2": ["wlan0"]},
        "channels": [36, 40],
        "slots": [0],
        "power_dbm": 10.0,
    },
    "positions": {"a1": [0.0, 0.0, 0.0], "a2": [3.0, 0.0, 0.0]},
}


def experiment(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    return check(file)


@pytest.mark.parametrize(("text", "power"), [(PLAIN, 10.0), (SLICED, 5.0)], ids=["plain", "slices"])
def test_radios_are_held_to_the_grant_during_the_run(tmp_path: Path, text: str, power: float) -> None:
    plan = held(experiment(tmp_path, text), LENT).plans[0]
    grants = [radio.grant for radio in plan.media["air"].radios]
    assert [(one.channels, one.power_dbm) for one in grants] == [((36, 40), power)] * 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a2:", "b2:", "the node 'b2' is not granted"),
        ("a2: {position: [3 m, 0 m], radios: {wlan0: }}", WLAN1, "a2:wlan1"),
        ("channel: 36", "channel: 44", "channel 44 is not granted"),
        ("10 dBm", "11 dBm", "11 dBm are not granted"),
        (", power: 10 dBm", "", "16 dBm are not granted"),
        ("[3 m, 0 m]", "[4 m, 0 m]", "'a2' is not where the testbed has it"),
        ("nodes:", f"events: [{TUNE}]\nnodes:", "its channel is not granted"),
        ("nodes:", f"events: [{MOVE}]\nnodes:", "it moves a node of the testbed"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = PLAIN.replace(old, new)
    with pytest.raises(ScenarioError) as found:
        held(experiment(tmp_path, text), LENT)
    assert said in " ".join(str(one) for one in (found.value, *found.value.further))


def test_some_slots_are_not_enough() -> None:
    must_have_whole_frame(LENT, 1)
    with pytest.raises(ScenarioError, match="1 of 4 slots"):
        must_have_whole_frame(LENT, 4)


def test_a_run_ends_when_the_reservation_does_not_stand() -> None:
    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    try:
        with pytest.raises(RunError, match="the reservation ended"), within_window(60, lambda: False):  # noqa: PT012
            end = time.monotonic() + 30
            while not stopped and time.monotonic() < end:
                time.sleep(0.01)
            raise RunError("run.stopped", "stopped by SIGTERM")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped == [signal.SIGTERM]


def test_a_run_that_ends_by_itself_is_left_alone() -> None:
    with within_window(60, lambda: True):
        pass
