"""The example ``two-networks`` in short: two guests share one card and join two access points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airloom
from helpers import REPOSITORY
from helpers.kernels import needs_built
from helpers.wlan import joined, needs, said, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(180), needs_built]


def test_two_guests_of_one_card_are_in_two_networks_at_once(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant")
    with airloom.Lab(REPOSITORY / "examples/two-networks.yaml", out=tmp_path / "out") as up:
        pairs = [("work", "office"), ("personal", "flat")]
        for name, network in pairs:
            bssid = up.radio(network).info()["mac"]
            until(lambda name=name, bssid=bssid: joined(up[name], bssid), f"{name} does not join")  # type: ignore[misc]
        for name, network in pairs:
            assert f"SSID: {network}" in said(up[name], "iw dev wlan0 link")
            # The access point sends while the card is elsewhere, too: it holds what it has for the guest,
            # but not what its device has begun to send when the card takes its leave.
            echoes = said(up[network], f"ping -q -c 40 -i 0.05 -W 2 {up.addresses[name]}")
            received = re.search(r"(\d+) received", echoes)
            assert received is not None, echoes
            assert int(received[1]) >= 38, echoes
            # A scan finds the other network's access point, and the guest stays in its own.
            other = next(ssid for _, ssid in pairs if ssid != network)
            mhz = 5240 if other == "flat" else 5180
            found = lambda name=name, other=other, mhz=mhz: (  # noqa: E731
                f"SSID: {other}" in up[name].run(f"iw dev wlan0 scan freq {mhz}", timeout=60).stdout
            )
            until(found, f"{name} does not find {other}")
            assert f"SSID: {network}" in said(up[name], "iw dev wlan0 link")
