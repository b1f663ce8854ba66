"""802.11 stacks of guests: programs that tests need, and waiting for what they do."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airloom import Scenario
from airloom.errors import HostError
from airloom.nodes.guests import modules
from airloom.nodes.kinds import qemu


def hostapd(ssid: str, *more: str) -> str:
    """The configuration of an access point on channel 36, with further lines."""
    lines = ["interface=wlan0", "driver=nl80211", f"ssid={ssid}", "country_code=US", "hw_mode=a"]
    return "\n".join([*lines, "channel=36", "wmm_enabled=1", *more, ""])


def supplicant(ssid: str, mhz: int, key: str = "key_mgmt=NONE") -> str:
    """The configuration of a station of this network."""
    network = f'ssid="{ssid}"\nscan_freq={mhz}\n{key}'
    return f"ctrl_interface=/run/wpa_supplicant\ncountry=US\nnetwork={{\n{network}\n}}\n"


def pair(access_point: str, mhz: int, **radio: Any) -> Scenario:
    """An access point with this configuration and a station, 10 m apart, in one guest."""
    files = {"ap": {"/etc/hostapd.conf": access_point}, "sta": {"/etc/wpa.conf": supplicant("lab", mhz)}}
    return in_one_guest("pair", files, 10, **radio)


def in_one_guest(
    name: str, files: Mapping[str, Mapping[str, str]], metres: int, kernel: str | None = None, **radio: Any
) -> Scenario:
    """Nodes with 802.11 devices in one guest, with their files, in a row with ``metres`` between two."""
    return Scenario.model_validate(
        {
            "name": name,
            "kind": "uml",
            "media": {"air": {"radio": {"device": "wlan", **radio}}},
            "guests": {"box": {"kind": "uml", **({"kernel": kernel} if kernel else {})}},
            "nodes": {
                node: {
                    "inside": "box",
                    "position": [f"{metres * place} m", "0 m"],
                    "radios": {"wlan0": {}},
                    "files": said,
                }
                for place, (node, said) in enumerate(files.items())
            },
        }
    )


def join(up: Any) -> None:
    """Starts the programs of a :func:`pair`, and waits until its station has joined."""
    said(up["ap"], "hostapd -B /etc/hostapd.conf")
    said(up["sta"], "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
    until(lambda: joined(up["sta"]), "the station does not join")


def frames(capture: Path, wanted: str, *fields: str) -> list[list[str]]:
    """Fields of the frames of a capture that match a display filter, by tshark."""
    command = ["tshark", "-r", str(capture), "-Y", wanted, "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def needs(*programs: str) -> None:
    """Skips the test where one of the programs is missing."""
    for program in programs:
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            pytest.skip(f"{program} is not installed: make test")


def needs_distribution_radios() -> None:
    """Skips the test where there is no virtual machine whose kernel has simulated radios."""
    try:
        folder = qemu.kernel_of(None).modules
        qemu.program_of()
    except HostError as error:
        pytest.skip(f"{error.message}: {error.cure}")
    if modules.lacking(folder, ["mac80211_hwsim"]):
        pytest.skip(f"the kernel of {folder} has no mac80211_hwsim")


def until(done: Callable[[], bool], what: str, within: float = 60) -> None:
    """Waits until something is done."""
    end = time.monotonic() + within
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def said(node: Any, command: str) -> str:
    """The output of a command that has to succeed in a node."""
    done = node.run(command, timeout=60)
    assert done.ok, f"{command}: {done.stdout}{done.stderr}"
    return str(done.stdout)


def joined(node: Any, bssid: str = "") -> bool:
    """Whether the node's wpa_supplicant is associated, with this access point."""
    status = node.run("wpa_cli -i wlan0 status", timeout=60).stdout
    return "wpa_state=COMPLETED" in status and bssid in status
