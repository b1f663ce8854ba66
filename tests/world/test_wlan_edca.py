"""What a guest's 802.11 stack asks its radio for: parameters of EDCA, and requests to send."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest

import airloom
from helpers.kernels import needs_built
from helpers.wlan import frames, hostapd, join, needs, pair, said

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

# Best effort waits for a number of slots up to 1023, 4.6 ms on average; voice for three at most.
HOSTAPD = hostapd("lab", "wmm_ac_be_cwmin=10", "wmm_ac_be_cwmax=10")


def times(capture: Path, wanted: str) -> list[float]:
    """Times of the frames that match a display filter, in seconds."""
    return [float(value) for (value,) in frames(capture, wanted, "frame.time_relative")]


def gap(at: list[float]) -> float:
    """Median of the times between frames, in seconds."""
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(at))


def test_a_station_contends_as_its_access_point_says_and_asks_to_send(tmp_path: Path) -> None:
    needs("iw", "hostapd", "wpa_supplicant", "tshark", "ping")
    with airloom.Lab(pair(HOSTAPD, 5180), out=tmp_path / "out", capture=True) as up:
        sta = up["sta"]
        join(up)
        said(sta, "ping -q -c 1 -W 5 ap")
        # Each packet follows the response to the one before, and waits for the backoff after it.
        said(sta, "ping -q -f -c 60 -s 100 ap")
        said(sta, "ping -q -f -c 60 -s 100 -Q 0xb8 ap")
        phy = said(sta, "iw dev wlan0 info").partition("wiphy ")[2].split()[0]
        said(sta, f"iw phy phy{phy} set rts 600")
        said(sta, "ping -q -c 5 -i 0.2 -W 2 -s 800 ap")
        mac = up.radio("sta").info()["mac"]
    air = tmp_path / "out/captures/air.channel.36.pcapng"
    first = f"wlan.ta == {mac} && wlan.fc.retry == 0"
    best_effort = times(air, f"{first} && wlan.qos.priority == 0 && frame.len < 400")
    voice = times(air, f"{first} && wlan.qos.priority >= 6 && frame.len < 400")
    assert len(best_effort) > 50
    assert len(voice) > 50
    # The median of the backoff is 4.6 ms, with a standard error of 0.6 ms for 60 of them; by default it
    # is 0.1 ms. A busy machine makes gaps longer, so those of voice say nothing.
    assert gap(best_effort) > 2.5e-3
    requests = times(air, f"wlan.fc.type_subtype == 0x001b && wlan.ta == {mac}")
    large = times(air, f"wlan.ta == {mac} && frame.len > 800")
    assert len(requests) >= 5
    # Each long frame follows its request within a millisecond. Of the shorter ones only some do whose
    # transmissions failed: the kernel's rate control protects the fallback rates.
    assert all(any(0 < frame - request < 1e-3 for request in requests) for frame in large)
    early = [request for request in requests if request < max(best_effort + voice)]
    assert len(early) < len(best_effort) / 4
