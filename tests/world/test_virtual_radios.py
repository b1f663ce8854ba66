"""Radios in virtual time: 802.11 timing to the microsecond, with real kernels and programs."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from airloom.host import pcap
from airloom.nodes.virtual_time import TIME_OF_DAY
from airloom.results import details
from helpers.kernels import needs_virtual_time
from helpers.virtual import assert_same, run

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

AIR = {"air": {"radio": {"phy": "802.11a", "channel": 36, "rate": "6 Mbit/s"}}}
SLOT, SIFS, DIFS, ACK = 9.0, 16.0, 34.0, 44.0
"""Of 802.11a, in us; an acknowledgment at 6 Mbit/s is a preamble of 20 us and 6 symbols."""


def frame(octets: int) -> float:
    """Time of a data frame at 6 Mbit/s in us: a preamble, and symbols of 24 bits (IEEE 802.11, 17.3.2)."""
    bits = 16 + 8 * octets + 6
    return 20.0 + 4.0 * -(-bits // 24)


def node(x: float, y: float = 0.0) -> dict[str, Any]:
    return {"radios": {"wlan0": {}}, "position": [f"{x} m", f"{y} m"]}


@needs_virtual_time
def test_a_round_trip_over_a_radio_has_its_time_to_the_microsecond(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "links": [],
        "media": AIR,
        "nodes": {"h1": node(0), "h2": node(10)},
        "measurements": [
            {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 20, "interval": "100 ms"}}
        ],
    }
    found = run(tmp_path / "one", capture=True, **parts)
    assert found["rtt.loss"] == 0
    said = (tmp_path / "one/measurements/rtt/client.out").read_text()
    trips = [1000 * float(trip) for trip in re.findall(r"time=([\d.]+)", said)]
    # 84 octets of IP, 8 of LLC, 28 of the frame. The answer follows an acknowledgment, waits for DIFS and
    # counts a backoff of 0 to 15 slots down; ping shows three digits, and reads its clock.
    least = 2 * frame(84 + 8 + 28) + SIFS + ACK + DIFS
    slots = [(trip - least) / SLOT for trip in trips[1:]]
    assert len(slots) == 19
    assert all(-0.1 < count < 15.2 for count in slots), slots
    assert all(abs(count - round(count)) < 0.2 for count in slots), slots
    assert len({round(count) for count in slots}) > 5, "backoffs are drawn"
    run(tmp_path / "two", capture=True, **parts)
    assert_same(tmp_path / "one", tmp_path / "two")


@needs_virtual_time
def test_five_saturated_stations_share_the_channel_as_in_the_standard(tmp_path: Path) -> None:
    stations = [f"s{number}" for number in range(5)]
    # All are equally loud at the access point, so that no frame survives a collision.
    angles = [2 * math.pi * number / 5 for number in range(5)]
    ring = [node(round(5 * math.cos(angle), 3), round(5 * math.sin(angle), 3)) for angle in angles]
    # Neighbours first: a request for an address is not repeated after a collision.
    hello = [
        {"name": f"p-{name}", "ping": {"from": name, "to": "ap", "count": 1, "at": f"{20 * number} ms"}}
        for number, name in enumerate(stations)
    ]
    flows = [
        {
            "name": name,
            "traffic": {"from": name, "to": "ap", "rate": "3 Mbit/s", "duration": "2 s", "at": "500 ms"},
        }
        for name in stations
    ]
    parts: dict[str, Any] = {
        "links": [],
        "media": AIR,
        "nodes": {"ap": node(0), **dict(zip(stations, ring, strict=True))},
        "measurements": [*hello, *flows],
    }
    run(tmp_path / "one", capture=True, **parts)
    zero = TIME_OF_DAY + details.read(tmp_path / "one/details.json").calendar_ns
    frames = pcap.frames(tmp_path / "one/captures/ap.wlan0.pcapng")
    data = [one for one in frames if one.length == 1512 and 700e6 <= one.at - zero < 2400e6]
    # ns-3.44 and a Monte Carlo of DCF have 4.613 Mbit/s of payload for five stations at 6 Mbit/s.
    assert len(data) * 1470 * 8 / 1.7 == pytest.approx(4.613e6, rel=0.03)
    run(tmp_path / "two", capture=True, **parts)
    assert_same(tmp_path / "one", tmp_path / "two")


HOSTAPD = """\
interface=wlan0
driver=nl80211
ssid=lab
country_code=US
hw_mode=a
channel=36
wmm_enabled=1
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase=correct horse
"""
SUPPLICANT = 'country=US\nnetwork={\n  ssid="lab"\n  scan_freq=5180\n  psk="correct horse"\n}\n'


@needs_virtual_time
@pytest.mark.skipif(
    shutil.which("hostapd") is None or shutil.which("wpa_supplicant") is None,
    reason="apt-get install hostapd wpasupplicant",
)
def test_a_station_associates_with_wpa2_the_same_way_in_each_run(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "links": [],
        "kind": "uml",
        "media": {"air": {"radio": {"device": "wlan"}}},
        "nodes": {
            "ap": {**node(0), "files": {"/etc/hostapd.conf": HOSTAPD}},
            "station": {**node(10), "files": {"/etc/wpa.conf": SUPPLICANT}},
        },
        "programs": [
            {
                "node": "ap",
                "run": "hostapd /etc/hostapd.conf",
                "until_end": True,
                "ready": {"log": "AP-ENABLED"},
            },
            {
                "node": "station",
                "run": "wpa_supplicant -i wlan0 -c /etc/wpa.conf",
                "until_end": True,
                "ready": {"log": "CTRL-EVENT-CONNECTED"},
            },
        ],
        "measurements": [
            {"name": "rtt", "ping": {"from": "station", "to": "ap", "count": 5, "interval": "200 ms"}}
        ],
    }
    assert run(tmp_path / "one", capture=True, **parts)["rtt.loss"] == 0
    run(tmp_path / "two", capture=True, **parts)
    assert_same(tmp_path / "one", tmp_path / "two")
    # Nonces of the handshake and the keys follow from the seed.
    run(tmp_path / "other", capture=True, **parts, seed=2)
    name = "captures/station.wlan0.on.the.air.pcapng"
    first, other = ([f.octets for f in pcap.frames(tmp_path / run_ / name)] for run_ in ("one", "other"))
    assert first != other
