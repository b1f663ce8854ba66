"""Profiles nodes and engine by sampling with ``perf``, where it is available.

Samples every processor at 499 Hz (``cpu-clock``, which needs no hardware counters). Each sample
belongs to one component, as in :mod:`airloom.compare.attribution`: the engine's thread; the rest of
Airloom; and, for the nodes' processes, the host's kernel (samples in kernel mode), the guests'
kernels (samples in the program that runs a guest's machine) and the nodes' programs (all other
samples). In an emulated machine, programs and kernel cannot be distinguished: both count as guest
kernel. Samples of other processes of the host are ignored.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from airloom.errors import HostError
from airloom.host import programs
from airloom.host.descendants import processes_below
from airloom.planning.plan import Plan
from airloom.results.details import Hotspot

FREQUENCY = 499
"""Samples per second. Not a multiple of a timer rate, so that periodic work is sampled too."""
TOP = 5
"""Number of hotspots reported per component."""
ENGINE_THREAD = "airloom-engine"
INSTALL = "apt-get install linux-perf"
_LINE = re.compile(
    r"^\s*(?P<comm>.+?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s+(?P<mode>\S*)\s+[0-9a-f]+\s+(?P<symbol>.+)\s+\((?P<dso>.*)\)$"
)
_FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")

_MACHINES = ("linux", "linux.uml")
_EMULATOR = "qemu-system"


def machines_of(plan: Plan) -> frozenset[str]:
    """Names of the programs, other than emulators, that run the machines of a plan's guests."""
    guests = [node.guest for node in plan.nodes.values() if node.guest is not None]
    return frozenset([*_MACHINES, *(os.path.basename(guest.kernel) for guest in guests if guest.kernel)])


class Profiler:
    """Samples from :meth:`start` to :meth:`finish`."""

    def __init__(self, folder: Path, machines: frozenset[str] = frozenset(_MACHINES)) -> None:
        self._data = folder / "perf.data"
        self._machines = machines
        self._nodes: frozenset[int] = frozenset()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, root: int) -> None:
        """Samples this process, and ``root`` with all its descendants. Raises :class:`HostError`."""
        if programs.find("perf") is None:
            raise HostError("host.perf", "there is no perf on this machine", cure=INSTALL)
        self._nodes = frozenset(processes_below(root))
        words = ["perf", "record", "-q", "-a", "-F", str(FREQUENCY), "-e", "cpu-clock", "-o", str(self._data)]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        until = time.monotonic() + 5
        while not self._data.exists() and self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        if self._process.poll() is not None:
            _, said = self._process.communicate()
            self._process = None
            first = next(iter(said.decode(errors="replace").strip().splitlines()), "it ended at once")
            cure = "run as root, or set kernel.perf_event_paranoid to -1"
            raise HostError("host.perf", f"perf cannot sample here: {first}", cure=cure)

    def finish(self) -> tuple[Hotspot, ...]:
        """Stops sampling and returns the places with the most samples. A second call has no effect."""
        if self._process is None:
            return ()
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=30)
        self._process = None
        words = ["perf", "script", "-i", str(self._data), "-F", "comm,pid,tid,misc,ip,sym,dso"]
        text = subprocess.run(
            [*words, "--show-task-events"], capture_output=True, text=True, errors="replace", check=False
        ).stdout
        self._data.unlink(missing_ok=True)
        return hotspots(text.splitlines(), os.getpid(), self._nodes, self._machines)


def hotspots(
    lines: Iterable[str], own: int, nodes: Iterable[int], machines: frozenset[str]
) -> tuple[Hotspot, ...]:
    """Per component, the places with the most samples, from the output of ``perf script``.

    ``nodes`` are the PIDs of the nodes when sampling began; their later children are found in the
    lines.
    """
    counts: dict[str, Counter[str]] = {}
    inside = set(nodes)
    for line in lines:
        if forked := _FORK.search(line):
            child, parent = int(forked[1]), int(forked[2])
            if parent in inside:
                inside.add(child)
            continue
        found = _LINE.match(line)
        if found is None:
            continue
        pid, dso = int(found["pid"]), os.path.basename(found["dso"])
        if pid == own:
            component = "engine" if found["comm"] == ENGINE_THREAD else "airloom"
        elif pid not in inside:
            continue
        elif found["mode"].startswith("K"):
            component = "host_kernel"
        else:
            machine = dso in machines or found["comm"].startswith(_EMULATOR)
            component = "guest_kernel" if machine else "guest_user"
        counts.setdefault(component, Counter())[f"{found['symbol'].strip()} ({dso})"] += 1
    whole = sum(sum(places.values()) for places in counts.values())
    return tuple(
        Hotspot(component=component, place=place, share=count / whole)
        for component, places in sorted(counts.items(), key=lambda one: -sum(one[1].values()))
        for place, count in [("", sum(places.values())), *places.most_common(TOP)]
    )
