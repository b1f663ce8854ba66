"""A flow computed from the records of both ends: loss, order, delay, jitter, goodput, pacing.

The formulas and their sources are in the docstrings; ``docs/guide/measurement.md`` collects them.
Times are in ns, and exact integers if they are differences of records; ratios are plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airloom.measure.records import NOT_SENT, FlowRecord, Integers, Passed
from airloom.measure.stages import Followed
from airloom.measure.tool import MeasureError, Metric, Shown, joined, series

Floats = npt.NDArray[np.float64]

INTERVAL = 100_000_000
"""Length of the intervals of the throughput series, ns."""

LONGEST = 10**14
"""Times further apart than this (28 hours) indicate a damaged file; ns."""

STARTUP_SHARE = 10
STARTUP_MOST = 1_000_000_000
"""The start-up is the first tenth of the time in which packets were sent, but at most 1 s."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FlowReading(Shown):
    """Results of one flow.

    Arrays have one entry per arrived packet in order of arrival, without duplicates. TCP: one per
    write.
    """

    protocol: str
    sent: int
    """Packets that left the sender; TCP: writes."""
    not_sent: int
    """Packets that the sender's socket refused."""
    received: int
    """Distinct packets that arrived; TCP: writes of which the last octet arrived."""
    duplicates: int
    """Arrivals beyond the first of each packet (RFC 5560)."""
    reordered: int
    """Type-P-Reordered packets (RFC 4737, section 3.3)."""
    extents: Integers
    """Reordering extent of each reordered packet (RFC 4737, section 4.2)."""
    host_lost: int
    """Packets lost to a full receiving socket buffer: part of the loss, caused by the host."""
    complete: bool
    """Whether both ends ended normally. Otherwise records may be missing and the loss is an upper
    bound.
    """
    sent_at: Integers
    arrived_at: Integers
    delays: Integers
    """One-way delay (RFC 7679); TCP: from the start of the write to the read of its last octet."""
    jitter: Integers
    """RFC 4689 jitter, from the second packet on."""
    jitter_rtp: Floats
    """RFC 3550 interarrival jitter after each packet from the second on."""
    lateness: Integers
    """Sent minus scheduled time, of all packets sent."""
    lateness_at: Integers
    arrivals: Integers
    """Times of the items counted for throughput: packets, or TCP chunks."""
    arrival_octets: Integers
    departures: Integers
    """Times of the items offered: packets, or TCP writes."""
    departure_octets: Integers
    boundaries: dict[str, Passed] = field(default_factory=dict)
    """Times at which packets passed the boundaries of their path, if recorded (see :mod:`.stages`)."""
    followed: Followed | None = None
    """How to find the flow's packets in a capture, to obtain the remaining boundaries."""
    planned: int = 0
    """Duration of sending that was asked for, ns; 0 if not known."""
    zero: int = 0
    """The run's time zero, ns of CLOCK_MONOTONIC."""
    sender: str = ""
    receiver: str = ""

    @property
    def lost(self) -> int:
        """Packets that were sent and did not arrive."""
        return max(0, self.sent - self.received)

    @property
    def sending(self) -> int:
        """The time of sending: as long as was asked for, longer if packets left later; ns.

        A schedule may be silent at its end. The kernel of a TCP sender goes on until everything has
        arrived, so its time of sending ends with the last arrival.
        """
        if not self.departures.size:
            return self.planned
        first, last = int(self.departures.min()), int(self.departures.max())
        if self.protocol == "tcp" and self.arrivals.size:
            last = max(last, int(self.arrivals.max()))
        return max(self.planned, last - first)

    @property
    def expected(self) -> tuple[int, int]:
        """From when to when packets could arrive: the time of sending, later by the least delay, and
        until the last arrival if a queue still held packets; ns.
        """
        if not self.departures.size:
            return 0, 0
        since = int(self.departures.min()) + (max(0, int(self.delays.min())) if self.delays.size else 0)
        if self.arrivals.size:
            since = min(since, int(self.arrivals.min()))
        last = int(self.arrivals.max()) if self.arrivals.size else since
        return since, max(last, since + (0 if self.protocol == "tcp" else self.sending))

    @property
    def startup_ends(self) -> int:
        """End of the start-up phase, as an arrival time in ns."""
        if not self.departures.size:
            return 0
        first, last = int(self.departures[0]), int(self.departures[-1])
        return first + min(STARTUP_MOST, (last - first) // STARTUP_SHARE)

    def metrics(self) -> list[Metric]:
        """All figures; those that need two packets are omitted if there are fewer."""
        found = [
            Metric("sent", "packets", self.sent),
            Metric("received", "packets", self.received),
            Metric("octets", "octets", int(self.arrival_octets.sum())),
            Metric("not_sent", "packets", self.not_sent),
        ]
        if self.protocol != "tcp":
            found += [
                Metric("lost", "packets", self.lost),
                Metric("host_lost", "packets", self.host_lost),
                Metric("duplicates", "packets", self.duplicates),
                Metric("reordered", "packets", self.reordered),
                Metric("reordering_extent_max", "packets", int(self.extents.max(initial=0))),
            ]
            if self.sent:
                found.append(Metric("loss", "1", self.lost / self.sent))
            if self.received:
                found.append(Metric("duplication", "1", self.duplicates / self.received))
                found.append(Metric("reordering", "1", self.reordered / self.received))
        found += self._throughput()
        if self.arrivals.size and self.departures.size:
            took = int(self.arrivals.max()) - int(self.departures.min())
            found.append(Metric("completion_time", "ns", took))
        found += _summary("delay", self.delays)
        found += _summary("jitter", self.jitter)
        if self.jitter_rtp.size:
            found.append(Metric("jitter_rfc3550", "ns", float(self.jitter_rtp[-1])))
            found.append(Metric("jitter_rfc3550_max", "ns", float(self.jitter_rtp.max())))
        startup = self.arrived_at <= self.startup_ends
        for name, values, early in (
            ("delay", self.delays, startup),
            ("jitter", self.jitter, startup[1:]),
        ):
            for phase, part in (("startup", values[early]), ("steady", values[~early])):
                if part.size:
                    found.append(Metric(f"{name}_{phase}_mean", "ns", float(part.mean())))
        if self.lateness.size:
            p50, p99 = np.quantile(self.lateness, [0.5, 0.99])
            name = self._lateness_name
            found += [
                Metric(f"{name}_mean", "ns", float(self.lateness.mean())),
                Metric(f"{name}_p50", "ns", float(p50)),
                Metric(f"{name}_p99", "ns", float(p99)),
                Metric(f"{name}_max", "ns", int(self.lateness.max())),
            ]
        return found

    @property
    def _lateness_name(self) -> str:
        # When the network is full, TCP blocks the writer: this is not caused by the host.
        return "write_lateness" if self.protocol == "tcp" else "pacing_error"

    def _throughput(self) -> list[Metric]:
        came, left, sending = int(self.arrival_octets.sum()), int(self.departure_octets.sum()), self.sending
        if not self.sent or not sending:
            return []
        goodput = came * 8e9 / sending
        whole = rate(self.arrivals, self.arrival_octets)
        found = [
            Metric("goodput", "bit/s", goodput),
            Metric("throughput", "bit/s", goodput if whole is None else whole),
            Metric("offered", "bit/s", left * 8e9 / sending),
        ]
        since, until = self.expected
        ends = self.startup_ends
        early = self.arrivals <= ends
        for phase, part, span in (("startup", early, ends - since), ("steady", ~early, until - ends)):
            if span > 0:
                value = int(self.arrival_octets[part].sum()) * 8e9 / span
                found.append(Metric(f"throughput_{phase}", "bit/s", value))
        over, rates = self._rates
        steady = rates[over - INTERVAL >= ends]
        if steady.size:
            found.append(Metric("throughput_min", "bit/s", float(steady.min())))
            found.append(Metric("throughput_max", "bit/s", float(steady.max())))
        return found

    @property
    def _rates(self) -> tuple[Integers, Floats]:
        """Arrivals in intervals over the whole time in which packets could arrive."""
        return intervals(self.arrivals, self.arrival_octets, INTERVAL, self.expected)

    def in_force(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def samples(self) -> pa.Table:
        """Per packet: delay, both jitters and pacing error; per interval: throughput and offered load."""
        arrived, later = self.arrived_at - self.zero, self.arrived_at[1:] - self.zero
        tables = [
            series("delay", "ns", arrived, self.delays, self.receiver),
            series("jitter", "ns", later[: self.jitter.size], self.jitter, self.receiver),
            series("jitter_rfc3550", "ns", later[: self.jitter_rtp.size], self.jitter_rtp, self.receiver),
            series(self._lateness_name, "ns", self.lateness_at - self.zero, self.lateness, self.sender),
        ]
        offered = intervals(self.departures, self.departure_octets, INTERVAL)
        for name, node, (ends, rates) in (
            ("throughput", self.receiver, self._rates),
            ("offered", self.sender, offered),
        ):
            tables.append(series(name, "bit/s", ends - self.zero, rates, node))
        return joined([table for table in tables if table.num_rows])


def rate(times: Integers, octets: Integers) -> float | None:
    """Mean rate in bit/s: ``8 * (octets of all but the first) / (last time - first time)``.

    The first packet only starts the measured time: n packets have n - 1 gaps.
    """
    if times.size < 2:
        return None
    span = int(times.max() - times.min())
    return float((octets.sum() - octets[times.argmin()]) * 8e9 / span) if span else None


def bandwidth(times: Integers, octets: Integers, packets: int = 1) -> Floats:
    """Bandwidth in bit/s over every window of ``packets`` packets, in order of arrival.

    ``8 * (octets of packets i+1 to i+k) / (t[i+k] - t[i])``: the first packet only starts the
    window. With one packet it is the instantaneous bandwidth; windows of zero length (two packets
    with one timestamp) are infinite. No longer window is faster than the fastest single one, and a
    window of k packets or more is no faster than the fastest of k to 2k - 1.
    """
    if times.size <= packets:
        return np.empty(0, np.float64)
    sums = np.concatenate([[0], np.cumsum(octets)])
    bits = 8e9 * (sums[packets + 1 :] - sums[1:-packets])
    spans = (times[packets:] - times[:-packets]).astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(bits / spans, np.float64)


def fastest(times: Integers, octets: Integers, packets: int = 1) -> float:
    """The highest bandwidth in bit/s of all windows of ``packets`` packets or more."""
    found = [bandwidth(times, octets, k) for k in range(packets, 2 * packets)]
    return max((float(one.max()) for one in found if one.size), default=0.0)


def intervals(
    times: Integers, octets: Integers, length: int, within: tuple[int, int] | None = None
) -> tuple[Integers, Floats]:
    """Rates in bit/s in whole intervals of ``length`` ns, and their ends.

    The intervals are those from the first to the last time, or ``within`` two others. The partial
    interval at the end is omitted, because its rate is meaningless.
    """
    if within is None:
        within = (int(times.min()), int(times.max())) if times.size else (0, 0)
    first, last = within
    count = max(0, last - first) // length
    index = (times - first) // length
    inside = (index >= 0) & (index < count)
    sums = np.bincount(index[inside], weights=octets[inside].astype(np.float64), minlength=count)
    ends = first + length * (1 + np.arange(count, dtype=np.int64))
    return ends, sums[:count] * 8e9 / length


def reordering(sequence: Integers) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Which arrivals are Type-P-Reordered, and the extent of each that is (RFC 4737).

    Section 3.3: a packet is reordered if its number is below the next expected one, which is one more than
    the largest that came before it. Section 4.2: the extent of reordered packet i is ``i - j`` for the
    earliest arrival j with a larger number. ``sequence`` is in order of arrival, without duplicates.
    """
    if not sequence.size:
        return np.empty(0, np.bool_), np.empty(0, np.int64)
    largest = np.maximum.accumulate(sequence)
    late = sequence < largest
    # The running maximum first exceeds a number where the earliest larger number arrived.
    earliest = np.searchsorted(largest, sequence[late], side="right")
    return late, np.flatnonzero(late) - earliest


def jitter_rfc4689(delays: Integers) -> Integers:
    """``|(Rj - Sj) - (Ri - Si)|`` of consecutive received packets i, j (RFC 4689, the term "jitter"); ns."""
    return np.abs(np.diff(delays))


def jitter_rfc3550(transits: Integers) -> Floats:
    """Interarrival jitter after each packet from the second on (RFC 3550, section 6.4.1 and appendix A.8).

    ``D = (Rj - Sj) - (Ri - Si)``, ``J += (|D| - J) / 16``, beginning with 0. ``transits`` are ``R - S`` in
    order of arrival; the result has their unit.
    """
    # scipy.signal.lfilter and the moving averages of pandas are the same, but take longer to load in each
    # run than the loop takes.
    steps = np.abs(np.diff(transits)).astype(np.float64).tolist()
    means = accumulate(steps, lambda mean, step: mean + (step - mean) / 16, initial=0.0)
    return np.fromiter(means, np.float64)[1:]


def ticks(nanoseconds: Integers, clock: int) -> Integers:
    """Times in whole units of an RTP clock, rounded down, exact also for long times."""
    seconds, rest = np.divmod(nanoseconds, 1_000_000_000)
    return np.asarray(seconds * clock + rest * clock // 1_000_000_000, np.int64)


def join(sender: FlowRecord, receiver: FlowRecord, *, planned: int = 0) -> FlowReading:
    """The flow computed from the records of both ends; ``planned``: the duration that was asked for, ns."""
    if (sender.end, receiver.end) != ("sender", "receiver") or sender.protocol != receiver.protocol:
        raise MeasureError(
            "measure.record.mismatch",
            f"a {sender.protocol} {sender.end} and a {receiver.protocol} {receiver.end} are no flow",
        )
    if np.any(np.diff(sender.sequence) <= 0):
        raise MeasureError("measure.record.damaged", "the sender's numbers do not increase")
    times = np.concatenate([sender.scheduled, sender.sent, receiver.sent, receiver.received])
    if times.size and int(times.max() - times.min()) > LONGEST:
        raise MeasureError("measure.record.damaged", "times of one flow lie more than 10^14 ns apart")
    flow = _stream(sender, receiver) if sender.protocol == "tcp" else _packets(sender, receiver)
    return replace(flow, planned=planned)


def _packets(sender: FlowRecord, receiver: FlowRecord) -> FlowReading:
    left = (sender.flags & NOT_SENT) == 0
    numbers = sender.sequence[left]
    # Only the first arrival of each number counts. Numbers missing in the sender's record are
    # ignored.
    _, first = np.unique(receiver.sequence, return_index=True)
    known = np.isin(receiver.sequence, numbers)
    firsts = np.zeros(receiver.sequence.size, np.bool_)
    firsts[first] = True
    kept = known & firsts
    sequence = receiver.sequence[kept]
    position = np.searchsorted(sender.sequence, sequence)
    sent_at, arrived_at = receiver.sent[kept], receiver.received[kept]
    late, extents = reordering(sequence)
    delays = arrived_at - sent_at
    if sender.protocol == "rtp" and sender.rtp_clock:
        scheduled = sender.scheduled[position] - sender.start
        transits = ticks(arrived_at - sender.start, sender.rtp_clock) - ticks(scheduled, sender.rtp_clock)
        jitter_rtp = jitter_rfc3550(transits) * (1e9 / sender.rtp_clock)
    else:
        jitter_rtp = jitter_rfc3550(delays)
    return FlowReading(
        protocol=sender.protocol,
        sent=int(left.sum()),
        not_sent=int((~left).sum()),
        received=int(kept.sum()),
        duplicates=int((known & ~firsts).sum()),
        reordered=int(late.sum()),
        extents=extents,
        host_lost=receiver.overflowed,
        complete=sender.complete and receiver.complete,
        sent_at=sent_at,
        arrived_at=arrived_at,
        delays=delays,
        jitter=jitter_rfc4689(delays),
        jitter_rtp=jitter_rtp,
        lateness=(sender.sent - sender.scheduled)[left],
        lateness_at=sender.sent[left],
        arrivals=arrived_at,
        arrival_octets=receiver.octets[kept],
        departures=sender.sent[left],
        departure_octets=sender.octets[left],
    )


def _stream(sender: FlowRecord, receiver: FlowRecord) -> FlowReading:
    ends = sender.sequence + sender.octets
    read = np.cumsum(receiver.octets)
    # A write has arrived with the chunk that contains its last octet.
    chunk = np.searchsorted(read, ends, side="left")
    whole = chunk < read.size
    sent_at, arrived_at = sender.sent[whole], receiver.received[chunk[whole]]
    delays = arrived_at - sent_at
    return FlowReading(
        protocol="tcp",
        sent=int(ends.size),
        not_sent=0,
        received=int(whole.sum()),
        duplicates=0,
        reordered=0,
        extents=np.empty(0, np.int64),
        host_lost=0,
        complete=sender.complete and receiver.complete,
        sent_at=sent_at,
        arrived_at=arrived_at,
        delays=delays,
        jitter=jitter_rfc4689(delays),
        jitter_rtp=jitter_rfc3550(delays),
        lateness=sender.sent - sender.scheduled,
        lateness_at=sender.sent,
        arrivals=receiver.received,
        arrival_octets=receiver.octets,
        departures=sender.sent,
        departure_octets=sender.octets,
    )


def _summary(name: str, values: Integers) -> list[Metric]:
    if not values.size:
        return []
    p50, p95, p99 = np.quantile(values, [0.5, 0.95, 0.99])
    return [
        Metric(f"{name}_min", "ns", int(values.min())),
        Metric(f"{name}_mean", "ns", float(values.mean())),
        Metric(f"{name}_max", "ns", int(values.max())),
        Metric(f"{name}_stddev", "ns", float(values.std(ddof=1)) if values.size > 1 else 0.0),
        Metric(f"{name}_p50", "ns", float(p50)),
        Metric(f"{name}_p95", "ns", float(p95)),
        Metric(f"{name}_p99", "ns", float(p99)),
    ]
