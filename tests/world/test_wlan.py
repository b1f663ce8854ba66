"""Radios that are wireless devices of guests: iw, hostapd and wpa_supplicant over one emulated medium."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import needs_built
from helpers.wlan import hostapd, joined, needs, said, supplicant, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

HOSTAPD = hostapd("lab", "wpa=2", "wpa_key_mgmt=WPA-PSK", "rsn_pairwise=CCMP", "wpa_passphrase=correct horse")
SUPPLICANT = supplicant("lab", 5180, 'psk="correct horse"')


def lab(
    tmp_path: Path, nodes: dict[str, Any], errors: list[dict[str, Any]] | None = None, **more: Any
) -> airloom.Lab:
    """Nodes side by side, 10 m apart, whose radios are wireless devices of their kernels."""
    scenario = {
        "name": "wlan",
        "kind": "uml",
        "media": {"air": {"radio": {"device": "wlan"}, "frame_errors": errors or []}},
        "nodes": {
            name: {"position": [f"{10 * place} m", "0 m"], "radios": {"wlan0": {}}, **said}
            for place, (name, said) in enumerate(nodes.items())
        },
    }
    guests = {said["inside"]: {"kind": "uml"} for said in nodes.values() if "inside" in said}
    if guests:
        scenario["guests"] = guests
    return airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out", **more)


def reached(node: Any, address: str) -> bool:
    return bool(node.run(f"ping -c 4 -i 0.3 -W 2 {address}", timeout=60).ok)


def station(node: Any) -> dict[str, str]:
    """What iw tells of the only station of a node."""
    lines = [line.partition(":") for line in said(node, "iw dev wlan0 station dump").splitlines()[1:]]
    return {key.strip(): value.strip() for key, _, value in lines}


def test_stations_join_an_access_point_with_wpa2_and_iw_agrees_with_the_medium(tmp_path: Path) -> None:
    """The access point has a guest of its own; two stations share one."""
    needs("iw", "hostapd", "wpa_supplicant", "tshark")
    stations = {name: {"inside": "box", "files": {"/etc/wpa.conf": SUPPLICANT}} for name in ("s1", "s2")}
    nodes = {"ap": {"files": {"/etc/hostapd.conf": HOSTAPD}}, **stations}
    errors = [{"from": "s1", "to": "ap", "rate": 0.25}]
    with lab(tmp_path, nodes, errors, capture=True) as up:
        ap, first, second = up["ap"], up["s1"], up["s2"]
        assert "type managed" in said(first, "iw dev")
        said(ap, "hostapd -B /etc/hostapd.conf")
        for node in (first, second):
            said(node, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
        for node in (first, second):
            until(lambda node=node: joined(node), f"{node.name} does not join")  # type: ignore[misc]
        assert reached(first, "ap")
        assert reached(first, "s2"), "through the access point"
        assert up.radio("s1").info()["mode"] == "wlan"
        mac = up.radio("ap").info()["mac"]
        # Every fourth frame is lost, and repeated.
        said(first, "ping -q -c 100 -i 0.02 -W 2 ap")
        dump = station(first)
        assert dump["authorized"] == "yes"
        account = next(one for one in up.radio("s1").stations() if one["mac"] == mac)
        assert int(dump["tx retries"]) == account["unanswered"] > 10
        assert int(dump["tx failed"]) == 0
        assert dump["signal"].split()[0] == f"{account['signal_dbm']:.0f}"
    air = tmp_path / "out/captures/air.channel.36.pcapng"
    keys = tshark(air, "eapol")
    assert len(keys) >= 8, "four messages of each handshake"
    assert tshark(air, "_ws.malformed") == []
    assert len(tshark(air, "wlan.fc.type_subtype == 0x0008")) > 10, "beacons during two seconds of pings"


def tshark(file: Path, wanted: str) -> list[str]:
    done = subprocess.run(
        ["tshark", "-r", str(file), "-Y", wanted], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


def test_two_guests_form_an_independent_cell_and_one_that_restarts_comes_back(tmp_path: Path) -> None:
    needs("iw")
    with lab(tmp_path, {"a": {}, "b": {}}) as up:
        join = "iw reg set US; ip link set wlan0 down && iw dev wlan0 set type ibss && ip link set wlan0 up"
        join += " && iw dev wlan0 ibss join lab 5180 fixed-freq 02:ca:ff:ee:ba:be"
        for node in (up["a"], up["b"]):
            said(node, join)
        until(lambda: reached(up["a"], "b"), "no cell")
        up["b"].kill()
        up["b"].restart()
        said(up["b"], join)
        until(lambda: reached(up["a"], "b"), "no cell after the restart")


def test_two_guests_form_an_802_11s_mesh(tmp_path: Path) -> None:
    needs("iw")
    with lab(tmp_path, {"a": {}, "b": {}}) as up:
        join = "iw reg set US; ip link set wlan0 down && iw dev wlan0 set type mp && ip link set wlan0 up"
        for node in (up["a"], up["b"]):
            said(node, f"{join} && iw dev wlan0 mesh join net freq 5220")
        until(lambda: station(up["a"]).get("mesh plink") == "ESTAB", "no peers")
        until(lambda: reached(up["a"], "b"), "no path")
        assert "02:00:00" in said(up["a"], "iw dev wlan0 mpath dump")
