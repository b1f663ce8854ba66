"""Ethernet radios and wireless devices of guests in one cell, with hostapd and wpa_supplicant."""

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

HOSTAPD = hostapd("one")
SUPPLICANT = supplicant("two", 5240)


def malformed(path: Path) -> list[str]:
    """The frames of a capture that tshark's dissectors cannot read."""
    command = ["tshark", "-r", str(path), "-Y", "_ws.malformed || (wlan.fcs.status == 0)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


def test_each_kind_joins_the_others_access_point(tmp_path: Path) -> None:
    """Two cells on two channels: one of a guest's hostapd, one of an Ethernet radio."""
    needs("iw", "hostapd", "wpa_supplicant", "tshark")

    def node(place: int, files: dict[str, str] | None = None, **radio: Any) -> dict[str, Any]:
        kind = {"kind": "uml", "files": files} if files else {}
        return {**kind, "position": [f"{place} m", "0 m"], "radios": {"wlan0": radio}}

    nodes = {
        "guest1": node(0, {"/etc/hostapd.conf": HOSTAPD}, device="wlan", channel=36),
        "plain1": node(10, mode="station", ssid="one", channel=36),
        "plain2": node(20, mode="ap", ssid="two", channel=48),
        "guest2": node(30, {"/etc/wpa.conf": SUPPLICANT}, device="wlan", channel=36),
    }
    scenario = Scenario.model_validate(
        {"name": "both", "media": {"air": {"radio": {"rate": "54 Mbit/s"}}}, "nodes": nodes}
    )
    with airloom.Lab(scenario, out=tmp_path / "out", capture=True) as up:
        said(up["guest1"], "hostapd -B /etc/hostapd.conf")
        said(up["guest2"], "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
        stations = ["iw", "dev", "wlan0", "station", "dump"]
        until(lambda: "authorized" in up["guest1"].run(stations, timeout=60).stdout, "plain1 joins guest1")
        until(lambda: joined(up["guest2"]), "guest2 joins plain2")
        for cell, names in (("1", ("guest1", "plain1")), ("2", ("plain2", "guest2"))):
            for number, name in enumerate(names, start=1):
                said(up[name], f"ip address add 10.9.{cell}.{number}/24 dev wlan0")
        # Each way, so that a broadcast (ARP) and unicast frames of both kinds are translated.
        for source, target in (
            ("guest1", "10.9.1.2"),
            ("plain1", "10.9.1.1"),
            ("guest2", "10.9.2.1"),
            ("plain2", "10.9.2.2"),
        ):
            until(lambda s=source, t=target: up[s].run(f"ping -c 1 -W 1 {t}").ok, f"{source} to {target}")  # type: ignore[misc]
    captures = sorted((tmp_path / "out").rglob("air.channel.*.pcapng"))
    assert len(captures) == 2
    assert [malformed(path) for path in captures] == [[], []]
