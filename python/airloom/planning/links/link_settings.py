"""Settings of one direction of a link as plain numbers, and their encoding for the engine.

Times are in nanoseconds, sizes in octets, rates in bit/s and shares from 0 to 1. The encoding uses
the names of ``engine/src/settings.rs``; the engine's defaults replace None and empty parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airloom.units.figures import readable
from airloom.units.text import percent, plural

if TYPE_CHECKING:
    from airloom.scenario.model import Queue

ETHERNET_OVERHEAD = 24
"""Default overhead in octets of a frame: preamble 8, frame check sequence 4, inter-frame gap 12."""
TUNNEL_OVERHEAD = 4
"""Default overhead in octets of a packet on a trace: mahimahi counts the header of its tunnel device."""
LARGEST_PACKET = 1500
"""Octets of a full packet, one of which an opportunity of a trace carries."""
DEFAULT_PACKETS = 1000
"""Default limit of a queue, in frames."""
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class RateTrace:
    """A variable rate: a periodic list of instants at which a number of octets may leave."""

    opportunities: Sequence[int]
    period: int
    octets: int
    path: str = field(default="", compare=False)
    """Path of its file."""

    @property
    def mean(self) -> int:
        """Returns the mean rate in bit/s, of packets of layer 3 of full length."""
        octets = self.octets * LARGEST_PACKET // (LARGEST_PACKET + TUNNEL_OVERHEAD)
        return len(self.opportunities) * octets * 8 * 10**9 // self.period

    def engine(self) -> dict[str, Any]:
        """Returns the engine's encoding."""
        return {
            "opportunities_ns": list(self.opportunities),
            "period_ns": self.period,
            "octets": self.octets,
        }


@dataclass(frozen=True, slots=True)
class Law:
    """A law of jitter, bursty loss or a queue: the engine's name for it, and its parameters."""

    word: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def engine(self) -> Any:
        """Returns the engine's encoding."""
        return {self.word: dict(self.parameters)}


@dataclass(frozen=True, slots=True)
class PolicerSettings:
    """A policer: its rate in bit/s and its bucket in octets."""

    rate: int
    burst: int

    def engine(self) -> dict[str, int]:
        """Returns the engine's encoding."""
        return {"bits_per_second": self.rate, "burst_octets": self.burst}


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The queue in front of the wire."""

    packets: int | None = DEFAULT_PACKETS
    octets: int | None = None
    time: int | None = None
    discipline: Law | None = None
    """None is tail drop."""
    ecn: bool = False
    said: Queue | None = field(default=None, compare=False, repr=False)
    """The queue as the scenario says it, which a later change in part begins with."""

    def engine(self) -> dict[str, Any]:
        """Returns the engine's encoding."""
        return {
            "packets": self.packets,
            "octets": self.octets,
            "time_ns": self.time,
            "discipline": "drop-tail" if self.discipline is None else self.discipline.engine(),
            "ecn": self.ecn,
        }

    @property
    def text(self) -> str:
        """Returns a short description: ``fq-codel, 1000 packets, ECN``."""
        limits = (
            f"{self.packets} {plural('packet', self.packets)}" if self.packets is not None else "",
            readable(self.octets, "B", _DIGITS) if self.octets is not None else "",
            readable(self.time, "ns", _DIGITS) if self.time is not None else "",
        )
        discipline = "drop-tail" if self.discipline is None else self.discipline.word
        return ", ".join(part for part in (discipline, *limits, "ECN" if self.ecn else "") if part)


@dataclass(frozen=True, slots=True)
class Receiver:
    """The model of the equipment at the receiving end."""

    latency: int = 0
    moderation: int = 0
    service: Law | None = None
    tick: int = 0

    def engine(self) -> dict[str, Any]:
        """Returns the engine's encoding, without zeros."""
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
    burst: int | None = None
    """Octets of a token bucket that is filled at the rate; None: no bursts."""
    peak: int | None = None
    """Rate of a burst in bit/s; None is unlimited."""
    policer: PolicerSettings | None = None
    delay: int = 0
    jitter: Law | None = None
    jitter_reorders: bool = False
    loss: float | Law = 0.0
    """Loss probability of each frame, or a law of bursts."""
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float = 0.0
    mtu: int | None = None
    overhead: int | None = None
    """Octets added to each frame, on a trace to each packet; None: the default of either."""
    queue: QueueSettings | None = None
    segments: Literal["timed", "carried"] = "timed"
    coalesce: int | None = None
    """Maximum time in ns for which segments gather at the node's port; None is the engine's default."""
    late: Literal["catch-up", "slip"] = "catch-up"
    carrier: Literal["follow", "keep"] = "follow"
    gap: int = 0
    receiver: Receiver | None = None

    @property
    def constant_rate(self) -> int | None:
        """Returns the constant rate in bit/s; None if there is none."""
        return self.rate if isinstance(self.rate, int) else None

    @property
    def mean_rate(self) -> int | None:
        """Returns the rate in bit/s, averaged over a trace; None is unlimited."""
        return self.rate.mean if isinstance(self.rate, RateTrace) else self.rate

    @property
    def traced(self) -> bool:
        """True if the rate follows a trace."""
        return isinstance(self.rate, RateTrace)

    @property
    def overhead_in_force(self) -> int:
        """Returns the octets added to each frame, on a trace to each packet."""
        if self.overhead is not None:
            return self.overhead
        return TUNNEL_OVERHEAD if self.traced else ETHERNET_OVERHEAD

    def engine(self) -> dict[str, Any]:
        """Returns the engine's encoding, without defaults."""
        found: dict[str, Any] = {}
        if isinstance(self.rate, RateTrace):
            found["rate"] = {"trace": self.rate.engine()}
            found["counts"] = "packet"
        elif self.rate is not None and self.burst is not None:
            bucket = {"bits_per_second": self.rate, "burst_octets": self.burst}
            found["rate"] = {"token-bucket": {**bucket, "peak_bits_per_second": self.peak}}
        elif self.rate is not None:
            found["rate"] = {"bits-per-second": self.rate}
        if self.policer is not None:
            found["policer"] = self.policer.engine()
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
        if self.overhead_in_force != ETHERNET_OVERHEAD:
            found["overhead"] = self.overhead_in_force
        if self.queue is not None:
            found["queue"] = self.queue.engine()
        if self.coalesce is not None:
            found["coalesce_ns"] = self.coalesce
        if self.segments != "timed":
            found["segments"] = self.segments
        if self.late != "catch-up":
            found["late"] = self.late
        if self.carrier != "follow":
            found["carrier"] = self.carrier
        if self.gap:
            found["gap_ns"] = self.gap
        if self.receiver is not None and (receiver := self.receiver.engine()):
            found["receiver"] = receiver
        return found

    @property
    def text(self) -> str:
        """Returns a short description: ``100 Mbit/s, 1 ms``."""
        if self.traced:
            parts = ["a trace"]
        else:
            rate = self.constant_rate
            parts = ["unlimited" if rate is None else readable(rate, "bit/s", _DIGITS)]
        if self.burst is not None:
            parts.append(f"burst {readable(self.burst, 'B', _DIGITS)}")
        if self.policer is not None:
            parts.append(f"policer {readable(self.policer.rate, 'bit/s', _DIGITS)}")
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
