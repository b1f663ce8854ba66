"""The rates of 802.11b and 802.11g together, as stacks of guests use them at 2.4 GHz."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from helpers.kernels import needs_built
from helpers.wlan import frames, join, needs, pair, said

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

HOSTAPD = "interface=wlan0\ndriver=nl80211\nssid=lab\nhw_mode=g\nchannel=6\nwmm_enabled=1\n"


def rates(capture: Path, wanted: str) -> set[tuple[float, bool]]:
    """Rates in Mbit/s of the frames that match a display filter, and whether they are OFDM."""
    found = frames(capture, wanted, "radiotap.datarate", "radiotap.channel.flags.ofdm")
    return {(float(rate), flag in ("1", "True")) for rate, flag in found}


def test_beacons_are_sent_with_dsss_and_data_with_ofdm(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant", "tshark", "ping")
    scenario = pair(HOSTAPD, 2437, phy="802.11bg")
    with airloom.Lab(scenario, out=tmp_path / "out", capture=True) as up:
        sta = up["sta"]
        join(up)
        said(sta, "ping -q -c 300 -i 0.01 -s 1000 -W 2 ap")
        bitrate = said(sta, "iw dev wlan0 link").partition("tx bitrate: ")[2].split()[0]
    air = tmp_path / "out/captures/air.channel.6.pcapng"
    # The lowest rates that the two stacks choose for beacons, and the highest for data.
    assert rates(air, "wlan.fc.type_subtype == 0x0008") == {(1.0, False)}
    data = rates(air, "wlan.fc.type == 2 && frame.len > 1000")
    assert {(rate, ofdm) for rate, ofdm in data if rate not in (1, 2, 5.5, 11)} <= {
        (rate, True) for rate in (6, 9, 12, 18, 24, 36, 48, 54)
    }
    assert all(ofdm == (rate not in (1, 2, 5.5, 11)) for rate, ofdm in data)
    assert max(data) == (54.0, True)
    assert float(bitrate) in {rate for rate, _ in rates(air, "wlan.fc.type == 2")}
    # Responses are sent in the modulation of the frame.
    assert {ofdm for _, ofdm in rates(air, "wlan.fc.type_subtype == 0x001d")} == {True, False}
