"""Radios of stacks that listen, that have left, and that are on another band than their programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import BUILT, needs_built
from helpers.wlan import needs, needs_distribution_radios, said, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

WPA = "wpa_cli -p /run/wpa -i wlan0"
OPEN = 'ctrl_interface=/run/wpa\nnetwork={\n  ssid="lab"\n  key_mgmt=NONE\n}\n'


def hostapd(channel: int, *more: str) -> str:
    band = "g" if channel <= 14 else "a"
    lines = ["interface=wlan0", "driver=nl80211", "ssid=lab", "country_code=US", f"hw_mode={band}"]
    return "\n".join([*lines, f"channel={channel}", *more, ""])


def lab(folder: Path, phy: str, nodes: dict[str, dict[str, Any]], channel: int = 1) -> airloom.Lab:
    """Guests 10 m apart, each with a radio."""
    scenario = {
        "name": "listening",
        "kind": "uml",
        "media": {
            "air": {
                "propagation": {"model": "disk", "range": "100 m"},
                "radio": {"device": "wlan", "phy": phy, "channel": channel},
            }
        },
        "nodes": {
            name: {
                "position": [f"{10 * place} m", "0 m"],
                "radios": {"wlan0": {}},
                **({} if node.get("kind") == "qemu" else {"guest": {"kernel": str(BUILT)}}),
                **node,
            }
            for place, (name, node) in enumerate(nodes.items())
        },
    }
    return airloom.Lab(Scenario.model_validate(scenario), out=folder / "out")


@pytest.mark.parametrize("kind", ["uml", "qemu"])
def test_a_device_that_only_listens_on_a_channel_is_configured_there(tmp_path: Path, kind: str) -> None:
    """Easy Connect: the responder has sent nothing on the channel on which it is asked.

    The driver of the built kernel says where it listens; that of the distribution in a virtual machine
    does not.
    """
    needs("wpa_supplicant")
    if kind == "qemu":
        needs_distribution_radios()
    conf: dict[str, Any] = {"files": {"/etc/wpa.conf": "ctrl_interface=/run/wpa\nupdate_config=0\n"}}
    with lab(tmp_path, "802.11bg", {"shows": {**conf, "kind": kind}, "scans": conf}) as up:
        shows, scans = up["shows"], up["scans"]
        for node in (shows, scans):
            said(node, "wpa_supplicant -B -t -i wlan0 -c /etc/wpa.conf -f /tmp/wpa.log")
            until(lambda node=node: node.run(f"{WPA} ping").ok, "no supplicant")  # type: ignore[misc]
        mac = said(shows, "cat /sys/class/net/wlan0/address").strip().replace(":", "")
        number = said(shows, f"{WPA} dpp_bootstrap_gen type=qrcode chan=81/6 mac={mac}").strip()
        code = said(shows, f"{WPA} dpp_bootstrap_get_uri {number}").strip()
        assert said(shows, f"{WPA} dpp_listen 2437").strip() == "OK"
        peer = said(scans, f"{WPA} dpp_qr_code '{code}'").strip()
        assert said(scans, f"{WPA} dpp_auth_init peer={peer}").strip() == "OK"
        until(lambda: "DPP-AUTH-" in said(scans, "cat /tmp/wpa.log"), "no answer")
        assert "DPP-AUTH-SUCCESS" in said(scans, "cat /tmp/wpa.log")


def test_an_access_point_finds_out_that_a_station_has_gone(tmp_path: Path) -> None:
    """The farewell of the station is lost; it comes back unconnected, and answers no poll."""
    needs("hostapd", "wpa_supplicant")
    nodes = {
        "ap": {"files": {"/etc/hostapd.conf": hostapd(1, "ap_max_inactivity=2")}},
        "sta": {"files": {"/etc/wpa.conf": OPEN}},
    }
    with lab(tmp_path, "802.11bg", nodes) as up:
        ap, sta = up["ap"], up["sta"]
        said(ap, "hostapd -B -t -f /tmp/ap.log /etc/hostapd.conf")
        said(sta, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf -f /tmp/wpa.log")
        until(lambda: "AP-STA-CONNECTED" in said(ap, "cat /tmp/ap.log"), "it does not join")
        sta.move("5 km", "0 m")
        said(sta, f"{WPA} disconnect")
        until(lambda: "Not connected" in said(sta, "iw dev wlan0 link"), "it does not leave")
        sta.move("10 m", "0 m")
        until(lambda: "AP-STA-DISCONNECTED" in said(ap, "cat /tmp/ap.log"), "it stays for ever")


def test_packets_of_a_station_that_has_left_are_dropped_by_its_kernel(tmp_path: Path) -> None:
    needs("hostapd", "wpa_supplicant")
    nodes = {
        "ap": {"files": {"/etc/hostapd.conf": hostapd(1)}},
        "sta": {"files": {"/etc/wpa.conf": OPEN}},
    }
    with lab(tmp_path, "802.11bg", nodes) as up:
        said(up["ap"], "hostapd -B /etc/hostapd.conf")
        said(up["sta"], "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf -f /tmp/wpa.log")
        until(lambda: _connected(up["sta"]), "it does not join")
        # It sends while it leaves: up to a second later the kernel finds that the interface has no carrier,
        # and nothing reaches its 802.11 stack any more.
        said(up["sta"], f"(ping -q -c 400 -i 0.005 -W 1 ap & sleep 0.5; {WPA} disconnect; wait) || true")
        until(lambda: "Not connected" in said(up["sta"], "iw dev wlan0 link"), "it does not leave")
        counted = int(said(up["sta"], "cat /sys/class/net/wlan0/statistics/tx_dropped"))
    result = up.result.result
    assert counted > 0
    assert result.ledger.dropped["node-kernel"] == counted
    assert result.ledger.host_lost == 0
    assert "host.lost" not in result.verdict.codes


def test_the_wrong_band_is_named(tmp_path: Path) -> None:
    needs("hostapd", "iw")
    nodes = {"ap": {"files": {"/etc/hostapd.conf": hostapd(1)}}, "sta": {}}
    for phy in ("802.11abg", "802.11a"):
        with lab(tmp_path / phy, phy, nodes, channel=36) as up:
            said(up["ap"], "hostapd -B /etc/hostapd.conf")
            scan = "iw dev wlan0 scan freq 2412 | grep -q 'SSID: lab'"
            if phy == "802.11abg":
                until(lambda up=up, scan=scan: up["sta"].run(scan, timeout=60).ok, "not found")  # type: ignore[misc]
            else:
                said(up["sta"], "iw dev wlan0 scan freq 2412 ssid lab")
                # hostapd ends its scan for other networks, and beacons: 24 frames.
                said(
                    up["ap"], "until iw dev wlan0 info | grep -q 'channel 1 '; do sleep 0.1; done; sleep 2.5"
                )
        result = up.result.result
        notes = [note for note in result.verdict.notes if "outside-band" in note]
        if phy == "802.11abg":
            assert notes == []
            assert "outside-band" not in result.ledger.dropped
        else:
            assert result.ledger.dropped["outside-band"] > 2
            assert "out-of-range" not in result.ledger.dropped
            assert [note.partition(": ")[0] for note in notes] == ["ap:wlan0", "sta:wlan0"]
            for note in notes:
                assert all(words in note for words in ("2412 MHz", "`phy: 802.11a`", "802.11abg")), note


def test_a_station_is_steered_from_one_band_to_the_other(tmp_path: Path) -> None:
    needs("hostapd", "wpa_supplicant")
    nodes = {
        "two": {"files": {"/etc/hostapd.conf": hostapd(6)}},
        "five": {"files": {"/etc/hostapd.conf": hostapd(36)}},
        "sta": {"files": {"/etc/wpa.conf": OPEN}},
    }
    with lab(tmp_path, "802.11abg", nodes) as up:
        for name in ("two", "five"):
            said(up[name], "hostapd -B /etc/hostapd.conf")
        said(up["sta"], "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf -f /tmp/wpa.log")
        until(lambda: _connected(up["sta"]), "it does not join")
        macs = {name: up.radio(name).info()["mac"] for name in ("two", "five")}
        for name, mhz in (("two", 2437), ("five", 5180), ("two", 2437)):
            said(up["sta"], f"{WPA} scan freq=2437,5180")
            until(lambda name=name: macs[name] in said(up["sta"], f"{WPA} scan_results"), "not found")  # type: ignore[misc]
            said(up["sta"], f"{WPA} roam {macs[name]}")
            until(
                lambda name=name, mhz=mhz: (  # type: ignore[misc]
                    _connected(up["sta"]) and f"freq={mhz}" in said(up["sta"], f"{WPA} status")
                ),
                f"it does not roam to {name}",
            )
            assert up["sta"].run(f"ping -c 3 -i 0.2 -W 2 {up.addresses[name]}", timeout=60).ok


CREATE = """
import socket, struct
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
def ask(family, command, attributes):
    body = struct.pack("BBH", command, 1, 0) + attributes
    link.send(struct.pack("IHHII", 16 + len(body), family, 5, 1, 0) + body)
    return link.recv(65536)
name = b"MAC80211_HWSIM\\0"
found = ask(16, 3, struct.pack("HH", 4 + len(name), 2) + name + b"\\0")
at = 20
while struct.unpack_from("HH", found, at)[1] != 1:
    at += (struct.unpack_from("H", found, at)[0] + 3) & ~3
number = struct.unpack("i", ask(struct.unpack_from("H", found, at + 4)[0], 4, b"")[16:20])[0]
assert number >= 0, number
"""


def test_a_radio_that_a_program_creates_is_named(tmp_path: Path) -> None:
    needs("iw")
    node = {"files": {"/tmp/create.py": CREATE}}
    with lab(tmp_path, "802.11bg", {"a": node}) as up:
        said(up["a"], "python3 /tmp/create.py && ip link set wlan1 up")
        said(up["a"], "iw dev wlan1 scan freq 2412 ssid any")
    (note,) = [note for note in up.result.result.verdict.notes if "a program of the node created" in note]
    assert note.startswith("a: radio 1 of its kernel")


def test_words_for_the_kernel_reach_it(tmp_path: Path) -> None:
    """Also one that it does not know, and passes on to its init."""
    node = {"guest": {"kernel": str(BUILT), "append": "loglevel=6 unheard_of nobody=knows"}}
    with lab(tmp_path, "802.11bg", {"a": node}) as up:
        assert "loglevel=6 unheard_of nobody=knows" in said(up["a"], "cat /proc/cmdline")
        assert said(up["a"], "cat /proc/sys/kernel/printk").split()[0] == "6"


def _connected(node: Any) -> bool:
    return "wpa_state=COMPLETED" in node.run(f"{WPA} status", timeout=60).stdout
