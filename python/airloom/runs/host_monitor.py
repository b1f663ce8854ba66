"""Samples the load of the host during a run, which is evidence for the verdict.

A thread samples the kernel's counters four times a second: processor pressure (the share of time in
which some task was ready and had no processor; Linux, ``Documentation/accounting/psi.rst``), memory
pressure (the same of tasks that wait for memory to be reclaimed or read back), memory that programs
could still get (``MemAvailable`` of ``/proc/meminfo``), time stolen by a hypervisor and processors in
use (``/proc/stat``). Once a second it samples the
processor time of every node that runs programs. Counters are read, never reset, so several runs may
sample at once.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from airloom.errors import LabError
from airloom.host import clocks, idle_poll
from airloom.host.processor_times import interrupt_ticks, processor_ticks
from airloom.nodes.kind import Cpu, Footprint
from airloom.runs.emulation import World
from airloom.runs.sampler import Sampler
from airloom.verdict import Share

PERIOD = 0.25
"""Seconds between samples of the host."""
NODES_EVERY = 4
"""Nodes are sampled once in this number of periods."""

_PRESSURE = Path("/proc/pressure/cpu")
_MEMORY_PRESSURE = Path("/proc/pressure/memory")
_MEMINFO = Path("/proc/meminfo")
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Reading:
    """The host's counters at one moment."""

    at: int
    """CLOCK_MONOTONIC ns."""
    pressure_us: int | None
    """Microseconds in which some task waited for a processor."""
    steal: int
    busy: int
    total: int
    """Clock ticks, summed over all processors."""
    memory_pressure_us: int | None = None
    """Microseconds in which some task waited for memory."""
    available: int | None = None
    """Octets of memory that programs could get without swapping."""
    memory: int = 0
    """Octets of memory in all."""
    polled: bool = False
    """Whether idle processors poll, so that pressure says nothing."""
    polled_by_others: bool = False
    """Whether they poll for another run, whose polling is not known to this one."""
    polled_ns: int = 0
    """Processor time for which this run's processors have polled."""
    interrupts: int = 0
    """Clock ticks in interrupts, hard and soft, summed over all processors."""
    own_ns: int | None = None
    """Processor time of this run's processes, where it was read; polling included."""


@dataclass(slots=True)
class NodeTrack:
    """A node's processor time, sample by sample."""

    times: list[int] = field(default_factory=list)
    used: list[Cpu] = field(default_factory=list)
    within: list[Cpu] = field(default_factory=list)
    """First and last CPU time reported by the node's own kernel, if it has one."""
    switches: dict[int, int] = field(default_factory=dict)
    """Thread: its context switches when it was last seen."""
    switched_before: int = 0
    """Context switches until the first sample."""
    switched_earlier: int = 0
    """Context switches of ended threads whose numbers others have now."""
    footprints: list[Footprint] = field(default_factory=list)
    """First and last memory of its machine, if it has one."""

    def add_switches(self, now: Mapping[int, int]) -> None:
        """Adds a sample. A thread that is gone later keeps what it had at its last sample."""
        for thread, count in now.items():
            before = self.switches.get(thread, 0)
            if count < before:
                self.switched_earlier += before
            self.switches[thread] = count

    @property
    def switched(self) -> int | None:
        """Context switches since the first sample; None if they are not known."""
        if not self.switches:
            return None
        return self.switched_earlier + sum(self.switches.values()) - self.switched_before


def pressure_us(text: str) -> int:
    """The total in microseconds of the ``some`` line of /proc/pressure/cpu."""
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2])
    raise ValueError("no line `some`")


def memory_octets(text: str) -> tuple[int | None, int]:
    """Available and all memory in octets from /proc/meminfo, whose unit is KiB."""
    found = {name: rest.split() for name, _, rest in (line.partition(":") for line in text.splitlines())}
    available, total = (found.get(name) for name in ("MemAvailable", "MemTotal"))
    return int(available[0]) << 10 if available else None, int(total[0]) << 10 if total else 0


def read_host() -> Reading:
    """The current counters of the host."""
    text = _STAT.read_text()
    steal, busy, total = processor_ticks(text)
    polled, by_others = idle_poll.pollers()
    pressure, memory_pressure = None if polled else _pressure(_PRESSURE), _pressure(_MEMORY_PRESSURE)
    available, memory = memory_octets(_MEMINFO.read_text())
    return Reading(
        time.monotonic_ns(),
        pressure,
        steal,
        busy,
        total,
        memory_pressure,
        available,
        memory,
        polled=polled,
        polled_by_others=by_others,
        interrupts=interrupt_ticks(text),
    )


def _pressure(path: Path) -> int | None:
    try:
        return pressure_us(path.read_text())
    except (OSError, ValueError):
        return None


class HostWatch(Sampler):
    """Samples the counters of the host and of the nodes of an emulation."""

    _of_model = False

    def __init__(self, world: World, *, read: Callable[[], Reading] = read_host) -> None:
        super().__init__(world, PERIOD, "hostwatch")
        self._read = read
        self._readings: list[Reading] = []
        self._nodes: dict[str, NodeTrack] = {}
        self._kinds: dict[str, str] = {}
        self._clocks: list[clocks.Clocks] = []
        self._turn = 0

    @property
    def nodes(self) -> dict[str, NodeTrack]:
        """CPU time samples of the nodes that ran programs."""
        return self._nodes

    @property
    def blind(self) -> list[str]:
        """Counters that this machine does not provide."""
        unseen = []
        if any(reading.polled for reading in self._readings):
            unseen.append("processor pressure of the whole machine, as idle processors polled")
        if any(reading.pressure_us is None and not reading.polled for reading in self._readings):
            unseen.append(f"processor pressure ({_PRESSURE} cannot be read)")
        if any(reading.memory_pressure_us is None for reading in self._readings):
            unseen.append(f"memory pressure ({_MEMORY_PRESSURE} cannot be read)")
        tracks = [track for track in self._nodes.values() if track.used]
        if tracks and all(track.used[-1].wait_ns is None for track in tracks):
            unseen.append("how long nodes waited for a processor")
        return unseen

    @property
    def polls(self) -> bool:
        """Whether idle processors poll."""
        return self._world.plan.idle_poll

    def cpu_pressure(self) -> list[Share]:
        """Share of time in which some task waited for a processor."""
        return self._waited(lambda reading: reading.pressure_us)

    def hidden_pressure(self) -> list[Share]:
        """Time in which another run's polling hid processor pressure: a share of 1."""
        return list(self._between(lambda a, b: float(a.polled_by_others or b.polled_by_others)))

    def memory_pressure(self) -> list[Share]:
        """Share of time in which some task waited for memory."""
        return self._waited(lambda reading: reading.memory_pressure_us)

    def memory_taken(self) -> list[Share]:
        """Share of the machine's memory that no program could get any more."""
        return list(
            self._between(
                lambda _, b: None if b.available is None or not b.memory else 1 - b.available / b.memory
            )
        )

    def available(self) -> list[tuple[int, int]]:
        """Octets of memory that programs could still get, by engine time in ns."""
        zero = self._world.zero
        return [(one.at - zero, one.available) for one in self._readings if one.available is not None]

    def steal(self) -> list[Share]:
        """Share of all processor time that a hypervisor gave to others."""
        return list(self._between(lambda a, b: _ratio(b.steal - a.steal, b.total - a.total)))

    def busy(self) -> list[Share]:
        """Share of all processor time that was used, but for polling."""
        tick = 1e9 / os.sysconf("SC_CLK_TCK")
        return list(
            self._between(
                lambda a, b: _ratio(b.busy - a.busy - (b.polled_ns - a.polled_ns) / tick, b.total - a.total)
            )
        )

    def interrupts(self) -> list[Share]:
        """Share of all processor time that interrupts took."""
        return list(self._between(lambda a, b: _ratio(b.interrupts - a.interrupts, b.total - a.total)))

    def neighbours(self) -> list[Share]:
        """Share of all processor time that processes outside of this run used, apart from interrupts.

        Empty where some of the run's processes are not accounted: nodes that share a guest.
        """
        tick = 1e9 / os.sysconf("SC_CLK_TCK")

        def share(a: Reading, b: Reading) -> float | None:
            if a.own_ns is None or b.own_ns is None:
                return None
            used = b.busy - a.busy - (b.interrupts - a.interrupts)
            return _ratio(used - (b.own_ns - a.own_ns) / tick, b.total - a.total)

        return list(self._between(share, [one for one in self._readings if one.own_ns is not None]))

    def node_kinds(self) -> dict[str, str]:
        """The kind of each node that ran programs."""
        return self._kinds

    def clock(self) -> str:
        """What was wrong with this machine's clocks, if anything."""
        return clocks.trouble(self._clocks[0], self._clocks[-1]) if self._clocks else ""

    def node_wait(self) -> dict[str, list[Share]]:
        """Per node: share of time in which one of its tasks was ready but had no processor."""
        return self._of_nodes(lambda cpu: cpu.wait_ns)

    def node_throttled(self) -> dict[str, list[Share]]:
        """Per node: share of time in which its CPU quota throttled it."""
        return self._of_nodes(lambda cpu: cpu.throttled_ns)

    def node_used(self) -> dict[str, list[Share]]:
        """Per node: number of processors used."""
        return self._of_nodes(lambda cpu: cpu.user_ns + cpu.system_ns)

    def node_share(self) -> dict[str, float]:
        """Per node: the largest share of one processor that it may use."""
        return self._world.shares

    def _sample(self) -> None:
        if self._turn % NODES_EVERY == 0:
            self._sample_nodes()
            self._sample_with_own()
        else:
            self._readings.append(self._reading())
        self._turn += 1

    def _sample_last(self) -> None:
        self._sample_nodes()
        self._sample_with_own()

    def _sample_with_own(self) -> None:
        self._clocks = [*self._clocks[:1], clocks.read()]
        own = None
        if not self._world.guests:
            of_nodes = (track.used[-1] for track in self._nodes.values())
            own = time.process_time_ns() + sum(cpu.user_ns + cpu.system_ns for cpu in of_nodes)
        self._readings.append(replace(self._reading(), own_ns=own))

    def _reading(self) -> Reading:
        return replace(self._read(), polled_ns=self._world.idle_polled())

    def _sample_nodes(self) -> None:
        for name, node in self._world.nodes.items():
            if node.kind == "native" and name not in self._nodes and node.state != "up":
                continue
            try:
                used = node.cpu()
                at_an_end = self._over.is_set() or name not in self._nodes
                within = node.within() if at_an_end else None
                footprint = node.footprint() if at_an_end else None
            except (LabError, OSError):
                continue  # stopped, or removed at the end of the run
            if name not in self._nodes and used.user_ns + used.system_ns == 0:
                continue
            track = self._nodes.setdefault(name, NodeTrack())
            self._kinds[name] = node.kind
            # Of thousands of idle nodes this would cost too much.
            if not track.used or used != track.used[-1]:
                track.add_switches(node.switches())
                if not track.used:
                    track.switched_before = sum(track.switches.values())
            track.times.append(time.monotonic_ns())
            track.used.append(used)
            if within is not None:
                track.within.append(within)
            if footprint is not None:
                track.footprints.append(footprint)

    def _waited(self, total: Callable[[Reading], int | None]) -> list[Share]:
        def share(a: Reading, b: Reading) -> float | None:
            before, after = total(a), total(b)
            return None if before is None or after is None else (after - before) * 1000 / (b.at - a.at)

        return list(self._between(share))

    def _between(
        self, value: Callable[[Reading, Reading], float | None], readings: list[Reading] | None = None
    ) -> Iterable[Share]:
        zero = self._world.zero
        found = self._readings if readings is None else readings
        for a, b in itertools.pairwise(found):
            share = value(a, b) if b.at > a.at else None
            if share is not None:
                yield Share(a.at - zero, b.at - zero, min(max(share, 0.0), 1.0))

    def _of_nodes(self, value: Callable[[Cpu], int | None]) -> dict[str, list[Share]]:
        found: dict[str, list[Share]] = {}
        zero = self._world.zero
        for name, track in self._nodes.items():
            shares = []
            for i in range(1, len(track.times)):
                start, end = track.times[i - 1], track.times[i]
                before, after = value(track.used[i - 1]), value(track.used[i])
                if before is not None and after is not None and end > start:
                    shares.append(Share(start - zero, end - zero, max(0.0, (after - before) / (end - start))))
            if shares:
                found[name] = shares
        return found


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole > 0 else None


def processors() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0))
