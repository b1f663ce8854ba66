"""Events, measurements, claims and limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import Count, File, Model, Name
from airloom.scenario.model.links import Direction
from airloom.scenario.model.media import Tuning
from airloom.scenario.model.motion import Position
from airloom.scenario.model.ready_tests import Test
from airloom.scenario.model.slices import GrantChange
from airloom.units.given import given
from airloom.units.quantities import Duration, Fraction, Rate, Size


class Event(Model):
    """Timed change: one target, one action.

    Actions of a link: ``up``, ``down``, new properties (``set``). Of a node: ``stop`` (orderly), ``kill``,
    ``start``, ``pause``, ``resume``, a new ``position``. Of a radio: ``up``, ``down``, new settings
    (``tune``). Of a program: ``start``, ``stop``, ``signal``. Of a slice: new limits (``grant``). Of turns:
    ``start``, ``stop``.
    """

    at: Duration = Field(description="from time zero of the run")
    link: str | None = Field(default=None, description="name of the link")
    node: str | None = Field(
        default=None, description="name of the node, `$first`, `$last`, or a guest that several share"
    )
    radio: str | None = Field(default=None, description="``node:radio``, or the node if it has one radio")
    program: str | None = Field(default=None, description="name of the program")
    slice: str | None = Field(default=None, description="name of the slice, which has a grant")
    turns: str | None = Field(default=None, description="name of the turns")
    set: Direction | None = Field(
        default=None,
        description="link: new properties; others stay, also those of its queue that are not named",
    )
    direction: Literal["both", "forward", "backward"] = Field(
        default="both", description="link: direction that changes"
    )
    tune: Tuning | None = Field(default=None, description="radio: new settings; others stay")
    position: Position | None = Field(default=None, description="node: new position")
    grant: GrantChange | None = Field(default=None, description="slice: new limits; others stay")
    action: Literal["up", "down", "start", "stop", "kill", "pause", "resume", "signal"] | None = Field(
        default=None, description="action on the target"
    )
    signal: str | None = Field(default=None, description="program: signal, such as SIGHUP")
    awaited: bool = Field(
        default=True,
        description="a run without a duration lasts until the event; not those of a link's `visibility`",
    )


Family = Literal["ipv4", "ipv6"]
_USUAL_SIZE = 1470
"""Default payload of a UDP datagram in octets."""
_OWN_HEADER = 18
"""Header of the generator in every packet, in octets: see traffic/src/packet.rs."""
_RTP_HEADER = 12
_RESOLUTION = (
    "address resolution on the path: before (default) knows the neighbours from the start; during leaves it "
    "to the nodes, as a ping without a measurement of another kind does by default"
)
_START = "start, from time zero of the run; measurements without it, or with `0 s`, take turns"


def whole_seconds(duration: int) -> int:
    """Returns a duration in ns as iperf3 takes it: in s, rounded up, at least 1."""
    return max(1, -(-duration // 10**9))


class Ping(Model):
    """Round-trip time, by the installed ping."""

    source: str = Field(alias="from", description="node that starts the measurement, or `$first`, `$last`")
    to: str = Field(description="node that responds, or `$first`, `$last`")
    count: Count = Field(default=10, description="number of requests")
    interval: Duration = Field(
        default=Duration("200 ms"), description="time between requests, in whole milliseconds"
    )
    size: Size = Field(default=Size("56 B"), description="octets of payload without the ICMP header")
    dscp: int = Field(default=0, ge=0, le=63, description="differentiated services code point")
    family: Family | None = Field(
        default=None, description="address family; by default that of the first address"
    )
    unreachable: Literal["count", "fail"] = Field(
        default="count",
        description="no route to the target: count (default) counts requests as lost; fail ends the run if "
        "there is none at the start",
    )
    resolution: Literal["before", "during"] | None = Field(default=None, description=_RESOLUTION)
    at: Duration = Field(default=Duration(0), description=_START)

    @property
    def ports(self) -> int:
        """Returns the number of transport ports that it needs."""
        return 1

    @property
    def least(self) -> int:
        """Returns the shortest duration in ns."""
        return self.interval * (self.count - 1)

    @property
    def expected(self) -> int:
        """Returns the duration in ns if it succeeds."""
        return self.interval * self.count

    @property
    def offered(self) -> float | None:
        """Returns the packets per second that it sends: requests and replies."""
        return 2e9 / max(1, self.interval)


class Iperf3(Model):
    """Throughput, by the installed iperf3."""

    source: str = Field(alias="from", description="node that starts the measurement, or `$first`, `$last`")
    to: str = Field(description="node that responds, or `$first`, `$last`")
    duration: Duration = Field(default=Duration("10 s"), description="duration of sending")
    protocol: Literal["tcp", "udp"] = Field(default="tcp", description="transport protocol")
    rate: Rate | None = Field(default=None, description="UDP: offered load")
    size: Size | None = Field(default=None, description="octets of one write (TCP) or datagram (UDP)")
    streams: Count = Field(default=1, description="parallel connections")
    reverse: bool = Field(default=False, description="data flows from `to` to `from`")
    congestion: str | None = Field(default=None, description="TCP congestion control, such as cubic")
    dscp: int = Field(default=0, ge=0, le=63, description="differentiated services code point")
    family: Family | None = Field(
        default=None, description="address family; by default that of the first address"
    )
    resolution: Literal["before", "during"] | None = Field(default=None, description=_RESOLUTION)
    at: Duration = Field(default=Duration(0), description=_START)

    @property
    def ports(self) -> int:
        """Returns the number of transport ports that it needs."""
        return 1

    @property
    def seconds(self) -> int:
        """Returns the duration in s: iperf3 takes whole seconds, so it is rounded up."""
        return whole_seconds(self.duration)

    @property
    def least(self) -> int:
        """Returns the shortest duration in ns."""
        return self.seconds * 10**9

    @property
    def expected(self) -> int:
        """Returns the duration in ns if it succeeds."""
        return self.least

    @property
    def offered(self) -> float | None:
        """Returns the packets per second that it sends; None: as many as the path carries."""
        return None if self.rate is None else self.rate / (8 * given(self.size, _USUAL_SIZE))


class Traffic(Model):
    """Throughput, delay, jitter and loss of every packet, by Airloom's generator."""

    source: str = Field(alias="from", description="node that starts the measurement, or `$first`, `$last`")
    to: str = Field(description="node that responds, or `$first`, `$last`")
    protocol: Literal["udp", "tcp", "rtp"] = Field(default="udp", description="transport protocol")
    pattern: Literal["constant", "poisson", "on-off", "trace", "replay"] = Field(
        default="constant", description="schedule of packets"
    )
    rate: Rate | None = Field(default=None, description="offered load; on-off: the rate while on")
    rate_of: Literal["payload", "frame", "wire"] = Field(
        default="payload", description="octets that `rate` counts; wire: frame with preamble and gap"
    )
    interval: Duration | None = Field(default=None, description="time between packets, instead of a rate")
    size: Size = Field(default=Size("1470 B"), description="octets of payload in a packet")
    frame: Size | None = Field(
        default=None, description="octets of an Ethernet frame with FCS, instead of `size`"
    )
    dscp: int = Field(default=0, ge=0, le=63, description="differentiated services code point")
    ecn: int = Field(default=0, ge=0, le=3, description="ECN bits; 1 and 2 mean ECN-capable")
    duration: Duration = Field(
        default=Duration("10 s"), description="duration of sending; replay: that of the capture by default"
    )
    on: Duration | None = Field(default=None, description="on-off: how long it sends")
    off: Duration | None = Field(default=None, description="on-off: duration of silence")
    trace: File | None = Field(
        default=None, description="trace: file with a line `time_ns octets` for each packet"
    )
    capture: File | None = Field(
        default=None,
        description="replay: pcap or pcapng file; a datagram leaves at the time of each frame and makes one "
        "as long",
    )
    speed: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] = Field(
        default=1.0, description="replay: so many times as fast as captured"
    )
    only_from: str | None = Field(
        default=None, description="replay: only frames from this IPv4, IPv6 or MAC address; all by default"
    )
    split: Annotated[Size, Field(ge=128, le=65549)] = Field(
        default=Size("1514 B"),
        description="replay: longer frames, which an offload of the capturing machine joined, are sent in "
        "parts of at most so many octets, without FCS",
    )
    family: Family | None = Field(
        default=None, description="address family; by default that of the first address"
    )
    resolution: Literal["before", "during"] | None = Field(default=None, description=_RESOLUTION)
    at: Duration = Field(default=Duration(0), description=_START)
    stages: bool = Field(
        default=False, description="UDP, RTP: also measures the delay of each stage of the packets' path"
    )

    @property
    def ports(self) -> int:
        """Returns the number of transport ports that it needs."""
        return 1

    @property
    def least_payload(self) -> int:
        """Returns the smallest packet in octets that holds the generator's own header."""
        return _OWN_HEADER + (_RTP_HEADER if self.protocol == "rtp" else 0)

    @property
    def least(self) -> int:
        """Returns the shortest duration in ns."""
        return self.duration

    @property
    def expected(self) -> int:
        """Returns the duration in ns if it succeeds."""
        return self.duration

    @property
    def offered(self) -> float | None:
        """Returns the packets per second that it sends; None: as many as the path carries."""
        if self.interval:
            return 1e9 / self.interval
        return None if self.rate is None else self.rate / (8 * self.size)


TOOLS = ("ping", "iperf3", "traffic", "test")
"""The tools of measurements: keys of :class:`Measurement`."""


class Measurement(Model):
    """Measurement by exactly one tool."""

    name: Name = Field(description="name in claims and results")
    ping: Ping | None = Field(default=None, description="the system's ping")
    iperf3: Iperf3 | None = Field(default=None, description="the system's iperf3")
    traffic: Traffic | None = Field(default=None, description="Airloom's own generator")
    test: Test | None = Field(default=None, description="a ready test of several programs")

    @property
    def tool(self) -> Ping | Iperf3 | Traffic | Test:
        """Returns the tool that is given."""
        tool: Ping | Iperf3 | Traffic | Test | None = getattr(self, self.word)
        assert tool is not None
        return tool

    @property
    def word(self) -> str:
        """Returns the key of the tool."""
        return next(word for word in TOOLS if getattr(self, word) is not None)


class Claim(Model):
    """Claim about the results, such as ``goodput.throughput >= 94 Mbit/s``."""

    id: Name = Field(description="short name")
    statement: str = Field(description="statement in words")
    check: str = Field(description="measurement.metric, a comparison (>= <= > < == !=), a quantity")
    source: str | None = Field(default=None, description="source of the claim")


class Limits(Model):
    """Limits of lateness and host load of a valid run."""

    lateness_p99: Duration = Field(
        default=Duration("1 ms"), description="99th percentile of the lateness of deliveries"
    )
    lateness_max: Duration = Field(default=Duration("20 ms"), description="largest lateness of a delivery")
    cpu_pressure: Fraction = Field(
        default=0.20, description="share of time in which a task waited for a processor"
    )
    steal: Fraction = Field(default=0.05, description="share of processor time taken by a hypervisor")
    paused: Fraction = Field(
        default=0.002,
        description="share of the run that a link lost because the engine was late; above it the "
        "run is `degraded`",
    )
    """Up to this share the mean rate of a link is right to 0.2 %."""
    paused_max: Fraction = Field(default=0.05, description="the same share, above which the run is `invalid`")
    """Above this share the mean rate of a link is at least 5 % too low."""
