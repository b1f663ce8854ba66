"""Finds the laboratories of this user that are up on this machine.

Any program of this machine may listen under a name that looks like a laboratory's. So a client checks
that the listener is a process of this user with the process id in its name. This module imports no
message types: shells ask it for names at every Tab.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from airloom.errors import RunError

What = Literal["laboratory", "run"]
"""A laboratory that is used by hand, or a run of a scenario, whose frames can be captured only."""
PREFIXES: dict[What, str] = {"laboratory": "airloom/", "run": "airloom-run/"}
TIMEOUT = 10.0
"""Time limit of each side for the next message, in seconds."""
_NAME = re.compile(r"(airloom(?:-run)?/)([A-Za-z0-9_-]{1,64})/([1-9][0-9]{0,9})/([0-9]{1,7})", re.ASCII)
_CLAIM = "airloom-name/"
"""First part of the address of a socket that holds a laboratory's name."""
_LISTENING = 0x10000
"""The kernel's SO_ACCEPTCON flag in /proc/net/unix."""
_LINE = re.compile(
    rb"^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]{8}) [0-9A-F]+ [0-9A-F]+ +[0-9]+ @(airloom(?:-run)?/[!-~]+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a connection, as the kernel reports it."""

    pid: int
    uid: int


def peer_of(channel: socket.socket) -> Peer:
    """Returns the peer of a connected socket."""
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)


def address_of(name: str, pid: int, key: int, what: What = "laboratory") -> str:
    """Returns a laboratory's abstract address: its name, process id and key descriptor."""
    return f"\0{PREFIXES[what]}{'-'.join(name.split())}/{pid}/{key}"


def claimed(name: str) -> tuple[socket.socket, str]:
    """Claims a name for a laboratory among all that are up: its own, or ``NAME-2`` if another one has that.

    Returns an abstract socket and the name, which is held until the socket is closed or the process ends.
    """
    own = "-".join(name.split())
    for number in itertools.count(1):
        label = own if number == 1 else f"{own}-{number}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            holder.bind(f"\0{_CLAIM}{label}")
        except OSError as error:
            holder.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return holder, label
    raise AssertionError("unreachable")


def parts_of(address: str) -> tuple[str, int, int] | None:
    """Returns name, process id and key descriptor; None if it is not a laboratory's address."""
    match = _NAME.fullmatch(address.removeprefix("\0"))
    return None if match is None else (match[2], int(match[3]), int(match[4]))


@dataclass(frozen=True, slots=True)
class Running:
    """A laboratory of this user that is listening on this machine."""

    name: str
    pid: int
    address: str

    @property
    def what(self) -> What:
        """Whether it is a laboratory or a run."""
        return "run" if self.address.startswith("\0" + PREFIXES["run"]) else "laboratory"


def running(*whats: What) -> list[Running]:
    """Returns this user's laboratories that are up on this machine; by default without runs."""
    found = []
    for flags, name in _LINE.findall(Path("/proc/net/unix").read_bytes()):
        address = "\0" + name.decode("ascii")
        parts = parts_of(address)
        if parts is None or not int(flags, 16) & _LISTENING:
            continue
        lab = Running(parts[0], parts[1], address)
        if lab.what not in (whats or ("laboratory",)):
            continue
        with contextlib.suppress(OSError, RunError):
            connected(lab).close()
            found.append(lab)
    return sorted(found, key=lambda lab: (lab.name, lab.pid))


def connected(lab: Running) -> socket.socket:
    """Connects to a laboratory; verifies user and process id of the listener."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        channel.settimeout(0)  # do not wait if the accept queue is full
        channel.connect(lab.address)
        channel.settimeout(TIMEOUT)
        if peer_of(channel) != Peer(lab.pid, os.geteuid()):
            raise RunError(
                "live.stranger",
                f"the listener of laboratory {lab.name} (process {lab.pid}) is another user or process",
            )
    except BaseException:
        channel.close()
        raise
    return channel


def find(name: str | None, *whats: What) -> Running:
    """Returns the laboratory with a name or process id, or the only one that is up.

    By default without runs.
    """
    labs = running(*whats)
    chosen = [lab for lab in labs if name is None or name in (lab.name, str(lab.pid))]
    if len(chosen) == 1:
        return chosen[0]
    named = ", ".join(f"{lab.name} (process {lab.pid})" for lab in labs)
    if not labs:
        raise RunError(
            "live.none",
            "no laboratory of this user is up on this machine",
            cure="start one with `airloom up FILE`",
        )
    if not chosen:
        raise RunError("live.unknown", f"no laboratory is called {name}", cure=f"up now: {named}")
    raise RunError(
        "live.ambiguous",
        f"{len(chosen)} laboratories are up",
        cure=f"choose one by its name or process id (--lab NAME): {named}",
    )
