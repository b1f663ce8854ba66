"""Notes on what 802.11 stacks sent in vain."""

from __future__ import annotations

import pytest

from airloom.planning.gate import check
from airloom.runs import stack_radios
from airloom.scenario import Scenario


@pytest.mark.parametrize(
    ("phy", "frames", "said"),
    [
        (
            "802.11a",
            {2412: 1204},
            ["1,204 frames at 2412 MHz", "`phy: 802.11a`", "phy: 802.11bg", "802.11abg"],
        ),
        ("802.11bg", {5180: 2, 5200: 7}, ["9 frames at 5200 MHz, 5180 MHz", "phy: 802.11a has 5 GHz"]),
        ("802.11abg", {5955: 1}, ["no phy has that frequency"]),
        ("802.11a", dict.fromkeys(range(2412, 2462, 5), 1), [" and 7 other frequencies"]),
    ],
)
def test_a_note_names_radio_frequency_and_cure(phy: str, frames: dict[int, int], said: list[str]) -> None:
    note = stack_radios.outside_note("ap:wlan0", phy, frames)
    assert note.startswith("ap:wlan0: ")
    for words in said:
        assert words in note


def test_radios_that_a_program_created_are_named() -> None:
    note = stack_radios.unserved_note("ap", ["radio 3", "radio 4", "radio 5", "radio 6"])
    assert note.startswith("ap: radio 3, radio 4, radio 5 and 1 more of its kernel")


def test_only_wireless_devices_have_a_stack() -> None:
    air = {"channel": 36}
    scenario = {
        "name": "mixed",
        "media": {"air": {"radio": air}},
        "nodes": {
            "a": {"position": ["0 m", "0 m"], "radios": {"wlan0": {}}},
            "b": {"kind": "uml", "position": ["9 m", "0 m"], "radios": {"wlan0": {"device": "wlan"}}},
        },
    }
    (plan,) = check(Scenario.model_validate(scenario)).plans
    assert stack_radios.ports(plan) == {"b:wlan0"}
