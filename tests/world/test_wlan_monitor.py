"""A monitor interface of a guest beside a cell with a station that saves power."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import needs_built
from helpers.wlan import hostapd, joined, needs, said, supplicant, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(180), needs_built]

HOSTAPD = hostapd("lab")
SUPPLICANT = supplicant("lab", 5180)
MONITOR = "ip link set wlan0 down && iw dev wlan0 set type monitor && ip link set wlan0 up"


def test_a_monitor_hears_the_frames_of_others_and_an_access_point_holds_those_of_a_sleeper(
    tmp_path: Path,
) -> None:
    """``watcher`` may hear all, ``deaf`` has a monitor interface on an ordinary radio."""
    needs("iw", "hostapd", "wpa_supplicant", "tcpdump", "tshark")
    nodes: dict[str, dict[str, Any]] = {
        "ap": {"files": {"/etc/hostapd.conf": HOSTAPD}},
        "station": {"files": {"/etc/wpa.conf": SUPPLICANT}},
        "watcher": {"radios": {"wlan0": {"monitor": True}}},
        "deaf": {},
    }
    scenario = {
        "name": "monitor",
        "guests": {"box": {"kind": "uml"}},
        "media": {"air": {"radio": {"device": "wlan"}}},
        "nodes": {
            name: {"inside": "box", "position": [f"{10 * place} m", "0 m"], "radios": {"wlan0": {}}, **more}
            for place, (name, more) in enumerate(nodes.items())
        },
    }
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out", capture=True) as up:
        ap, station = up["ap"], up["station"]
        seen = {}
        for name in ("watcher", "deaf"):
            said(up[name], f"iw reg set US; {MONITOR} && iw dev wlan0 set freq 5180")
            seen[name] = up[name].start("tcpdump -Z root -i wlan0 -n -e -v -l --immediate-mode", name="seen")
        said(ap, "hostapd -B /etc/hostapd.conf")
        said(station, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
        until(lambda: joined(station), "it does not join")
        for one in seen.values():
            until(lambda one=one: "Beacon (lab)" in one.output, "no beacon")  # type: ignore[misc]
        here, there = up.addresses["station"], up.addresses["ap"]
        until(lambda: ap.run(f"ping -c 1 -W 1 {here}").ok, "no answer")
        until(lambda: f"{there} > {here}: ICMP echo request" in seen["watcher"].output, "nothing heard")
        # The station dozes 100 ms after its last frame, and says so.
        said(station, "iw dev wlan0 set power_save on")
        until(lambda: "Pwr Mgmt" in seen["watcher"].output, "it does not doze")
        answers = said(ap, f"ping -q -c 10 -i 0.3 -W 5 {here}")
        assert "10 received" in answers
        with pytest.raises(airloom.RunError, match="the kernel of the node decides channel"):
            up.radio("ap").set(channel=40)
        up.radio("ap").set(power="10 dBm")
    assert "ICMP" not in seen["deaf"].output
    # Beacons announced frames for the station, which has the association identifier 1.
    air = tmp_path / "out/captures/air.channel.36.pcapng"
    announced = "wlan.fc.type_subtype == 0x0008 && wlan.tim.partial_virtual_bitmap == 02"
    command = ["tshark", "-r", str(air), "-Y", announced]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("\n") >= 1
