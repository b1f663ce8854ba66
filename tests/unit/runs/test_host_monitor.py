"""What the host's counters say about its memory and processors, from invented samples."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airloom.runs.host_monitor import HostWatch, NodeTrack, Reading, memory_octets, read_host

SECOND = 1_000_000_000
MEMINFO = """\
MemTotal:       16000000 kB
MemFree:          100000 kB
MemAvailable:    4000000 kB
"""


def watch(*readings: Reading) -> HostWatch:
    """A watch that has taken these samples; time zero is at 10 s."""
    world: Any = SimpleNamespace(zero=10 * SECOND, nodes={}, shares={})
    made = HostWatch(world)
    made._readings = list(readings)
    return made


def sample(second: int, waited_us: int | None, available: int | None) -> Reading:
    return Reading((10 + second) * SECOND, 0, 0, 0, 100 * second, waited_us, available, 1000)


def test_memory_is_read_in_octets() -> None:
    assert memory_octets(MEMINFO) == (4_000_000 << 10, 16_000_000 << 10)
    assert memory_octets("MemFree: 1 kB\n") == (None, 0)


def test_this_machine_tells_its_memory() -> None:
    now = read_host()
    assert now.available is not None
    assert 0 < now.available < now.memory


def test_memory_pressure_and_memory_in_use_over_time() -> None:
    seen = watch(sample(0, 0, 900), sample(1, 250_000, 400), sample(2, 250_000, 5))
    assert [(one.start, one.end, one.value) for one in seen.memory_pressure()] == [
        (0, SECOND, 0.25),
        (SECOND, 2 * SECOND, 0.0),
    ]
    assert [one.value for one in seen.memory_taken()] == pytest.approx([0.6, 0.995])
    assert seen.available() == [(0, 900), (SECOND, 400), (2 * SECOND, 5)]
    assert seen.blind == []


def test_a_machine_without_memory_pressure_is_blind_to_it() -> None:
    seen = watch(sample(0, None, None), sample(1, None, None))
    assert seen.memory_pressure() == seen.memory_taken() == seen.available() == []
    assert seen.blind == ["memory pressure (/proc/pressure/memory cannot be read)"]


def test_processors_that_poll_are_neither_busy_nor_a_shortage() -> None:
    """Of two processors in one second, 100 ticks each: one polls, the other works for 40 ticks."""
    before = Reading(10 * SECOND, None, 0, 0, 0, 0, polled=True, polled_ns=0)
    after = Reading(11 * SECOND, None, 0, 140, 200, 0, polled=True, polled_ns=SECOND)
    seen = watch(before, after)
    assert seen.cpu_pressure() == []
    assert [one.value for one in seen.busy()] == pytest.approx([0.2])
    assert seen.blind == ["processor pressure of the whole machine, as idle processors polled"]


def test_context_switches_never_run_backwards() -> None:
    """Threads end before the last sample, and one number is given to another thread."""
    track = NodeTrack()
    track.add_switches({1: 1000, 2: 500})
    track.switched_before = 1500
    track.add_switches({1: 1100, 2: 700})
    track.add_switches({1: 1150})
    assert track.switched == 350
    track.add_switches({2: 4})
    assert track.switched == 354
    assert NodeTrack().switched is None
