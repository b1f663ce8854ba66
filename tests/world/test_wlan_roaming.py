"""The examples ``roaming`` and ``dual-band`` in short: a WPA2 station moves between two access points of a
wired network, and between the bands of one."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from helpers import REPOSITORY
from helpers.kernels import needs_built
from helpers.wlan import joined, needs, said, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(180), needs_built]


def test_a_station_roams_by_signal_and_the_wired_network_follows(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant")
    # It stands still until the test moves it.
    still = ("nodes.walker.mobility=null", "nodes.walker.position=[5 m, 0 m]")
    with airloom.Lab(REPOSITORY / "examples/roaming.yaml", overrides=still, out=tmp_path / "out") as up:
        walker, server = up["walker"], up["server"]
        first, second = (up.radio(name).info()["mac"] for name in ("ap1", "ap2"))
        address = up.addresses["walker"]
        until(lambda: joined(walker, first), "it does not join the nearest access point")
        until(lambda: server.run(f"ping -c 1 -W 1 {address}").ok, "the server does not reach it")
        # Both are in range half-way, the second one is better here.
        walker.move("40 m", "0 m")
        until(lambda: joined(walker, second), "it does not roam")
        # Out of range of the first.
        walker.move("58 m", "0 m")
        until(lambda: server.run(f"ping -c 1 -W 1 {address}").ok, "the server does not reach it any more")
        assert second in said(walker, "iw dev wlan0 link")
        # It roamed while the first access point was in range, and was without one at no time.
        log = next((tmp_path / "out").rglob("supplicant.log")).read_text()
        assert "CTRL-EVENT-DISCONNECTED" not in log


def test_a_station_changes_the_band_of_its_access_point_by_signal(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant")
    still = ("nodes.walker.mobility=null", "nodes.walker.position=[5 m, 0 m]")
    with airloom.Lab(REPOSITORY / "examples/dual-band.yaml", overrides=still, out=tmp_path / "out") as up:
        walker, server = up["walker"], up["server"]
        address = up.addresses["walker"]

        def on(mhz: int) -> bool:
            return joined(walker) and f"freq: {mhz}" in walker.run("iw dev wlan0 link").stdout

        until(lambda: on(5180), "it does not join at 5 GHz near the access point")
        until(lambda: server.run(f"ping -c 1 -W 1 {address}").ok, "the server does not reach it")
        walker.move("45 m", "0 m")
        until(lambda: on(2437), "it does not change to 2.4 GHz")
        until(lambda: server.run(f"ping -c 1 -W 1 {address}").ok, "the server does not reach it any more")
        log = next((tmp_path / "out").rglob("supplicant.log")).read_text()
        assert "CTRL-EVENT-DISCONNECTED" not in log
