"""Channels and the default power: what Python reckons is what the engine does."""

from __future__ import annotations

from typing import Any

import pytest

from airloom import _engine
from airloom.planning.radio import channels
from airloom.planning.radio.media import DEFAULT_POWER
from airloom.scenario.model.media import Radio, Tuning
from airloom.units.quantities import Frequency

TWO = range(1, 15)
FIVE = (36, 40, 44, 48, 52, 64, 100, 144, 149, 165, 177)


def tuned(phy: str, channel: int) -> dict[str, Any]:
    """A radio of the engine's on a channel."""
    engine = _engine.Engine(1)
    engine.add_memory_port("a:wlan0")
    engine.add_medium("air", {})
    rate = {"mcs": 0} if phy == channels.HT else "minstrel"
    settings = {"phy": phy, "channel": channel, "mac": [2, 0, 0, 0, 0, 1], "rate": rate}
    engine.add_radio("air", "a:wlan0", settings, {"static": {"x": 0.0}}, "a")
    (radio,) = engine.radios()
    return radio


@pytest.mark.parametrize(
    ("phy", "number"),
    [("802.11a", number) for number in FIVE]
    + [("802.11b", number) for number in TWO]
    + [(phy, number) for phy in ("802.11g", "802.11bg") for number in TWO if number < 14]
    + [(phy, number) for phy in ("802.11abg", "802.11n") for number in (*TWO, *FIVE)],
)
def test_a_channel_has_one_frequency(phy: str, number: int) -> None:
    mhz = tuned(phy, number)["mhz"]
    assert channels.mhz_of(number) == mhz
    assert channels.number_of(Frequency(f"{mhz} MHz"), phy) == number
    assert channels.number_of(number, phy) == number


@pytest.mark.parametrize("phy", ["802.11a", "802.11abg", "802.11b", "802.11bg", "802.11g", "802.11n"])
@pytest.mark.parametrize("frequency", ["5181 MHz", "2412.5 MHz", "1 GHz", "2413 MHz"])
def test_between_channels_there_is_none(phy: str, frequency: str) -> None:
    assert channels.number_of(Frequency(frequency), phy) == 0


@pytest.mark.parametrize("phy", ["802.11a", "802.11abg", "802.11b", "802.11bg", "802.11g", "802.11n"])
def test_the_default_channel_exists(phy: str) -> None:
    assert tuned(phy, channels.default_number(phy))["settings"]["channel"] == channels.default_number(phy)


def test_the_default_power_is_the_engines_and_the_documented_one() -> None:
    assert tuned("802.11a", 36)["settings"]["power_dbm"] == float(DEFAULT_POWER)
    for model in (Radio, Tuning):
        assert DEFAULT_POWER.text in str(model.model_fields["power"].description)
