"""The rates of 802.11b and 802.11g together, as stacks of guests use them at 2.4 GHz."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import needs_built
from helpers.wlan import joined, needs, said, supplicant, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

HOSTAPD = "interface=wlan0\ndriver=nl80211\nssid=lab\nhw_mode=g\nchannel=6\nwmm_enabled=1\n"


def rates(capture: Path, wanted: str) -> set[tuple[float, bool]]:
    """Rates in Mbit/s of the frames that match a display filter, and whether they are OFDM."""
    command = ["tshark", "-r", str(capture), "-Y", wanted, "-T", "fields"]
    command += ["-e", "radiotap.datarate", "-e", "radiotap.channel.flags.ofdm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    fields = (line.split() for line in done.stdout.splitlines())
    return {(float(rate), flag in ("1", "True")) for rate, flag in fields}


def test_beacons_are_sent_with_dsss_and_data_with_ofdm(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant", "tshark", "ping")
    scenario = {
        "name": "rates",
        "kind": "uml",
        "media": {"air": {"radio": {"device": "wlan", "phy": "802.11bg"}}},
        "guests": {"box": {"kind": "uml"}},
        "nodes": {
            "ap": {"position": ["0 m", "0 m"], "files": {"/etc/hostapd.conf": HOSTAPD}},
            "sta": {"position": ["5 m", "0 m"], "files": {"/etc/wpa.conf": supplicant("lab", 2437)}},
        },
    }
    for node in scenario["nodes"].values():  # type: ignore[attr-defined]
        node |= {"inside": "box", "radios": {"wlan0": {}}}
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out", capture=True) as up:
        ap, sta = up["ap"], up["sta"]
        said(ap, "hostapd -B /etc/hostapd.conf")
        said(sta, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
        until(lambda: joined(sta), "the station does not join")
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
