"""Events, measurements, claims and limits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airloom.scenario.model.base import Count, File, Model, Name
from airloom.scenario.model.links import Direction
from airloom.units import Duration, Fraction, Rate, Size


class Event(Model):
    """Something that changes at a given moment: one target, one action.

    A link can go ``up`` or ``down`` or get new properties (``set``); a node can ``stop`` and
    ``start``; a program can ``start``, ``stop`` or get a ``signal``.
    """

    at: Duration
    link: str | None = None
    node: str | None = None
    program: str | None = None
    set: Direction | None = Field(default=None, description="link: new properties, the others stay")
    direction: Literal["both", "forward", "backward"] = Field(
        default="both", description="link: which direction"
    )
    action: Literal["up", "down", "start", "stop", "signal"] | None = None
    signal: str | None = Field(default=None, description="program: such as SIGHUP")


class Ping(Model):
    """Round-trip time by the system's ping."""

    source: str = Field(alias="from")
    to: str
    count: Count = 10
    interval: Duration = Duration("200 ms")
    size: Size = Field(default=Size("56 B"), description="octets of payload, ICMP header not counted")
    at: Duration = Duration(0)


class Iperf3(Model):
    """Throughput by the system's iperf3."""

    source: str = Field(alias="from")
    to: str
    duration: Duration = Duration("10 s")
    protocol: Literal["tcp", "udp"] = "tcp"
    rate: Rate | None = Field(default=None, description="UDP: offered load")
    size: Size | None = Field(default=None, description="octets of one write (TCP) or datagram (UDP)")
    streams: Count = 1
    reverse: bool = Field(default=False, description="data flows from `to` to `from`")
    congestion: str | None = Field(default=None, description="TCP congestion control, such as cubic")
    at: Duration = Duration(0)


class Traffic(Model):
    """Throughput, delay, jitter and loss by Airloom's own generator, packet by packet."""

    source: str = Field(alias="from")
    to: str
    protocol: Literal["udp", "tcp", "rtp"] = "udp"
    pattern: Literal["constant", "poisson", "on-off", "trace"] = "constant"
    rate: Rate | None = Field(default=None, description="offered load, of the payload")
    interval: Duration | None = Field(default=None, description="between packets, instead of a rate")
    size: Size = Field(default=Size("1470 B"), description="octets of payload in a packet")
    duration: Duration = Duration("10 s")
    on: Duration | None = Field(default=None, description="on-off: how long it sends")
    off: Duration | None = Field(default=None, description="on-off: how long it is silent")
    trace: File | None = Field(default=None, description="trace: file of sending times")
    at: Duration = Duration(0)


class Measurement(Model):
    """One measurement; exactly one tool."""

    name: Name
    ping: Ping | None = None
    iperf3: Iperf3 | None = None
    traffic: Traffic | None = None

    @property
    def tool(self) -> Ping | Iperf3 | Traffic:
        """The one that is given."""
        tool = self.ping or self.iperf3 or self.traffic
        assert tool is not None
        return tool


class Claim(Model):
    """Something that the results must show, such as ``goodput.throughput >= 94 Mbit/s``."""

    id: Name
    statement: str
    check: str = Field(description="measurement.metric, a comparison (>= <= > < == !=), a quantity")
    source: str | None = Field(default=None, description="where the claim was made")


class Limits(Model):
    """What lateness and host load a valid run may have."""

    lateness_p99: Duration = Duration("1 ms")
    lateness_max: Duration = Duration("20 ms")
    cpu_pressure: Fraction = 0.20
    steal: Fraction = 0.05
