"""A broadcast reaches the radios of one guest together."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

import airloom
from helpers.kernels import BUILT, needs_built
from helpers.wlan import in_one_guest, needs, said, until

pytestmark = [pytest.mark.world, pytest.mark.measures, pytest.mark.timeout(180), needs_built]

COUNT = 100
RECEIVE = """
import socket, struct, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: when the kernel received it
own.bind(("", 5005))
own.settimeout(30)
with open("/tmp/arrivals", "w", buffering=1) as arrivals:
    while True:
        text, ancillary, *_ = own.recvmsg(100, 100)
        seconds, nanos = struct.unpack("qq", ancillary[0][2])
        print(text.decode(), seconds * 1_000_000_000 + nanos, file=arrivals)
"""
SEND = f"""
import socket, time
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for number in range({COUNT}):
    own.sendto(str(number).encode(), ("10.9.0.255", 5005))
    time.sleep(0.02)
"""


def arrivals(text: str) -> dict[int, int]:
    return {int(number): int(nanos) for number, nanos in map(str.split, text.splitlines())}


def test_two_radios_of_one_guest_get_a_broadcast_together(tmp_path: Path) -> None:
    needs("iw")
    names = ("sender", "near", "far")
    files = {name: {"/tmp/receive.py": RECEIVE, "/tmp/send.py": SEND} for name in names}
    scenario = in_one_guest("broadcast", files, 1, str(BUILT), phy="802.11bg", channel=1)
    with airloom.Lab(scenario, out=tmp_path / "out") as up:
        join = "ip link set wlan0 down && iw dev wlan0 set type ibss && ip link set wlan0 up"
        cell = "iw dev wlan0 ibss join lab 2412 fixed-freq 02:ca:ff:ee:ba:be"
        for place, name in enumerate(names):
            said(up[name], f"{join} && {cell} && ip address add 10.9.0.{place + 1}/24 broadcast + dev wlan0")
        for name in names[1:]:
            up[name].start("python3 /tmp/receive.py")
        until(lambda: up["far"].run("ping -c 1 -W 1 10.9.0.1").ok, "the cell does not carry frames")
        said(up["sender"], "python3 /tmp/send.py")
        near, far = (arrivals(said(up[name], "cat /tmp/arrivals")) for name in names[1:])
    both = near.keys() & far.keys()
    assert len(both) > COUNT // 2
    gaps = [abs(near[number] - far[number]) / 1e6 for number in both]
    print(f"median {statistics.median(gaps):.3f} ms, largest {max(gaps):.3f} ms")
    # One message for each call of the driver's work queue made it several milliseconds.
    assert statistics.median(gaps) < 0.5
