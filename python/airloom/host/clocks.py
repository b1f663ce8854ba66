"""What is wrong with this machine's clocks during a run: their source, their rate, and time asleep."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
SLOW = ("hpet", "acpi_pm", "pit", "jiffies")
"""Sources that a read has to leave the processor for: a microsecond or more each."""
MOST_SLEW = 300e-6
"""Correction of the clock's rate above which something is wrong; crystals deviate by 100e-6 at most."""
LEAST_SPAN_NS = 5_000_000_000
"""Shortest run of which the rate is judged: what two readings are apart must not count."""
LEAST_ASLEEP_NS = 1_000_000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks at one moment: the source's name, and three clocks of the kernel in ns."""

    source: str
    corrected: int
    """CLOCK_MONOTONIC, whose rate NTP corrects."""
    raw: int
    """CLOCK_MONOTONIC_RAW, whose rate nobody corrects."""
    asleep: int
    """CLOCK_BOOTTIME minus CLOCK_MONOTONIC: how long the machine was suspended since it booted."""


def read() -> Clocks:
    """Returns the clocks now."""
    try:
        source = _SOURCE.read_text().strip()
    except OSError:
        source = ""
    found = []
    for _ in range(_TRIES):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        middle = (before + after) // 2
        found.append((after - before, Clocks(source, middle, raw, boot - middle)))
    # The one between whose readings the thread was interrupted least.
    return min(found, key=lambda one: one[0])[1]


def trouble(before: Clocks, after: Clocks) -> str:
    """Returns what is wrong with the clocks in words; empty if nothing is."""
    asleep = after.asleep - before.asleep
    if asleep > LEAST_ASLEEP_NS:
        return f"this machine was suspended for {asleep / 1e9:.3g} s"
    if before.source != after.source:
        return f"the kernel changed its clock source from {before.source} to {after.source}"
    if after.source in SLOW:
        return f"the clock source {after.source} is slow to read"
    span = after.raw - before.raw
    if span < LEAST_SPAN_NS:
        return ""
    slew = (after.corrected - before.corrected) / span - 1
    if abs(slew) > MOST_SLEW:
        return f"the clock was corrected by {slew * 1e6:+.0f} millionths of its rate"
    return ""
