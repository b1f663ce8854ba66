"""Noise of a testbed: what admission counts on is what the medium of a shared laboratory has."""

from __future__ import annotations

from math import log10

import pytest

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.grid.admission import Held, conflict
from airloom.grid.grants import Grant
from airloom.grid.inventory import MEDIUM, checked, radio
from airloom.grid.isolation import Isolation
from airloom.planning.radio import media
from airloom.scenario.source import Source

MS = 1_000_000
THERMAL = 10 * log10(1.380649e-23 * 290 * 20e6 * 1e3) + 7
"""Noise of a receiver in dBm: 20 MHz at 290 K, noise figure 7 dB."""
PAIRS = """\
name: pairs
medium:
  propagation: {model: log-distance, exponent: 3.0, reference: 1 m, loss: 46.7 dB}
  noise: [NOISE]
channels: [36, 40]
nodes:
  a: {position: [0 m, 0 m]}
  b: {position: [1 m, 0 m]}
  c: {position: [21 m, 0 m]}
  d: {position: [22 m, 0 m]}
"""
LOUD = "{position: [11 m, 0 m], power: 12 dBm, channel: 36}"
POWER = 10.0
NOISE_AT_B = 12 - 46.7 - 30
"""dBm over 10 m."""


def isolation(noise: str = "") -> Isolation:
    return Isolation(checked(Source.of_text(PAIRS.replace("NOISE", noise), "pairs.yaml")))


def refused(bed: Isolation, channel: int = 36) -> str | None:
    left = Held("1", "one", 0, 10, Grant({"a": ("wlan0",), "b": ("wlan0",)}, (channel,), (0,), POWER))
    return conflict(bed, "two", Grant({"c": ("wlan0",), "d": ("wlan0",)}, (channel,), (0,), POWER), left)


def rates(bed: Isolation) -> list[float]:
    """Mbit/s of payloads at b and at d, while a and c send without a pause at 36 Mbit/s."""
    testbed = bed.testbed
    engine = _engine.Engine(1)
    engine.add_medium(MEDIUM, media.medium(testbed.inventory.medium, []))
    for noise in testbed.inventory.medium.noise:
        engine.add_noise(MEDIUM, media.noise(noise), media.motion(noise), "noise 0")
    macs = {}
    for number, name in enumerate(testbed.nodes):
        settings, motion = radio(testbed, name, number)
        cell = {"ad-hoc": {"ssid": "left" if name in "ab" else "right", "beacon_ns": media.BEACON}}
        own = {"rate": {"constant": 36_000_000}, "power_dbm": POWER, "channel": 36, "membership": cell}
        engine.add_memory_port(name)
        engine.add_radio(MEDIUM, name, {**settings, **own}, motion, name)
        macs[name] = bytes(settings["mac"])  # type: ignore[call-overload]
    for at in range(0, 1000 * MS, MS // 3):
        for sender, receiver in (("a", "b"), ("c", "d")):
            engine.offer(sender, at, macs[receiver] + macs[sender] + b"\x08\x00" + bytes(1498))
    arrived = [port for port, *_ in engine.step(1000 * MS)]
    return [arrived.count(port) * 1470 * 8 / 1e6 for port in "bd"]


def test_noise_is_that_of_the_receiver_without_sources() -> None:
    for noise in isolation().noise_dbm.values():
        assert noise == pytest.approx([THERMAL] * 4, abs=0.01)


def test_a_source_adds_the_share_of_its_power_in_each_channel() -> None:
    noise = isolation(LOUD).noise_dbm
    assert noise[36][1] == pytest.approx(NOISE_AT_B, abs=0.01)
    assert noise[40] == pytest.approx([THERMAL] * 4, abs=0.01)
    wide = "{position: [11 m, 0 m], power: 12 dBm, band: [5.17 GHz, 5.21 GHz]}"
    for at in isolation(wide).noise_dbm.values():
        assert at[1] == pytest.approx(NOISE_AT_B - 10 * log10(2), abs=0.02)


def test_slices_that_a_source_keeps_apart_get_what_they_get_alone() -> None:
    """Over 20 m they hear each other with -75.7 dBm, 11 dB below the noise of -64.7 dBm; without the
    source they are granted one channel in turn only, and contend for it.
    """
    quiet, loud = isolation(), isolation(LOUD)
    assert "on channel 36 slices would disturb each other" in (refused(quiet) or "")
    assert refused(loud) is None
    assert "on channel 40" in (refused(loud, 40) or "")
    apart = rates(loud)
    assert apart == pytest.approx([23.08] * 2, rel=0.06)
    assert sum(rates(quiet)) < 0.7 * sum(apart)


@pytest.mark.parametrize(
    "sometimes",
    [
        "at: 1 s",
        "until: 60 s",
        "on: 5 ms, off: 5 ms",
        "mobility: {model: velocity, velocity: [1 m/s, 0 m/s]}",
    ],
)
def test_a_source_that_goes_isolates_nothing(sometimes: str) -> None:
    bed = isolation(LOUD.replace("}", f", {sometimes}}}"))
    assert bed.noise_dbm[36] == pytest.approx([THERMAL] * 4, abs=0.01)
    assert refused(bed) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAIRS.replace("NOISE", "") + "noise: -50 dBm\n", "pairs.yaml:11:1 noise: the noise is computed"),
        (
            PAIRS.replace("NOISE", "{position: [0 m, 0 m], power: 12 dBm}"),
            "medium.noise[0]: the noise has no band",
        ),
        (PAIRS.replace("NOISE", LOUD.replace("12 dBm", "130 dBm")), "medium.noise[0]: noise.power_dbm = 130"),
    ],
    ids=["typed", "without a band", "too strong"],
)
def test_noise_that_cannot_be_is_refused_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as found:
        checked(Source.of_text(text, "pairs.yaml"))
    assert said in str(found.value)
