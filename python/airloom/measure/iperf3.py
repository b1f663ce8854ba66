"""Throughput measured by the system's ``iperf3`` (3.12 or later), from the JSON of both ends.

iperf3's client exits with code 0 even if it could not connect (3.12 with ``--json``), so errors are
read from the ``error`` field. Throughput is the payload that the receiver got (``sum_received``).
The receiver of UDP counts losses up to the last packet that came, so those behind it, possibly all,
are taken from the sender's count. iperf3 accepts whole seconds only, so a duration is rounded up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airloom.measure.tool import (
    Listening,
    MeasureError,
    Metric,
    Outcome,
    Place,
    Shown,
    Step,
    failed,
    joined,
    series,
)

if TYPE_CHECKING:
    from airloom.scenario import model

_INTERVAL = "0.1"
"""Seconds between iperf3's reports: the shortest that it allows."""

NOBODY = "reached nobody"
"""Key of what is in force of a test that reached nobody."""
_UNREACHED = re.compile(
    r"unable to connect to server.*?"
    r"(Connection timed out|Operation now in progress|No route to host|Network is unreachable)"
)
_VERSION = ("--version",)
_SHORTEST = 20_000_000
"""Length in ns below which an interval is iperf3's remainder at the end; its rate is meaningless."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One report for all streams together; times in ns after the test's start."""

    start: int
    end: int
    octets: int
    retransmits: int | None
    rtt: int | None
    """Smoothed round-trip time of TCP, mean over the streams, ns."""
    window: int | None
    """Congestion window of TCP, sum over the streams, octets."""
    lost: int | None
    packets: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Iperf3Reading(Shown):
    """Results of one iperf3 test."""

    protocol: str
    goodput: float
    """Payload received over the time of sending (TCP: until the receiver had everything), bit/s."""
    throughput: float
    """Payload received over the time of the test at the receiver, bit/s."""
    offered: float
    """Payload that the sender wrote to its socket, bit/s."""
    octets: int
    duration: int
    """Length of the test at the receiver, ns."""
    retransmits: int | None
    rtt_mean: int | None
    rtt_min: int | None
    rtt_max: int | None
    lost: int | None
    packets: int | None
    out_of_order: int | None
    jitter: int | None
    """RFC 3550 interarrival jitter at the end of the test, ns."""
    congestion: str | None
    cpu_client: float
    """Processor use of the client, as a fraction of one processor (user and system)."""
    cpu_server: float
    sent: tuple[Interval, ...]
    received: tuple[Interval, ...]
    began: int = 0
    """Start of the client, ns after time zero; intervals start about one round trip later."""
    sender: str = ""
    receiver: str = ""
    port: int = 0
    """Port of the server."""
    unreached: str = ""
    """Why the client reached no server, as the kernel says it; empty if it did."""

    def metrics(self) -> list[Metric]:
        """Throughput and, for the protocol used, retransmissions or loss and jitter."""
        found = [
            Metric("goodput", "bit/s", self.goodput),
            Metric("throughput", "bit/s", self.throughput),
            Metric("offered", "bit/s", self.offered),
            Metric("octets", "octets", self.octets),
            Metric("cpu_client", "1", self.cpu_client),
            Metric("cpu_server", "1", self.cpu_server),
        ]
        for name, unit, value in (
            ("retransmits", "packets", self.retransmits),
            ("rtt_mean", "ns", self.rtt_mean),
            ("rtt_min", "ns", self.rtt_min),
            ("rtt_max", "ns", self.rtt_max),
            ("packets", "packets", self.packets),
            ("lost", "packets", self.lost),
            ("out_of_order", "packets", self.out_of_order),
            ("jitter_rfc3550", "ns", self.jitter),
        ):
            if value is not None:
                found.append(Metric(name, unit, value))
        if self.packets and self.lost is not None:
            found.append(Metric("loss", "1", self.lost / self.packets))
        return found

    def in_force(self) -> dict[str, str]:
        """TCP: the congestion control of the sender; why it reached nothing, if so."""
        found = {"congestion": self.congestion} if self.congestion else {}
        return found | ({NOBODY: self.unreached} if self.unreached else {})

    def samples(self) -> pa.Table:
        """Series per interval, each value at the interval's end."""
        tables = []
        for name, node, intervals in (
            ("throughput", self.receiver, self.received),
            ("offered", self.sender, self.sent),
        ):
            whole = [one for one in intervals if one.end - one.start >= _SHORTEST]
            rates = [one.octets * 8e9 / (one.end - one.start) for one in whole]
            tables.append(series(name, "bit/s", [self.began + one.end for one in whole], rates, node))
        for name, unit in (("rtt", "ns"), ("window", "octets"), ("retransmits", "packets")):
            known = [(one.end, getattr(one, name)) for one in self.sent if getattr(one, name) is not None]
            times = [self.began + end for end, _ in known]
            tables.append(series(name, unit, times, [value for _, value in known], self.sender))
        return joined([table for table in tables if table.num_rows])


def unreached(client: str, protocol: str) -> Iperf3Reading | None:
    """A test whose client reached nobody, such as out of range: zero; None for all others.

    A refused connection is none of them: somebody was reached, and no server was there.
    """
    if '"error"' not in client:
        return None  # the output of a whole test is long, and parsed elsewhere
    try:
        document = json.loads(client)
        found = _UNREACHED.search(str(document["error"])[:1000])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if found is None:
        return None
    return Iperf3Reading(
        protocol=protocol,
        goodput=0.0,
        throughput=0.0,
        offered=0.0,
        octets=0,
        duration=0,
        retransmits=None,
        rtt_mean=None,
        rtt_min=None,
        rtt_max=None,
        lost=None,
        packets=None,
        out_of_order=None,
        jitter=None,
        congestion=None,
        cpu_client=0.0,
        cpu_server=0.0,
        sent=(),
        received=(),
        unreached=found[1],
    )


def parse(client: str, server: str | None = None) -> Iperf3Reading:
    """The figures in the client's JSON and, if present, the server's (for its intervals)."""
    near = _document(client, "client")
    far = _document(server, "server") if server and server.strip() else None
    try:
        return _reading(near, far)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise MeasureError(
            "measure.iperf3.unknown",
            f"iperf3's JSON does not have the expected form: {type(error).__name__}: {error}",
            cure="version 3.12 or later is needed; see the client's output",
        ) from error


def _document(text: str, end: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MeasureError(
            "measure.iperf3.unreadable",
            f"the {end}'s output is no JSON: {error}",
            cure="it was stopped before its end, or wrote something else: see its output",
        ) from error
    if not isinstance(document, dict):
        raise MeasureError("measure.iperf3.unreadable", f"the {end}'s output is no JSON object")
    if document.get("error"):
        raise MeasureError(
            "measure.iperf3.error",
            f"iperf3 ({end}): {str(document['error'])[:300]}",
            cure="see the node's log, and whether the other end was there",
        )
    return document


def _reading(near: Mapping[str, Any], far: Mapping[str, Any] | None) -> Iperf3Reading:
    test = near["start"]["test_start"]
    end = near["end"]
    protocol = str(test["protocol"]).lower()
    reverse = bool(test.get("reverse"))
    sent, received = end["sum_sent"], end["sum_received"]
    udp = end.get("sum", {}) if protocol == "udp" else {}
    # In reverse mode the client receives; the sender's figures (retransmissions) are still in its
    # JSON.
    sender, receiver = (far, near) if reverse else (near, far)
    streams = [stream.get("sender", {}) for stream in end.get("streams", [])]
    timed = [stream for stream in streams if stream.get("mean_rtt")]
    cpu = end["cpu_utilization_percent"]
    octets = _whole(received["bytes"])
    took = _ns((sent if udp else received)["seconds"])
    packets, lost = _losses(sent, received, udp) if udp else (None, None)
    return Iperf3Reading(
        protocol=protocol,
        goodput=octets * 8e9 / took if took else 0.0,
        throughput=_number(received["bits_per_second"]),
        offered=_number(sent["bits_per_second"]),
        octets=octets,
        duration=_ns(received["end"]),
        retransmits=_whole(sent["retransmits"]) if "retransmits" in sent else None,
        rtt_mean=round(sum(_number(s["mean_rtt"]) for s in timed) / len(timed) * 1000) if timed else None,
        rtt_min=min(_whole(s["min_rtt"]) for s in timed) * 1000 if timed else None,
        rtt_max=max(_whole(s["max_rtt"]) for s in timed) * 1000 if timed else None,
        lost=lost,
        packets=packets,
        out_of_order=sum(_whole(s["udp"].get("out_of_order", 0)) for s in end["streams"]) if udp else None,
        jitter=round(_number(udp["jitter_ms"]) * 1e6) if udp else None,
        congestion=end.get("sender_tcp_congestion"),
        cpu_client=_number(cpu["host_total"]) / 100,
        cpu_server=_number(cpu["remote_total"]) / 100,
        sent=_intervals(sender),
        received=_intervals(receiver),
    )


def _losses(sent: Mapping[str, Any], received: Mapping[str, Any], both: Mapping[str, Any]) -> tuple[int, int]:
    """Packets that were sent, and those that did not arrive.

    The receiver's ``packets`` is the highest number that came, its ``lost_packets`` those missing below.
    """
    packets = _whole(sent.get("packets", both["packets"]))
    came = _whole(received.get("packets", both["packets"])) - _whole(both["lost_packets"])
    return packets, min(packets, max(0, packets - came))


def _intervals(document: Mapping[str, Any] | None) -> tuple[Interval, ...]:
    return tuple(_interval(one) for one in document["intervals"]) if document else ()


def _interval(one: Mapping[str, Any]) -> Interval:
    total = one["sum"]
    rtts = [_whole(stream["rtt"]) for stream in one["streams"] if stream.get("rtt")]
    windows = [_whole(stream["snd_cwnd"]) for stream in one["streams"] if "snd_cwnd" in stream]

    def count(key: str) -> int | None:
        return _whole(total[key]) if key in total else None

    return Interval(
        start=_ns(total["start"]),
        end=_ns(total["end"]),
        octets=_whole(total["bytes"]),
        retransmits=count("retransmits"),
        rtt=round(sum(rtts) / len(rtts) * 1000) if rtts else None,
        window=sum(windows) if windows else None,
        lost=count("lost_packets"),
        packets=count("packets"),
    )


def _number(value: Any, limit: float = 1e15) -> float:
    """A figure of iperf3: finite, not negative, and small enough for all later sums."""
    number = float(value)
    if not 0 <= number <= limit:
        raise ValueError(f"{value!r} is out of range")
    return number


def _whole(value: Any) -> int:
    return int(_number(value))


def _ns(seconds: Any) -> int:
    return round(_number(seconds, 1e9) * 1e9)


@dataclass(frozen=True, slots=True)
class Iperf3Tool:
    """A server for one test, and its client."""

    ask: model.Iperf3
    place: Place

    def steps(self) -> tuple[Step, ...]:
        """The server exits after its single client."""
        ask, port = self.ask, str(self.place.port)
        seconds = ask.seconds
        server = ("iperf3", "-s", "-1", "-J", "-p", port, "-i", _INTERVAL)
        client = ["iperf3", "-c", self.place.address(ask.to, ask.family), "-J", "-p", port, "-i", _INTERVAL]
        client += ["-t", str(seconds), "-P", str(ask.streams), "--connect-timeout", "10000"]
        if ask.protocol == "udp":
            client += ["-u", "-b", str(int(ask.rate or 0))]
        elif ask.rate is not None:
            client += ["-b", str(int(ask.rate))]
        if ask.size is not None:
            client += ["-l", str(int(ask.size))]
        if ask.dscp:
            client += ["--dscp", str(ask.dscp)]
        if ask.reverse:
            client.append("-R")
        if ask.congestion is not None:
            client += ["-C", ask.congestion]
        return (
            Step(
                role="server",
                node=self.place.node(ask.to),
                argv=server,
                service=True,
                ready=Listening("tcp", self.place.port),
                version=_VERSION,
            ),
            Step(
                role="client",
                node=ask.source,
                argv=tuple(client),
                at=ask.at,
                limit=seconds * 10**9 + 60_000_000_000,
                version=_VERSION,
            ),
        )

    def read(self, outcome: Outcome) -> Iperf3Reading:
        """The figures of both ends."""
        server, client = self.steps()
        text = (outcome.folder / client.stdout).read_text("utf-8", "replace")
        if not text.strip() or outcome.ended[client.role].killed:
            raise failed("iperf3", self.place.name, client, outcome)
        path = outcome.folder / server.stdout
        far = path.read_text("utf-8", "replace") if path.exists() else ""
        try:
            reading = unreached(text, self.ask.protocol) or parse(text, far)
        except MeasureError as error:
            error.where = error.where or f"measurement {self.place.name}"
            raise
        target = self.place.node(self.ask.to)
        sender, receiver = (target, self.ask.source) if self.ask.reverse else (self.ask.source, target)
        began = outcome.ended[client.role].started - outcome.zero
        return replace(reading, began=began, sender=sender, receiver=receiver, port=self.place.port)
