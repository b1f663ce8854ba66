"""Radios of virtual machines with the distribution's kernel: two transports on one medium."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from airloom.errors import HostError
from airloom.nodes.guests import modules
from airloom.nodes.kinds import qemu
from helpers.kernels import needs_built
from helpers.wlan import hostapd, joined, needs, said, supplicant, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_built]

HOSTAPD = hostapd("lab", "wpa=2", "wpa_key_mgmt=WPA-PSK", "rsn_pairwise=CCMP", "wpa_passphrase=correct horse")
SUPPLICANT = supplicant("lab", 5180, 'psk="correct horse"')


def _needs_kernel() -> None:
    try:
        folder = qemu.kernel_of(None).modules
        qemu.program_of()
    except HostError as error:
        pytest.skip(f"{error.message}: {error.cure}")
    if modules.lacking(folder, ["mac80211_hwsim"]):
        pytest.skip(f"the kernel of {folder} has no mac80211_hwsim")


def test_nodes_of_one_virtual_machine_join_an_access_point_of_a_uml_guest(tmp_path: Path) -> None:
    """Two radios of one kernel, each in the namespace of its node; they reach each other by radio."""
    needs("iw", "hostapd", "wpa_supplicant")
    _needs_kernel()
    files = {"/etc/wpa.conf": SUPPLICANT}
    scenario = {
        "name": "wlan",
        "kind": "uml",
        "media": {"air": {"radio": {"device": "wlan"}}},
        "guests": {"box": {"kind": "qemu"}},
        "nodes": {
            "ap": {
                "position": ["0 m", "0 m"],
                "radios": {"wlan0": {}},
                "files": {"/etc/hostapd.conf": HOSTAPD},
            },
            "s1": {"position": ["10 m", "0 m"], "radios": {"wlan0": {}}, "inside": "box", "files": files},
            "s2": {"position": ["20 m", "0 m"], "radios": {"wlan0": {}}, "inside": "box", "files": files},
        },
    }
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out") as up:
        stations = [up["s1"], up["s2"]]
        said(up["ap"], "hostapd -B /etc/hostapd.conf")
        for node in stations:
            said(node, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
        for node in stations:
            until(lambda node=node: joined(node), f"{node.name} does not join")  # type: ignore[misc]
        assert said(up["s1"], "uname -r") != said(up["ap"], "uname -r")
        for target in ("ap", "s2"):
            until(lambda to=target: up["s1"].run(f"ping -c 3 -W 2 {to}", timeout=60).ok, target)  # type: ignore[misc]
        mac = up.radio("ap").info()["mac"]
        account = next(one for one in up.radio("s1").stations() if one["mac"] == mac)
        signal = said(up["s1"], f"iw dev wlan0 station get {mac} | grep 'signal:'").split()[1]
        assert signal == f"{account['signal_dbm']:.0f}"
