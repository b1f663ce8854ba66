"""Programs of this machine: their paths, and the Debian package of a missing one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

PACKAGES = {
    "bash": "bash",
    "ping": "iputils-ping",
    "iperf3": "iperf3",
    "iperf": "iperf",
    "iptables": "iptables",
    "slirp4netns": "slirp4netns",
    "xterm": "xterm",
    "tcpdump": "tcpdump",
    "tshark": "tshark",
    "ip": "iproute2",
    "bridge": "iproute2",
    "ss": "iproute2",
    "tc": "iproute2",
    "babeld": "babeld",
    "zebra": "frr",
    "ovs-testcontroller": "openvswitch-testcontroller",
    "mnexec": "mininet",
    "brctl": "bridge-utils",
    "python3": "python3",
    "ffmpeg": "ffmpeg",
    "curl": "curl",
    "wget": "wget",
    "nc": "netcat-openbsd",
    "socat": "socat",
    "skopeo": "skopeo",
    "iw": "iw",
    "hostapd": "hostapd",
    "wpa_supplicant": "wpasupplicant",
}
"""Program: the package that contains it."""
_MORE = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/frr")
"""Folders of programs that may be missing from an ordinary user's PATH."""


def search_path() -> str:
    """Returns the folders in which Airloom and its nodes look for programs, like the variable PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*folders, *_MORE]))


def find(name: str) -> Path | None:
    """Returns the path of a program given by name or path; None if it is not found."""
    found = shutil.which(name, path=search_path())
    return None if found is None else Path(found)


def installed() -> set[str]:
    """Returns the names of all programs in the folders of :func:`search_path`."""
    found: set[str] = set()
    for folder in search_path().split(os.pathsep):
        with contextlib.suppress(OSError):
            found.update(os.listdir(folder))
    return found


def cure(names: Iterable[str]) -> str:
    """Returns the cure for missing programs."""
    names = list(names)
    packages = dict.fromkeys(PACKAGES[name] for name in names if name in PACKAGES)
    strange = [name for name in names if name not in PACKAGES]
    said = [f"sudo apt-get install {' '.join(packages)}"] if packages else []
    if strange:
        said.append(f"install the package that has {', '.join(strange)}, or give a path")
    return "; ".join(said)
