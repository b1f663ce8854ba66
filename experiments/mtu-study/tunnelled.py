"""The cases between two laboratories that are joined by Ethernet over GRE.

Two network namespaces with a veth pair between them stand for two machines. The study's 38 octets of tunnel
are charged on both laboratories' links, which stand for the wire that carries them: its frames are those of
the case, and the hosts' are 38 octets shorter.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airloom import Lab
from airloom.errors import RunError
from airloom.host import binaries
from airloom.measure import flow, records
from airloom.measure.flow import FlowReading
from airloom.scenario.model import Link, Node, Queue, Scenario

OVERHEAD = 38
"""Octets of outer IP, GRE and inner Ethernet header."""
ETHERNET = 24
"""What a wire charges beside each frame: preamble, check sequence, gap."""
UNDERLAY = ("192.0.2.1", "192.0.2.2")
HOSTS = ("10.77.0.1", "10.77.0.2")
PORT = 6000


def measure(case: Any, seconds: float, folder: Path, **link: Any) -> tuple[FlowReading, int]:
    """The flow of a case, and the octets of its inner frames with check sequence."""
    inner = case.frame - OVERHEAD
    with _machines(case.mtu) as places, contextlib.ExitStack() as stack:
        labs = [
            stack.enter_context(Lab(_half(case, side, places, **link), out=out.resolve()))
            for side, out in enumerate(sides(folder))
        ]
        _until_reached(labs[0])
        files = _files(folder)
        traffic = str(binaries.find("airloom-traffic"))
        receiver = labs[1]["h2"].start(
            [traffic, "receive", "--port", str(PORT), "--record", str(files[1]), "--idle", "2 s"]
        )
        labs[1]["h2"].wait_port(PORT, "udp")
        labs[0]["h1"].run(
            [traffic, "send", "--to", HOSTS[1], "--port", str(PORT), "--record", str(files[0]), "--frame",
             f"{inner} B", "--rate", f"{case.load * 10**6 * inner // case.frame} bit/s", "--rate-of", "frame",
             "--duration", f"{seconds} s"],
            check=True,
        )  # fmt: skip
        receiver.wait(20)
        return reading(folder), inner


def sides(folder: Path) -> list[Path]:
    """The result folders of both laboratories."""
    return [folder / f"side-{number}" for number in (1, 2)]


def reading(folder: Path) -> FlowReading:
    """The flow that :func:`measure` recorded there."""
    return flow.join(*map(records.read, _files(folder)))


def _files(folder: Path) -> list[Path]:
    one, two = (side.resolve() for side in sides(folder))
    return [one / "sender.rec", two / "receiver.rec"]


def _half(case: Any, side: int, places: list[str], **link: Any) -> Scenario:
    name, far = f"h{side + 1}", "far"
    wire = {
        "rate": f"{case.link} Mbit/s",
        "mtu": case.mtu - OVERHEAD,
        "overhead": f"{ETHERNET + OVERHEAD} B",
        "queue": Queue(packets=1000),
        **link,
    }
    return Scenario(
        name=f"mtu-study-tunnel-{name}",
        nodes={name: Node()},
        tunnels={far: {"kind": "gretap", "remote": UNDERLAY[1 - side], "namespace": places[side]}},
        links=[Link(ends=(name, far), addresses=([f"{HOSTS[side]}/24"], []), **wire)],
    )


def _until_reached(lab: Lab) -> None:
    deadline = time.monotonic() + 10
    while not lab["h1"].run(f"ping -c 1 -W 1 {HOSTS[1]}").ok:
        if time.monotonic() > deadline:
            raise RunError("experiment.tunnel", "the two laboratories do not reach each other")


@contextlib.contextmanager
def _machines(mtu: int) -> Iterator[list[str]]:
    """Two namespaces, held by a process each, whose wire carries packets of `mtu`."""
    holders = [
        subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in UNDERLAY
    ]
    try:
        for holder in holders:
            assert holder.stdout is not None
            holder.stdout.readline()
        one, two = (str(holder.pid) for holder in holders)
        _in(one, "ip", "link", "add", "wire", "mtu", str(mtu), "type", "veth", "peer", "name", "wire", "mtu",
            str(mtu), "netns", two)  # fmt: skip
        for pid, address in zip((one, two), UNDERLAY, strict=True):
            _in(pid, "ip", "link", "set", "lo", "up")
            _in(pid, "ip", "address", "add", f"{address}/24", "dev", "wire")
            _in(pid, "ip", "link", "set", "wire", "up")
        yield [f"/proc/{pid}/ns/net" for pid in (one, two)]
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def _in(pid: str, *command: str) -> None:
    subprocess.run(["nsenter", "--target", pid, "--net", *command], check=True, timeout=20)
