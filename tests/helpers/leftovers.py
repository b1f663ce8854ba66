"""Resources of a controller process on this machine, and those left after it was killed.

Linux gives the number of a namespace that has ended to the next one at once, which other tests make.
A namespace is therefore held open while its holders are sought, so that its number stays its own; a process
is known by its number and its start time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from airloom.host.descendants import processes_below
from helpers.nodes import groups_of

_TEMPORARY = ("/tmp/", "/dev/shm/", "/run/", "/var/tmp/")


@dataclass(frozen=True, slots=True)
class Traces:
    """Processes, namespaces, cgroups, sockets and open temporary files of a controller."""

    processes: dict[int, str]
    """Start time of each, in clock ticks since boot, by its number."""
    namespaces: dict[str, int]
    """A descriptor of each, until :meth:`wait_gone` ends."""
    sockets: frozenset[str]
    files: frozenset[str]

    @classmethod
    def of(cls, controller: int, results: Path) -> Traces:
        """Returns those of a process and its descendants; its results folder may remain."""
        family = {pid: start for pid in processes_below(controller) if (start := _started(pid))}
        # The link of the oldest process comes last, and stays: others may end before it is opened.
        opened = dict(link for pid in reversed(family) for link in _links(pid, "fd"))
        inside = dict(link for pid in reversed(family) for link in _links(pid, "ns"))
        return cls(
            family,
            _held(opened | inside),
            frozenset(link[8:-1] for link in opened if link.startswith("socket:")) & _sockets(),
            frozenset(
                link
                for link in opened
                if link.startswith(_TEMPORARY) and not Path(link).is_relative_to(results)
            ),
        )

    def left(self) -> list[str]:
        """Returns descriptions of the remaining resources."""
        alive = [f"process {pid}" for pid, start in self.processes.items() if _started(pid) == start]
        others = [pid for pid in _all() if pid != os.getpid()]
        found = {link for pid in others for kind in ("ns", "fd") for link, _ in _links(pid, kind)}
        return [
            *alive,
            *(f"namespace {name}" for name in self.namespaces.keys() & found),
            *(f"control group {group}" for group in groups_of(*self.processes)),
            *(f"socket {inode}" for inode in self.sockets & _sockets()),
            *(f"file {path}" for path in self.files if Path(path).exists()),
        ]

    def wait_gone(self) -> None:
        """Waits until nothing remains; the timeout only ends a failing test."""
        until = time.monotonic() + 30
        try:
            while left := self.left():
                assert time.monotonic() < until, f"left: {', '.join(sorted(left))}"
                time.sleep(0.1)
        finally:
            for descriptor in self.namespaces.values():
                os.close(descriptor)


def command_line(pid: int) -> str:
    """Returns the command line of a process, its words ended by NUL; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _all() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _started(pid: int) -> str:
    """Returns when a process started, in clock ticks since boot; empty if it has ended."""
    try:
        # Its name, which is in parentheses, may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _held(links: Mapping[str, Path]) -> dict[str, int]:
    """Opens the namespaces among links, by their targets, but for those of this process."""
    kinds = tuple(f"{kind}:[" for kind in os.listdir("/proc/self/ns"))
    own = dict(_links(os.getpid(), "ns"))
    held: dict[str, int] = {}
    for name, path in links.items():
        if name.startswith(kinds) and name not in own:
            with contextlib.suppress(OSError):  # the process may have ended
                held[name] = os.open(path, os.O_RDONLY)
    return held


def _links(pid: int, kind: str) -> list[tuple[str, Path]]:
    """Returns the entries of ``/proc/PID/ns`` or ``fd``, each after its link target."""
    links = []
    with contextlib.suppress(OSError):  # the process may have ended
        for entry in Path(f"/proc/{pid}/{kind}").iterdir():
            with contextlib.suppress(OSError):
                links.append((os.readlink(entry), entry))
    return links


def _sockets() -> frozenset[str]:
    """Returns the inodes of this machine's Unix sockets."""
    rows = Path("/proc/net/unix").read_text().splitlines()[1:]
    return frozenset(row.split()[6] for row in rows)
