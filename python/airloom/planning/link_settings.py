"""Settings of one direction of a link, in plain numbers, and their one encoding for the engine.

Times are in nanoseconds, sizes in octets, rates in bit/s and shares from 0 to 1. The engine reads the
encoding with the names of ``engine/src/settings.rs``; None and empty parts stand for its defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airloom.units.figures import readable
from airloom.units.text import percent

ETHERNET_OVERHEAD = 24
"""Octets that the engine charges beside each frame where nothing else is said."""
DEFAULT_PACKETS = 1000
"""How many frames may wait where no limit is given."""
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class RateTrace:
    """A rate that varies: at each instant of a period so many octets may leave."""

    opportunities: Sequence[int]
    period: int
    octets: int

    @property
    def mean(self) -> int:
        """The mean rate in bit/s."""
        return len(self.opportunities) * self.octets * 8 * 10**9 // self.period

    def engine(self) -> dict[str, Any]:
        """It in the engine's words."""
        return {
            "opportunities_ns": list(self.opportunities),
            "period_ns": self.period,
            "octets": self.octets,
        }


@dataclass(frozen=True, slots=True)
class Law:
    """A law of jitter, of bursty loss or of a queue: the engine's word for it, and its parameters."""

    word: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def engine(self) -> Any:
        """It in the engine's words."""
        return {self.word: dict(self.parameters)}


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Where frames wait for the wire."""

    packets: int | None = DEFAULT_PACKETS
    octets: int | None = None
    time: int | None = None
    discipline: Law | None = None
    """None drops what does not fit."""
    ecn: bool = False

    def engine(self) -> dict[str, Any]:
        """It in the engine's words."""
        return {
            "packets": self.packets,
            "octets": self.octets,
            "time_ns": self.time,
            "discipline": "drop-tail" if self.discipline is None else self.discipline.engine(),
            "ecn": self.ecn,
        }


@dataclass(frozen=True, slots=True)
class Receiver:
    """What the equipment at the far end adds."""

    latency: int = 0
    moderation: int = 0
    service: Law | None = None
    tick: int = 0

    def engine(self) -> dict[str, Any]:
        """It in the engine's words; what is zero is left out."""
        given = {
            "latency_ns": self.latency,
            "moderation_ns": self.moderation,
            "service": None if self.service is None else self.service.engine(),
            "tick_ns": self.tick,
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """One direction of a link."""

    rate: int | RateTrace | None = None
    """None is unlimited."""
    delay: int = 0
    jitter: Law | None = None
    jitter_reorders: bool = False
    loss: float | Law = 0.0
    """Of each frame, or in bursts."""
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float = 0.0
    mtu: int | None = None
    overhead: int = ETHERNET_OVERHEAD
    queue: QueueSettings | None = None
    segments: Literal["timed", "carried"] = "timed"
    late: Literal["catch-up", "slip"] = "catch-up"
    gap: int = 0
    receiver: Receiver | None = None

    @property
    def constant_rate(self) -> int | None:
        """The rate in bit/s, if there is one and it does not vary."""
        return self.rate if isinstance(self.rate, int) else None

    @property
    def mean_rate(self) -> int | None:
        """The rate in bit/s, that of a trace on average; None is unlimited."""
        return self.rate.mean if isinstance(self.rate, RateTrace) else self.rate

    @property
    def traced(self) -> bool:
        """Whether the rate follows a trace."""
        return isinstance(self.rate, RateTrace)

    def engine(self) -> dict[str, Any]:
        """It in the engine's words; what is at the engine's default is left out."""
        found: dict[str, Any] = {}
        if isinstance(self.rate, RateTrace):
            found["rate"] = {"trace": self.rate.engine()}
        elif self.rate is not None:
            found["rate"] = {"bits-per-second": self.rate}
        if self.delay:
            found["delay_ns"] = self.delay
        if self.jitter is not None:
            found["jitter"] = self.jitter.engine()
        if isinstance(self.loss, Law):
            found["loss"] = self.loss.engine()
        elif self.loss:
            found["loss"] = {"bernoulli": {"probability": self.loss}}
        for name in ("jitter_reorders", "duplicate", "corrupt", "reorder"):
            if value := getattr(self, name):
                found[name] = value
        if self.mtu is not None:
            found["mtu"] = self.mtu
        if self.overhead != ETHERNET_OVERHEAD:
            found["overhead"] = self.overhead
        if self.queue is not None:
            found["queue"] = self.queue.engine()
        if self.segments != "timed":
            found["segments"] = self.segments
        if self.late != "catch-up":
            found["late"] = self.late
        if self.gap:
            found["gap_ns"] = self.gap
        if self.receiver is not None and (receiver := self.receiver.engine()):
            found["receiver"] = receiver
        return found

    @property
    def text(self) -> str:
        """It in a few words: ``100 Mbit/s, 1 ms``."""
        if self.traced:
            parts = ["a trace"]
        else:
            rate = self.constant_rate
            parts = ["unlimited" if rate is None else readable(rate, "bit/s", _DIGITS)]
        if self.delay:
            parts.append(readable(self.delay, "ns", _DIGITS))
        if self.jitter is not None:
            parts.append(f"jitter {self.jitter.word}")
        if isinstance(self.loss, Law):
            parts.append("bursty loss")
        elif self.loss:
            parts.append(f"loss {percent(self.loss)}")
        for name in ("duplicate", "corrupt", "reorder"):
            if value := getattr(self, name):
                parts.append(f"{name} {percent(value)}")
        return ", ".join(parts)
