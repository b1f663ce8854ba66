"""The example ``roaming`` in short: a WPA2 station moves between two access points of a wired network."""

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
