"""Radios whose messages airloom-init passes on: those of virtual machines, and of any kernel."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

import airloom
from airloom import Scenario
from airloom.nodes.guests.guest import Machine
from airloom.nodes.kinds import uml
from helpers.kernels import needs_built
from helpers.wlan import hostapd, joined, needs, needs_distribution_radios, said, supplicant, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_built]

HOSTAPD = hostapd("lab", "wpa=2", "wpa_key_mgmt=WPA-PSK", "rsn_pairwise=CCMP", "wpa_passphrase=correct horse")
SUPPLICANT = supplicant("lab", 5180, 'psk="correct horse"')


def test_nodes_of_one_virtual_machine_join_an_access_point_of_a_uml_guest(tmp_path: Path) -> None:
    """Two radios of one kernel, each in the namespace of its node; they reach each other by radio."""
    needs("iw", "hostapd", "wpa_supplicant")
    needs_distribution_radios()
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


class StreamNode(uml.UmlNode):
    """A guest without the virtio device: a serial line has its messages, which a socket carries."""

    virtio_radios: ClassVar[bool] = False
    _serial: socket.socket | None = None

    def machine(self) -> Machine:
        made = super().machine()
        argv, descriptors = list(made.argv), list(made.descriptors)
        place = next(place for place, word in enumerate(argv) if word.endswith(":29"))
        number = int(argv[place].rpartition("/")[2].removesuffix(":29"))
        self._serial = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._serial.connect(f"/proc/self/fd/{self.wlan_path}")
        argv[place] = f"ssl1=fd:{number}"
        descriptors[number - 4] = self._serial.fileno()
        argv[argv.index("mac80211_hwsim.radios=1")] = "mac80211_hwsim.radios=0"
        return replace(made, argv=tuple(argv), descriptors=tuple(descriptors), radio_stream="/dev/ttyS1")

    def close(self) -> None:
        super().close()
        if self._serial is not None:
            self._serial.close()


def test_messages_of_another_kernel_are_passed_on_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of make kernel, by generic netlink instead of its virtio device."""
    needs("iw")
    monkeypatch.setattr(uml.UmlKind, "machines", StreamNode)
    scenario = {
        "name": "wlan",
        "kind": "uml",
        "media": {"air": {"radio": {"device": "wlan"}}},
        "nodes": {
            name: {"position": [f"{place} m", "0 m"], "radios": {"wlan0": {}}}
            for place, name in enumerate("ab")
        },
    }
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out") as up:
        join = "iw reg set US; ip link set wlan0 down && iw dev wlan0 set type ibss && ip link set wlan0 up"
        join += " && iw dev wlan0 ibss join lab 5180 fixed-freq 02:ca:ff:ee:ba:be"
        for name in "ab":
            said(up[name], join)
        until(lambda: up["a"].run("ping -c 3 -i 0.3 -W 2 b", timeout=60).ok, "no cell")
        for name in "ab":
            assert up.radio(name).info()["counts"]["expected"] > 0, "acknowledged on the medium"
