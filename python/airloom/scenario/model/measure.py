"""Events, measurements, claims and limits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airloom.scenario.model.base import Count, File, Model, Name
from airloom.scenario.model.links import Direction
from airloom.scenario.model.media import Position, Tuning
from airloom.units.quantities import Duration, Fraction, Rate, Size


class Event(Model):
    """Something that changes at a given moment: one target, one action.

    A link can go ``up`` or ``down`` or get new properties (``set``); a node can ``stop`` in good
    order or be killed (``kill``), ``start`` again, ``pause`` and ``resume``, or be put at another
    ``position``; a radio can go ``up`` or ``down``, or be tuned (``tune``); a program can ``start``,
    ``stop`` or get a ``signal``.
    """

    at: Duration = Field(description="counted from the start of the run")
    link: str | None = Field(default=None, description="name of the link")
    node: str | None = Field(
        default=None, description="name of the node, `$first`, `$last`, or a guest that several share"
    )
    radio: str | None = Field(default=None, description="``node:radio``, or the node if it has one radio")
    program: str | None = Field(default=None, description="name of the program")
    set: Direction | None = Field(default=None, description="link: new properties, the others stay")
    direction: Literal["both", "forward", "backward"] = Field(
        default="both", description="link: which direction"
    )
    tune: Tuning | None = Field(default=None, description="radio: what changes, the rest stays")
    position: Position | None = Field(default=None, description="node: where it is and stays from then on")
    action: Literal["up", "down", "start", "stop", "kill", "pause", "resume", "signal"] | None = Field(
        default=None, description="what becomes of the target"
    )
    signal: str | None = Field(default=None, description="program: such as SIGHUP")


Family = Literal["ipv4", "ipv6"]
_USUAL_SIZE = 1470
"""Octets of a UDP datagram where none are given."""


class Ping(Model):
    """Round-trip time by the system's ping."""

    source: str = Field(alias="from", description="node that begins, or `$first`, `$last`")
    to: str = Field(description="node that answers, or `$first`, `$last`")
    count: Count = Field(default=10, description="how many requests")
    interval: Duration = Field(default=Duration("200 ms"), description="between requests")
    size: Size = Field(default=Size("56 B"), description="octets of payload, ICMP header not counted")
    family: Family | None = Field(default=None, description="of the address; by default that of the first")
    at: Duration = Field(default=Duration(0), description="start, counted from the start of the run")

    @property
    def least(self) -> int:
        """How long it takes at least: ns."""
        return self.interval * (self.count - 1)

    @property
    def expected(self) -> int:
        """How long it takes if all goes well: ns."""
        return self.interval * self.count

    @property
    def offered(self) -> float | None:
        """Packets a second that it puts on the path: requests and answers."""
        return 2e9 / max(1, self.interval)


class Iperf3(Model):
    """Throughput by the system's iperf3."""

    source: str = Field(alias="from", description="node that begins, or `$first`, `$last`")
    to: str = Field(description="node that answers, or `$first`, `$last`")
    duration: Duration = Field(default=Duration("10 s"), description="how long it sends")
    protocol: Literal["tcp", "udp"] = Field(default="tcp", description="what carries the data")
    rate: Rate | None = Field(default=None, description="UDP: offered load")
    size: Size | None = Field(default=None, description="octets of one write (TCP) or datagram (UDP)")
    streams: Count = Field(default=1, description="connections at once")
    reverse: bool = Field(default=False, description="data flows from `to` to `from`")
    congestion: str | None = Field(default=None, description="TCP congestion control, such as cubic")
    family: Family | None = Field(default=None, description="of the address; by default that of the first")
    at: Duration = Field(default=Duration(0), description="start, counted from the start of the run")

    @property
    def least(self) -> int:
        """How long it takes at least: ns."""
        return self.duration

    @property
    def expected(self) -> int:
        """How long it takes if all goes well: ns."""
        return self.duration

    @property
    def offered(self) -> float | None:
        """Packets a second that it puts on the path; None: as many as the path carries."""
        return None if self.rate is None else self.rate / (8 * (self.size or _USUAL_SIZE))


class Traffic(Model):
    """Throughput, delay, jitter and loss by Airloom's own generator, packet by packet."""

    source: str = Field(alias="from", description="node that begins, or `$first`, `$last`")
    to: str = Field(description="node that answers, or `$first`, `$last`")
    protocol: Literal["udp", "tcp", "rtp"] = Field(default="udp", description="what carries the packets")
    pattern: Literal["constant", "poisson", "on-off", "trace"] = Field(
        default="constant", description="when packets are sent"
    )
    rate: Rate | None = Field(default=None, description="offered load; on-off: while it is on")
    rate_of: Literal["payload", "frame", "wire"] = Field(
        default="payload", description="what `rate` counts: wire is the frame with preamble and gap"
    )
    interval: Duration | None = Field(default=None, description="between packets, instead of a rate")
    size: Size = Field(default=Size("1470 B"), description="octets of payload in a packet")
    frame: Size | None = Field(default=None, description="octets of an Ethernet frame with FCS, instead")
    dscp: int = Field(default=0, ge=0, le=63, description="differentiated services code point")
    ecn: int = Field(default=0, ge=0, le=3, description="ECN bits: 1 and 2 say that marks are understood")
    duration: Duration = Field(default=Duration("10 s"), description="how long it sends")
    on: Duration | None = Field(default=None, description="on-off: how long it sends")
    off: Duration | None = Field(default=None, description="on-off: how long it is silent")
    trace: File | None = Field(
        default=None, description="trace: file with a line `time_ns octets` for each packet"
    )
    family: Family | None = Field(default=None, description="of the address; by default that of the first")
    at: Duration = Field(default=Duration(0), description="start, counted from the start of the run")
    stages: bool = Field(
        default=False, description="UDP, RTP: also where the packets' time goes, stage by stage of their path"
    )

    @property
    def least(self) -> int:
        """How long it takes at least: ns."""
        return self.duration

    @property
    def expected(self) -> int:
        """How long it takes if all goes well: ns."""
        return self.duration

    @property
    def offered(self) -> float | None:
        """Packets a second that it puts on the path; None: as many as the path carries."""
        if self.interval:
            return 1e9 / self.interval
        return None if self.rate is None else self.rate / (8 * self.size)


TOOLS = ("ping", "iperf3", "traffic")
"""What a measurement can be made with: the keys of :class:`Measurement`."""


class Measurement(Model):
    """One measurement; exactly one tool."""

    name: Name = Field(description="by which claims and results speak of it")
    ping: Ping | None = Field(default=None, description="the system's ping")
    iperf3: Iperf3 | None = Field(default=None, description="the system's iperf3")
    traffic: Traffic | None = Field(default=None, description="Airloom's own generator")

    @property
    def tool(self) -> Ping | Iperf3 | Traffic:
        """The one that is given."""
        tool: Ping | Iperf3 | Traffic | None = getattr(self, self.word)
        assert tool is not None
        return tool

    @property
    def word(self) -> str:
        """Its key."""
        return next(word for word in TOOLS if getattr(self, word) is not None)


class Claim(Model):
    """Something that the results must show, such as ``goodput.throughput >= 94 Mbit/s``."""

    id: Name = Field(description="short name")
    statement: str = Field(description="the claim in words")
    check: str = Field(description="measurement.metric, a comparison (>= <= > < == !=), a quantity")
    source: str | None = Field(default=None, description="where the claim was made")


class Limits(Model):
    """What lateness and host load a valid run may have."""

    lateness_p99: Duration = Field(
        default=Duration("1 ms"), description="99th percentile of how late frames were delivered"
    )
    lateness_max: Duration = Field(default=Duration("20 ms"), description="the latest frame")
    cpu_pressure: Fraction = Field(
        default=0.20, description="part of the time in which something waited for a processor"
    )
    steal: Fraction = Field(default=0.05, description="part of the processors' time taken by a hypervisor")
