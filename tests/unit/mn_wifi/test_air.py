"""What calls of Mininet-WiFi mean for a medium."""

from __future__ import annotations

import math

import pytest

from airloom import _engine
from airloom.mininet.errors import Misused, Unsupported
from airloom.mn_wifi import air
from airloom.mn_wifi.radio import channel_of, mhz_of, phy_of, place_of, power_for


def test_places_are_metres_in_text() -> None:
    assert place_of("10,20,0") == (10.0, 20.0, 0.0)
    assert place_of("1.5, -2") == (1.5, -2.0, 0.0)
    assert place_of((1, 2, 3)) == (1.0, 2.0, 3.0)
    for wrong in ("", "1", "a,b", "1,2,3,4", "nan,0,0"):
        with pytest.raises(Misused):
            place_of(wrong)


def test_layers_and_channels() -> None:
    assert (phy_of("g"), phy_of("a")) == ("802.11g", "802.11a")
    with pytest.raises(Unsupported, match=r"802\.11a, b and g"):
        phy_of("ac")
    assert (channel_of(None, "802.11g"), channel_of(None, "802.11a"), channel_of("6", "802.11g")) == (
        1,
        36,
        6,
    )
    assert (mhz_of(1), mhz_of(13), mhz_of(14), mhz_of(36)) == (2412, 2472, 2484, 5180)
    with pytest.raises(Misused):
        channel_of("x", "802.11g")


def test_a_range_is_where_a_frame_is_just_detected() -> None:
    """The engine receives -82 dBm at that distance, by its own formula."""
    power = power_for(50.0, 6, 3.5, 5.0)
    engine = _engine.Engine(1)
    engine.add_medium("air", air.propagation({"model": "logDistance", "exp": 3.5}))
    for number, x in enumerate((0.0, 50.0)):
        engine.add_memory_port(f"n{number}:w")
        settings = {"mac": [2, 0, 0, 0, 0, number], "phy": "802.11g", "channel": 6, "power_dbm": power}
        motion = {"static": {"x": x, "y": 0.0, "z": 0.0}}
        engine.add_radio("air", f"n{number}:w", {**settings, "gain_dbi": 5.0}, motion, f"n{number}")
    assert engine.signal("n0:w", "n1:w") == pytest.approx(-82.0, abs=0.01)


@pytest.mark.parametrize("model", ["friis", "logDistance", "logNormalShadowing", "twoRayGround", "ITU"])
def test_each_propagation_is_one_of_the_engine(model: str) -> None:
    _engine.check_medium("air", air.propagation({"model": model}))


def test_others_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="young"):
        air.propagation({"model": "young"})
    with pytest.raises(Misused, match="exp"):
        air.propagation({"exp": 50})
    with pytest.raises(Unsupported, match="TruncatedLevyWalk"):
        air.motion({"model": "TruncatedLevyWalk"}, 0)
    with pytest.raises(Misused, match="no size"):
        air.motion({"model": "RandomWalk", "min_x": 10, "max_x": 10}, 0)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0, 3.0])
def test_fading_has_the_spread_in_decibels(spread: float) -> None:
    found = air.fading(spread)
    k = 10 ** (found["rician"]["k_db"] / 10)
    assert 10 / math.log(10) * math.sqrt(2 * k + 1) / (k + 1) == pytest.approx(spread, rel=1e-3)
    _engine.check_medium("air", {"fading": found})


def test_no_fading_and_the_widest() -> None:
    assert air.fading(0) == "none"
    assert air.fading(6) == "rayleigh"


@pytest.mark.parametrize("model", ["RandomWalk", "RandomWayPoint", "RandomDirection", "GaussMarkov"])
def test_each_motion_is_one_of_the_engine(model: str) -> None:
    _engine.check_motion(
        "sta1", air.motion({"model": model, "max_x": 50, "max_y": 20, "min_v": 1, "max_v": 2}, 0)
    )


def test_a_path_is_repeated_and_reversed() -> None:
    points = [(4.0, (10.0, 0.0, 0.0)), (2.0, (0.0, 0.0, 0.0))]
    once = air.path(points, 10**9, 1, False)
    assert [(at, place["x"]) for at, place in once["path"]] == [(0, 0.0), (3 * 10**9, 0.0), (5 * 10**9, 10.0)]
    twice = [(at, place["x"]) for at, place in air.path(points, 0, 2, True)["path"]]
    assert twice == [(0, 0.0), (2 * 10**9, 0.0), (4 * 10**9, 10.0), (4 * 10**9 + 1, 10.0), (6 * 10**9, 0.0)]
    _engine.check_motion("sta1", air.path(points, 0, 3, True))
