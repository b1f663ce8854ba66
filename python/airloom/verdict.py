"""How far a run can be trusted: a pure function from evidence to a verdict.

The evidence comes from the engine's ledger and from the host's own counters. The rules:

* Frames lost by the host, not by the emulated network: **invalid**.
* Half of all frames later than the limit on the 99th percentile: **invalid**; the 99th percentile
  or the maximum above its limit: **degraded**.
* Frames that waited in a port's ring before the engine read them, longer than the limits: likewise.
* A link that stalled because the engine was late, for a larger part of the run than the limits
  allow: **degraded** above the first of them, **invalid** above the second.
* Processors short (pressure-stall information), time stolen by a hypervisor, a node that waited for
  a processor, or an engine thread without reserve, for one second or more at a stretch: **degraded**.
  Likewise if another run's polling hid whether processors were short.
* Memory short (pressure-stall information, or nearly none left) for one second or more: **degraded**.
* A node that used more of a processor than the share that the scenario gives it, for one second or more
  at a stretch: **degraded**.
* A traffic source or guests in turns that could not keep their own timetable: **degraded**.
* A program of a measurement that somebody stopped while it measured: **degraded**.

Each reason is a sentence that names the component, the time, the amount and the limit. What the
scenario itself requests (a node's share of a processor, super-frames carried whole) is a *note*: it
bounds the result and is reported, but is not a fault of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

from airloom.scenario.model import Limits
from airloom.units.text import duration, measured_percent, moment

Status = Literal["valid", "degraded", "invalid"]

STRETCH_NS = 1_000_000_000
"""Shortest stretch of shortage that counts, in nanoseconds; shorter ones appear in the lateness."""

ENGINE_BUSY = 0.9
"""Share of one processor above which the engine thread has no reserve (M/D/1: queues of four frames)."""

SHARE_RATIO, SHARE_FLOOR = 0.2, 0.02
"""Tolerance by which a node may exceed its share in a second, as a fraction of the share and of a
processor: the kernel charges time between two of its ticks to a later period.
"""

MEMORY_PRESSURE = 0.1
"""Share of time above which tasks that wait for memory disturb the others: each waits as for a slow disk."""

MEMORY_TAKEN = 0.98
"""Share of the machine's memory in use above which its kernel reclaims pages, or ends programs."""

_MACHINE = ("host.", "delivery.", "ingress.", "engine.", "link.paused", "node.starved", "turns.late")
"""Prefixes of the codes of reasons for which this machine is responsible."""

_FIGURE = re.compile(r"\d+([.,]\d+)*( ?%| [num]?s\b)?")
"""A number, also of a name such as n1, with its unit if this is one of those that follow from its size."""

_RANK: dict[Status, int] = {"valid": 0, "degraded": 1, "invalid": 2}


@dataclass(frozen=True, slots=True)
class Lateness:
    """A distribution of lateness in nanoseconds, with the time and port of its largest values."""

    p50: int = 0
    p99: int = 0
    p999: int = 0
    max: int = 0
    count: int = 0
    worst: tuple[tuple[int, int, str], ...] = ()
    """(engine time in ns, lateness in ns, port)."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of time (0 to 1) in the interval from ``start`` to ``end``, engine time in ns."""

    start: int
    end: int
    value: float


@dataclass(frozen=True, slots=True)
class Pacing:
    """How far a traffic source fell behind its own timetable, and how long its node waits for a turn; ns."""

    measurement: str
    p99: int
    max: int
    waits: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """A program of a measurement that was stopped while it measured; engine time in ns."""

    measurement: str
    role: str
    node: str
    program: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All input of a verdict."""

    offered: int = 0
    """Frames, including those lost on their way to the engine."""
    host_lost: Mapping[str, int] = field(default_factory=dict)
    host_lost_by_port: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    delivery: Lateness = Lateness()
    ingress: Lateness = Lateness()
    cpu_pressure: Sequence[Share] = ()
    hidden_pressure: Sequence[Share] = ()
    """Time, as a share of 1, in which processor pressure could not be observed because of another run."""
    steal: Sequence[Share] = ()
    memory_pressure: Sequence[Share] = ()
    """Share of time in which some task waited for memory."""
    memory_taken: Sequence[Share] = ()
    """Share of this machine's memory that no program could get any more."""
    engine_busy: Sequence[Share] = ()
    engine_wait: Sequence[Share] = ()
    """Share of time in which the engine's thread was ready to run and had no processor."""
    node_wait: Mapping[str, Sequence[Share]] = field(default_factory=dict)
    """Node: share of time in which its processes were ready but had no processor."""
    node_throttled: Mapping[str, Sequence[Share]] = field(default_factory=dict)
    """Node with a limited share of a processor: fraction of time in which it was throttled."""
    node_used: Mapping[str, Sequence[Share]] = field(default_factory=dict)
    """Node: number of processors that its programs used, possibly more than one."""
    node_share: Mapping[str, float] = field(default_factory=dict)
    """Node with a limit: the largest share of one processor that the scenario allows."""
    pacing: Sequence[Pacing] = ()
    stopped: Sequence[Stopped] = ()
    paused: Mapping[str, int] = field(default_factory=dict)
    """Direction of a link: time for which it stalled because the engine was late, ns."""
    length: int = 0
    """Length of the run, ns."""
    above_ceiling: Sequence[str] = ()
    """Flows that offered more packets than their nodes can carry on this machine, as text."""
    late_turns: Sequence[str] = ()
    """Turns of guests that were not kept, as text."""
    notes: Sequence[str] = ()
    blind: Sequence[str] = ()
    """Counters that this machine does not provide."""
    # What names the cause of a reason, and is none itself (airloom.cause).
    processors: int = 0
    """Processors of this machine."""
    processors_used: Sequence[Share] = ()
    """Share of all processor time that was used, by whomever."""
    interrupts: Sequence[Share] = ()
    """Share of all processor time that interrupts took."""
    neighbours: Sequence[Share] = ()
    """Share of all processor time that processes outside of this run used."""
    node_kinds: Mapping[str, str] = field(default_factory=dict)
    clock: str = ""
    """What was wrong with this machine's clocks, if anything."""
    halts: bool = False
    """Whether idle processors of this virtual machine halt."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict below ``valid``."""

    status: Status
    code: str
    sentence: str


class Verdict(BaseModel):
    """How far a run can be trusted, with the reasons; as stored in ``result.json``.

    ``reasons`` are sentences, the gravest first; ``codes`` their stable names and ``severities`` what each
    of them makes of the run, in the same order. ``notes`` state limits of the result that are not faults.
    ``cause`` names ``resource``, which is behind the reasons, in a sentence with what helps; both are empty
    where nothing is clearly the cause.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: Status = "valid"
    reasons: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    severities: tuple[Status, ...] = ()
    notes: tuple[str, ...] = ()
    resource: str = ""
    cause: str = ""

    @classmethod
    def of(cls, reasons: Iterable[Reason], notes: Iterable[str] = (), status: Status = "valid") -> Verdict:
        """The verdict for these reasons, the gravest first; ``status`` at least."""
        found = sorted(reasons, key=lambda reason: -_RANK[reason.status])
        return cls(
            status=worst((status, *(reason.status for reason in found))),
            reasons=tuple(reason.sentence for reason in found),
            codes=tuple(reason.code for reason in found),
            severities=tuple(reason.status for reason in found),
            notes=tuple(notes),
        )

    @property
    def causes(self) -> list[Reason]:
        """The reasons with codes and severities; where a file has none, the severity is that of the run."""
        return [
            Reason(
                self.severities[place] if place < len(self.severities) else self.status,
                self.codes[place] if place < len(self.codes) else "",
                sentence,
            )
            for place, sentence in enumerate(self.reasons)
        ]

    def also(self, status: Status, code: str, reason: str) -> Verdict:
        """The same verdict with one more reason, the first of its severity. The status never improves."""
        more = Verdict.of([Reason(status, code, reason), *self.causes], self.notes, self.status)
        return more.model_copy(update={"resource": self.resource, "cause": self.cause})

    def by_code(self) -> list[tuple[str, list[str]]]:
        """Each code with its reasons, in the order of the first of each; one without a code is alone.

        The verdict of a sweep has the reasons of all its runs, possibly hundreds of one code.
        """
        groups: dict[str, list[str]] = {}
        for place, cause in enumerate(self.causes):
            groups.setdefault(cause.code or f"\0{place}", []).append(cause.sentence)
        return [("" if code.startswith("\0") else code, found) for code, found in groups.items()]

    def notes_by_words(self) -> list[list[str]]:
        """The notes, those together that differ by numbers only, in the order of the first of each."""
        groups: dict[str, list[str]] = {}
        for note in self.notes:
            groups.setdefault(_FIGURE.sub("0", note), []).append(note)
        return [*groups.values()]


def disturbed(verdict: Verdict) -> bool:
    """Whether the machine disturbed the run, so that another run may be better.

    Only evidence about the machine counts, never a figure or a claim: otherwise repeated runs would
    select results. A rate above a kind's ceiling and a missed timetable are properties of the scenario.
    """
    return any(code.startswith(_MACHINE) for code in verdict.codes)


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of several statuses; ``valid`` for none."""
    return max(statuses, key=_RANK.__getitem__, default="valid")


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """The verdict on a run."""
    reasons = [
        *_host_loss(evidence),
        *_lateness(evidence.delivery, limits, "delivery"),
        *_lateness(evidence.ingress, limits, "ingress"),
        *_stretches(
            evidence.cpu_pressure,
            limits.cpu_pressure,
            "host.cpu-pressure",
            "this machine was short of processors: some task waited for one in {value} of the time",
        ),
        *_stretches(
            evidence.hidden_pressure,
            0.5,
            "host.pressure-hidden",
            "another run keeps idle processors of this machine awake (`engine: {{idle: poll}}`), so that "
            "nobody knows whether processors were short",
            limited=False,
        ),
        *_stretches(
            evidence.steal,
            limits.steal,
            "host.steal",
            "the hypervisor took {value} of this machine's processor time for others",
        ),
        *_stretches(
            evidence.memory_pressure,
            MEMORY_PRESSURE,
            "host.memory-pressure",
            "this machine was short of memory: some task waited for it in {value} of the time",
        ),
        *_stretches(
            evidence.memory_taken,
            MEMORY_TAKEN,
            "host.memory-low",
            "this machine was short of memory: {value} of it was in use",
        ),
        *_stretches(
            evidence.engine_busy,
            ENGINE_BUSY,
            "engine.busy",
            "the engine's thread was busy {value} of the time, without reserve",
        ),
        *_stretches(
            evidence.engine_wait,
            limits.cpu_pressure,
            "engine.starved",
            "the engine's thread waited for a processor {value} of the time",
        ),
        *_pauses(evidence, limits),
        *_nodes(evidence, limits),
        *_beyond_share(evidence),
        *_pacing(evidence, limits),
        *_stopped(evidence),
        *(Reason("degraded", "kind.ceiling", sentence) for sentence in evidence.above_ceiling),
        *(Reason("degraded", "turns.late", sentence) for sentence in evidence.late_turns),
    ]
    notes = [*evidence.notes, *_throttled(evidence)]
    notes += [f"not observed on this machine: {what}" for what in evidence.blind]
    return Verdict.of(reasons, notes)


def _host_loss(evidence: Evidence) -> Iterable[Reason]:
    total = sum(evidence.host_lost.values())
    if not total:
        return
    share = f", {measured_percent(total / evidence.offered)} of those offered" if evidence.offered else ""
    ports = sorted(
        ((sum(reasons.values()), port, reasons) for port, reasons in evidence.host_lost_by_port.items()),
        key=lambda entry: (-entry[0], entry[1]),
    )
    named = [
        f"{port} {count} ({', '.join(sorted(r for r, n in reasons.items() if n))})"
        for count, port, reasons in ports
        if count
    ]
    more = f" and {len(named) - 3} more ports" if len(named) > 3 else ""
    where = f": {', '.join(named[:3])}{more}" if named else f" ({', '.join(sorted(evidence.host_lost))})"
    frames = "frame" if total == 1 else "frames"
    yield Reason(
        "invalid",
        "host.lost",
        f"the host, not the emulated network, lost {total} {frames}{share}{where}",
    )


def _pauses(evidence: Evidence, limits: Limits) -> Iterable[Reason]:
    """A link catches up with a late engine at 1 % above its rate at most; beyond 1 ms it loses the
    time, and of frames that keep their times beyond 10 ms.
    """
    for link, paused in sorted(evidence.paused.items(), key=lambda one: (-one[1], one[0]))[:1]:
        share = paused / evidence.length if evidence.length else 0.0
        invalid = share > limits.paused_max
        if invalid or share > limits.paused:
            yield Reason(
                "invalid" if invalid else "degraded",
                "link.paused",
                f"link {link} stood still for {duration(paused)} in all, {measured_percent(share)} of the "
                "run, because the engine was late "
                f"(limit {measured_percent(limits.paused_max if invalid else limits.paused)})",
            )


def _lateness(lateness: Lateness, limits: Limits, which: Literal["delivery", "ingress"]) -> Iterable[Reason]:
    if not lateness.count:
        return
    what = (
        "the engine delivered frames late"
        if which == "delivery"
        else "frames stood in their ports before the engine took them"
    )
    when = _worst_moments(lateness, "towards" if which == "delivery" else "at")
    if lateness.p50 > limits.lateness_p99:
        yield Reason(
            "invalid",
            f"{which}.late",
            f"{what}: half of them by more than {duration(lateness.p50)} "
            f"(limit {duration(limits.lateness_p99)} for 99 of 100){when}",
        )
    elif lateness.p99 > limits.lateness_p99:
        yield Reason(
            "degraded",
            f"{which}.late",
            f"{what}: one of 100 by more than {duration(lateness.p99)} "
            f"(limit {duration(limits.lateness_p99)}){when}",
        )
    if lateness.max > limits.lateness_max:
        yield Reason(
            "degraded",
            f"{which}.stall",
            f"{what}: the worst by {duration(lateness.max)} (limit {duration(limits.lateness_max)}){when}",
        )


def _worst_moments(lateness: Lateness, way: str) -> str:
    if not lateness.worst:
        return ""
    moments = sorted(lateness.worst, key=lambda moment: -moment[1])[:1]
    return "".join(
        f"; worst at {moment(at)}{f' {way} {port}' if port else ''} by {duration(late)}"
        for at, late, port in moments
    )


def stretches(shares: Sequence[Share], limit: float) -> list[Share]:
    """Stretches of at least one second above a limit, each with its mean value."""
    found: list[Share] = []
    run: list[Share] = []

    def close() -> None:
        if run and run[-1].end - run[0].start >= STRETCH_NS:
            span = sum(share.end - share.start for share in run)
            mean = sum(share.value * (share.end - share.start) for share in run) / span
            found.append(Share(run[0].start, run[-1].end, mean))
        run.clear()

    for share in shares:
        if share.value > limit and share.end > share.start:
            run.append(share)
        else:
            close()
    close()
    return found


def _stretches(
    shares: Sequence[Share], limit: float, code: str, sentence: str, *, limited: bool = True
) -> Iterable[Reason]:
    found = stretches(shares, limit)
    if not found:
        return
    peak = max(found, key=lambda share: (share.value, share.end - share.start))
    others = f" and in {len(found) - 1} more stretches" if len(found) > 1 else ""
    yield Reason(
        "degraded",
        code,
        f"{sentence.format(value=measured_percent(peak.value))} from {moment(peak.start)} to "
        f"{moment(peak.end)}{others}{f' (limit {measured_percent(limit)})' if limited else ''}",
    )


def _nodes(evidence: Evidence, limits: Limits) -> Iterable[Reason]:
    for node, shares in sorted(evidence.node_wait.items()):
        yield from _stretches(
            shares,
            limits.cpu_pressure,
            "node.starved",
            f"programs in node {node} waited for a processor {{value}} of the time",
        )


def _beyond_share(evidence: Evidence) -> Iterable[Reason]:
    for node, share in sorted(evidence.node_share.items()):
        found = _exceeded(evidence, node)
        if found:
            peak = max(found, key=lambda one: one.value)
            yield Reason(
                "degraded",
                "node.share",
                f"node {node} used {measured_percent(peak.value)} of a processor from {moment(peak.start)} "
                f"to {moment(peak.end)}, more than its share of {measured_percent(share)}: the share was not "
                "held",
            )


def _exceeded(evidence: Evidence, node: str) -> list[Share]:
    """Stretches in which a node used more than its share."""
    limit = evidence.node_share[node] * (1 + SHARE_RATIO) + SHARE_FLOOR
    return stretches(evidence.node_used.get(node, ()), limit)


def _throttled(evidence: Evidence) -> Iterable[str]:
    for node, shares in sorted(evidence.node_throttled.items()):
        used_up = [share for share in shares if share.value > 0]
        if used_up and not (node in evidence.node_share and _exceeded(evidence, node)):
            span = sum(share.end - share.start for share in shares)
            mean = sum(share.value * (share.end - share.start) for share in shares) / span
            yield (
                f"node {node} used up the processor share that the scenario gives it "
                f"{measured_percent(mean)} of the time, first at {moment(used_up[0].start)}: "
                "its results are bounded by that share"
            )


def _pacing(evidence: Evidence, limits: Limits) -> Iterable[Reason]:
    for pacing in evidence.pacing:
        limit = limits.lateness_p99 + pacing.waits
        if pacing.p99 > limit:
            yield Reason(
                "degraded",
                "traffic.pacing",
                f"the source of {pacing.measurement} sent one of 100 packets more than {duration(pacing.p99)}"
                f" after its time, the worst {duration(pacing.max)} (limit {duration(limit)})",
            )


def _stopped(evidence: Evidence) -> Iterable[Reason]:
    for one in evidence.stopped:
        yield Reason(
            "degraded",
            "measure.stopped",
            f"{one.program}, the {one.role} of {one.measurement} in node {one.node}, was stopped by a signal "
            f"or a debugger from {moment(one.start)} to {moment(one.end)}",
        )
