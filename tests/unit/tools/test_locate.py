"""The example's program that computes a place from signals."""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import REPOSITORY

HOTSPOTS = {"a": (0.0, 0.0, 16.0), "b": (60.0, 0.0, 16.0), "c": (0.0, 50.0, 10.0), "d": (70.0, 60.0, 16.0)}


def load() -> ModuleType:
    path = REPOSITORY / "examples/location/locate.py"
    spec = importlib.util.spec_from_file_location("locate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


locate = load()


@given(x=st.floats(5, 60), y=st.floats(5, 50))
def test_exact_signals_give_the_exact_place(x: float, y: float) -> None:
    signals = {name: locate.expected((x, y), hotspot)[0] for name, hotspot in HOTSPOTS.items()}
    assert math.dist(locate.located(signals, HOTSPOTS), (x, y)) < 0.01


@given(x=st.floats(10, 55), y=st.floats(10, 45))
def test_whole_decibels_give_it_within_some_metres(x: float, y: float) -> None:
    signals = {name: round(locate.expected((x, y), hotspot)[0]) for name, hotspot in HOTSPOTS.items()}
    assert math.dist(locate.located(signals, HOTSPOTS), (x, y)) < 4


def test_two_access_points_are_too_few() -> None:
    with pytest.raises(SystemExit, match="2 known access points are heard"):
        locate.located({"a": -60.0, "b": -60.0, "unknown": -40.0}, HOTSPOTS)


def test_a_scan_is_read_as_iw_prints_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "BSS 02:00:00:00:00:01(on wlan0)\n\tfreq: 5180.0\n\tsignal: -71.00 dBm\n\tSSID: market hall\n"
        "BSS 02:00:00:00:00:02(on wlan0)\n\tsignal: -66.00 dBm\n\tSSID: \n"
        "BSS 02:00:00:00:00:03(on wlan0)\n\tSSID: without a signal\n"
    )

    class Done:
        stdout = text

    monkeypatch.setattr(locate.subprocess, "run", lambda *words, **options: Done())
    assert locate.scanned("wlan0") == {"market hall": -71.0}
