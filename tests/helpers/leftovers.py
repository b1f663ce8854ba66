"""Resources of a controller process on this machine, and those left after it was killed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airloom.host.descendants import processes_below
from helpers.nodes import cgroups

_TEMPORARY = ("/tmp/", "/dev/shm/", "/run/", "/var/tmp/")


@dataclass(frozen=True, slots=True)
class Traces:
    """Processes, namespaces, cgroups, sockets and open temporary files of a controller."""

    processes: frozenset[int]
    namespaces: frozenset[str]
    sockets: frozenset[str]
    files: frozenset[str]

    @classmethod
    def of(cls, controller: int, results: Path) -> Traces:
        """Returns those of a process and its descendants; its results folder may remain."""
        family = processes_below(controller)
        opened = {link for pid in family for link in _links(pid, "fd")}
        inside = {link for pid in family for link in _links(pid, "ns")}
        inside |= {link for link in opened if link.partition(":")[0] in os.listdir("/proc/self/ns")}
        return cls(
            frozenset(family),
            frozenset(inside - set(_links(os.getpid(), "ns"))),
            frozenset(link[8:-1] for link in opened if link.startswith("socket:")) & _sockets(),
            frozenset(
                link
                for link in opened
                if link.startswith(_TEMPORARY) and not Path(link).is_relative_to(results)
            ),
        )

    def left(self) -> list[str]:
        """Returns descriptions of the remaining resources."""
        alive = [f"process {pid}" for pid in self.processes if Path(f"/proc/{pid}").exists()]
        found = {link for pid in _all() for kind in ("ns", "fd") for link in _links(pid, kind)}
        supervisors = tuple(f"airloom-{pid}-" for pid in self.processes)
        groups = [f"control group {group}" for group in cgroups() if group.name.startswith(supervisors)]
        return [
            *alive,
            *(f"namespace {name}" for name in self.namespaces & found),
            *groups,
            *(f"socket {inode}" for inode in self.sockets & _sockets()),
            *(f"file {path}" for path in self.files if Path(path).exists()),
        ]

    def wait_gone(self) -> None:
        """Waits until nothing remains; the timeout only ends a failing test."""
        until = time.monotonic() + 30
        while left := self.left():
            assert time.monotonic() < until, f"left: {', '.join(sorted(left))}"
            time.sleep(0.1)


def command_line(pid: int) -> str:
    """Returns the command line of a process, its words ended by NUL; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _all() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _links(pid: int, kind: str) -> list[str]:
    """Returns the link targets of the entries of ``/proc/PID/ns`` or ``fd``."""
    links = []
    with contextlib.suppress(OSError):  # the process may have ended
        for entry in Path(f"/proc/{pid}/{kind}").iterdir():
            with contextlib.suppress(OSError):
                links.append(os.readlink(entry))
    return links


def _sockets() -> frozenset[str]:
    """Returns the inodes of this machine's Unix sockets."""
    rows = Path("/proc/net/unix").read_text().splitlines()[1:]
    return frozenset(row.split()[6] for row in rows)
