"""Round-trip time measured by the system's ``ping``.

Parses the output of iputils (``ping -D -n -O``) and accepts BusyBox's shorter form. iputils rounds
the time of a single reply to three or four digits (0.001 ms below 1 ms, 0.01 ms below 10 ms, 0.1 ms
below 100 ms, 1 ms above), but its last line gives minimum, mean and maximum in whole microseconds.
These three are taken from the last line, the quantiles from the single replies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airloom.measure.tool import (
    Again,
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

_STAMP = r"(?:\[(?P<stamp>[0-8]?\d{1,9}\.\d{1,9})\] )?"
_REPLY = re.compile(
    _STAMP + r"\d{1,9} bytes from \S{1,128}: (?:icmp_)?seq=(?P<seq>\d{1,9}) .{0,80}?"
    r"time[=<](?P<time>\d{1,12}(?:\.\d{1,6})?) ms(?P<rest>.{0,80})$"
)
_ERROR = re.compile(_STAMP + r"From \S{1,128}:? icmp_seq=(?P<seq>\d{1,9}) (?P<what>.{1,200})$")
_COUNTS = re.compile(
    r"^(?P<sent>\d{1,12}) packets transmitted, (?P<received>\d{1,12}) (?:packets )?received"
    r"(?:, \+(?P<duplicates>\d{1,12}) duplicates)?"
    r"(?:, \+\d{1,12} corrupted)?(?:, \+(?P<errors>\d{1,12}) errors)?"
)
_NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
_TIMES = re.compile(
    rf"^(?:rtt|round-trip) min/avg/max(?:/mdev)? = {_NUMBER}/{_NUMBER}/{_NUMBER}(?:/{_NUMBER})? ms"
)

_REFUSED = re.compile(
    r"^(?:ping6?: )?(?P<call>connect|sendmsg): (?:Network is unreachable|No route to host)$", re.MULTILINE
)
"""The sender's kernel has no route: ping cannot begin (connect), or sends the next request (sendmsg)."""

_SEQUENCES = 1 << 16
"""ICMP counts echo requests in 16 bits (RFC 792)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One echo reply."""

    sequence: int
    """Number of the request, continued past 16 bits."""
    received: int | None
    """CLOCK_REALTIME in ns of its arrival (microsecond resolution), if ping printed it."""
    rtt: int
    """Round-trip time in ns, as rounded by ping."""
    duplicate: bool


@dataclass(frozen=True, slots=True, repr=False)
class PingReading(Shown):
    """Results of one ping; times in ns."""

    transmitted: int
    received: int
    duplicates: int
    errors: int
    """ICMP errors received, such as destination unreachable."""
    unreachable: int
    """Requests that the sender's kernel refused because it had no route. They count as transmitted."""
    rtt_min: int | None
    rtt_mean: int | None
    rtt_max: int | None
    rtt_mdev: int | None
    """ping's "mdev", which is the standard deviation (of the population) of all round-trip times."""
    replies: tuple[Reply, ...]
    zero_realtime: int = 0
    node: str = ""

    @property
    def loss(self) -> float:
        """Fraction of requests without a reply (RFC 7680 applied to the round trip)."""
        return 1.0 - self.received / self.transmitted if self.transmitted else 0.0

    def metrics(self) -> list[Metric]:
        """Counts, loss, and the round-trip time's summary and quantiles."""
        found = [
            Metric("transmitted", "packets", self.transmitted),
            Metric("received", "packets", self.received),
            Metric("duplicates", "packets", self.duplicates),
            Metric("errors", "packets", self.errors),
            Metric("unreachable", "packets", self.unreachable),
            Metric("loss", "1", self.loss),
        ]
        for name, value in (
            ("rtt_min", self.rtt_min),
            ("rtt_mean", self.rtt_mean),
            ("rtt_max", self.rtt_max),
            ("rtt_stddev", self.rtt_mdev),
        ):
            if value is not None:
                found.append(Metric(name, "ns", value))
        times = [reply.rtt for reply in self.replies if not reply.duplicate]
        if times:
            p50, p95, p99 = np.quantile(times, [0.5, 0.95, 0.99])
            found += [
                Metric("rtt_first", "ns", times[0]),
                Metric("rtt_p50", "ns", float(p50)),
                Metric("rtt_p95", "ns", float(p95)),
                Metric("rtt_p99", "ns", float(p99)),
            ]
        if len(times) > 1:
            found.append(Metric("rtt_max_after_first", "ns", max(times[1:])))
        return found

    def in_force(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def samples(self) -> pa.Table:
        """``rtt`` at the arrival time of each reply."""
        stamped = [(reply.received, reply.rtt) for reply in self.replies if reply.received is not None]
        times = [received - self.zero_realtime for received, _ in stamped]
        return joined([series("rtt", "ns", times, [rtt for _, rtt in stamped], self.node)])


def parse(text: str, said: str = "") -> PingReading:
    """The figures in ping's output and standard error.

    Each start that failed for lack of a route stands for one request. Raises
    :class:`MeasureError` if the last lines are missing.
    """
    calls = [refused["call"] for refused in _REFUSED.finditer(said)]
    failed_starts = calls.count("connect")
    replies: list[Reply] = []
    counts: re.Match[str] | None = None
    times: re.Match[str] | None = None
    latest = 0
    errors = 0
    for line in text.splitlines():
        if reply := _REPLY.match(line):
            latest = _unwrapped(int(reply["seq"]), latest)
            replies.append(
                Reply(
                    sequence=latest + failed_starts,
                    received=_ns(reply["stamp"], 9) if reply["stamp"] else None,
                    rtt=_ns(reply["time"], 6),
                    duplicate="DUP!" in reply["rest"],
                )
            )
        elif _ERROR.match(line):
            errors += 1
        elif found := _COUNTS.match(line):
            counts = found
        elif found := _TIMES.match(line):
            times = found
    if counts is None and not (failed_starts and not replies):
        raise MeasureError(
            "measure.ping.unfinished",
            f"ping's output ends after {len(replies)} replies, without its summary",
            cure="it was stopped before its end: give the run more time, or look at the node's log",
        )
    return PingReading(
        transmitted=failed_starts + (int(counts["sent"]) if counts else 0),
        received=int(counts["received"]) if counts else 0,
        duplicates=int(counts["duplicates"] or 0) if counts else 0,
        errors=int(counts["errors"] or errors) if counts else 0,
        unreachable=len(calls),
        rtt_min=_ns(times[1], 6) if times else None,
        rtt_mean=_ns(times[2], 6) if times else None,
        rtt_max=_ns(times[3], 6) if times else None,
        rtt_mdev=_ns(times[4], 6) if times and times[4] else None,
        replies=tuple(replies),
    )


def round_trips(lines: str) -> list[int]:
    """The round-trip times in ns in lines of ping's output, without duplicates."""
    replies = filter(None, map(_REPLY.match, lines.splitlines()))
    return [_ns(reply["time"], 6) for reply in replies if "DUP!" not in reply["rest"]]


def _cannot_begin(code: int | None, last: str) -> bool:
    """Whether ping ended because there was no route when it started."""
    refused = _REFUSED.match(last)
    return code == 2 and refused is not None and refused["call"] == "connect"


def _ns(number: str, places: int) -> int:
    """A decimal number with up to ``places`` decimals, in units of its last place, exactly."""
    whole, _, part = number.partition(".")
    return int(whole + part.ljust(places, "0")[:places])


def _unwrapped(sequence: int, latest: int) -> int:
    """``sequence`` modulo 2^16, extended to the value nearest to ``latest``."""
    half = _SEQUENCES // 2
    nearest = latest + (sequence - latest + half) % _SEQUENCES - half
    return nearest if nearest >= 0 else nearest + _SEQUENCES


@dataclass(frozen=True, slots=True)
class PingTool:
    """ICMP echo requests from a node."""

    ask: model.Ping
    place: Place

    def steps(self) -> tuple[Step, ...]:
        """One program; exit code 1 means that no reply was received, which is a result.

        ping ends at once if it has no route when it starts. It is then started again for the
        remaining requests, at their interval.
        """
        counts = self.ask.unreachable == "count"
        return (
            Step(
                role="client",
                node=self.ask.source,
                argv=self._argv(self.ask.count),
                at=self.ask.at,
                limit=self.ask.count * self.ask.interval + 60_000_000_000,
                expect=frozenset({0, 1}),
                version=("-V",),
                again=Again(_cannot_begin, self._argv_after, self.ask.interval) if counts else None,
            ),
        )

    def _argv_after(self, starts: int) -> tuple[str, ...] | None:
        return self._argv(self.ask.count - starts) if starts < self.ask.count else None

    def _argv(self, count: int) -> tuple[str, ...]:
        interval = f"{self.ask.interval // 10**9}.{self.ask.interval % 10**9:09d}"
        return (
            "ping",
            "-D",
            "-n",
            "-O",
            "-c",
            str(count),
            "-i",
            interval,
            "-s",
            str(int(self.ask.size)),
            *(("-Q", str(int(self.ask.dscp) << 2)) if self.ask.dscp else ()),
            self.place.address(self.ask.to, self.ask.family),
        )

    def read(self, outcome: Outcome) -> PingReading:
        """The figures. Raises an error with ping's own message if it did not run."""
        (step,) = self.steps()
        ended = outcome.ended[step.role]
        said = (outcome.folder / step.stderr).read_text("utf-8", "replace")
        unreachable = step.again is not None and step.again.when(ended.code, said.strip().rpartition("\n")[2])
        if ended.code not in step.expect and not unreachable:
            raise failed("ping", self.place.name, step, outcome)
        reading = parse((outcome.folder / step.stdout).read_text("utf-8", "replace"), said)
        return replace(reading, zero_realtime=outcome.zero_realtime, node=self.ask.source)
