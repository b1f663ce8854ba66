"""A mesh of three guests' radios forwards what nobody knows to its gates."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import airloom
from helpers.kernels import BUILT, needs_built
from helpers.wlan import frames, in_one_guest, needs, said, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

OUTSIDE = "02:11:22:33:44:55"
"""A station that is in no mesh."""
SEND = """
import socket, sys
own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
own.bind(("wlan0", 0))
own.send(bytes.fromhex(sys.argv[1].replace(":", "") + sys.argv[2].replace(":", "") + "0800") + bytes(60))
"""


def test_frames_for_an_unknown_station_go_to_both_gates(tmp_path: Path) -> None:
    needs("iw", "tshark")
    names = ("gate", "other", "sender")
    files = {name: {"/tmp/send.py": SEND} for name in names}
    scenario = in_one_guest("gates", files, 5, str(BUILT), phy="802.11bg", channel=1)
    with airloom.Lab(scenario, out=tmp_path / "out", capture=True) as up:
        join = "iw reg set US; ip link set wlan0 down && iw dev wlan0 set type mp && ip link set wlan0 up"
        for name in names:
            said(up[name], f"{join} && iw dev wlan0 mesh join net freq 2412")

        def peers(name: str) -> int:
            return said(up[name], "iw dev wlan0 station dump").count("ESTAB")

        until(lambda: [peers(name) for name in names] == [2, 2, 2], "no peers")
        for name in names[:2]:
            said(up[name], "iw dev wlan0 set mesh_param mesh_gate_announcements=1")
        macs = {name: up.radio(name).info()["mac"] for name in names}
        paths = "iw dev wlan0 mpath dump"
        until(lambda: all(macs[name] in said(up["sender"], paths) for name in names[:2]), "no gates")
        said(up["sender"], f"python3 /tmp/send.py {OUTSIDE} {macs['sender']}")
        # The kernel looks for a path to the station for 3.1 s before it asks the gates.
        time.sleep(5)
    air = tmp_path / "out/captures/air.channel.1.pcapng"
    found = frames(air, f"wlan.sa == {macs['sender']} && wlan.fixed.mesh_addr5 == {OUTSIDE}", "wlan.da")
    assert {macs["gate"], macs["other"]} <= {gate for (gate,) in found}
