"""Names the resource that most likely disturbed a run, in one sentence with what helps.

A verdict lists symptoms: frames were late, some task waited. This module looks for what they have in
common, by rules in a fixed order, at the times of the symptoms only:

1. the clock: suspended, another source, corrected by more than crystals deviate;
2. memory, then the hypervisor: their own counters say so;
3. a node's share: the node with a limited share of a processor that was throttled and then late;
4. processors short: by interrupt work, by processes outside of the run, by one guest, or by the run itself;
5. the engine's one thread without reserve;
6. a ring, a socket or the neighbour table that was full although processors were free;
7. processors of a virtual machine that halt while idle and are woken late.

If none applies, nothing is named: a wrong accusation costs more than none. A valid run accuses nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airloom.scenario.model import Limits
from airloom.units.text import measured_percent, of_nodes
from airloom.verdict import ENGINE_BUSY, MEMORY_PRESSURE, Evidence, Share, Verdict, stretches

INTERRUPTS = 0.25
"""Share of all processor time from which interrupt work is a cause."""
NEIGHBOURS = 0.25
"""Share of all processor time from which processes outside of the run are a cause."""
BESIDE_OWN = 0.5
"""They must have used at least this much of what the run itself used."""
GUEST = 0.5
"""Share of what all nodes used from which one guest is a cause."""
THROTTLED = 0.2
"""Share of time from which a node's share of a processor is a cause."""
FREE = 0.8
"""Share of all processor time below which processors were free."""

_KINDS_OF_GUESTS = ("uml", "qemu")
_SHORT = {"host.cpu-pressure", "engine.starved", "node.starved"}
_LATE = {"delivery.late", "delivery.stall", "ingress.late", "ingress.stall", "link.paused"}
_RINGS = ("port-overflow", "ring-full", "guest-ring-full")


@dataclass(frozen=True, slots=True)
class Cause:
    """A resource with what it did, and what helps against it."""

    resource: str
    sentence: str
    cure: str

    @property
    def text(self) -> str:
        """All of it in a line."""
        return f"{self.resource}: {self.sentence} ({self.cure})"


_WHOLE_RUN = Share(-(2**62), 2**62, 1.0)
"""A stretch that all times of a run are in."""


def with_cause(verdict: Verdict, evidence: Evidence, limits: Limits) -> Verdict:
    """Returns a verdict that names the cause of its reasons, if one is clear."""
    found = find(verdict, evidence, limits)
    return verdict if found is None else verdict.model_copy(
        update={"resource": found.resource, "cause": found.text}
    )  # fmt: skip


def find(verdict: Verdict, evidence: Evidence, limits: Limits) -> Cause | None:
    """Returns the cause; None for a valid run, and where no rule applies."""
    codes = set(verdict.codes)
    if not codes & (_SHORT | _LATE | {"host.lost", "host.steal", "host.memory-pressure", "host.memory-low"}
                    | {"engine.busy", "traffic.pacing", "node.share"}):  # fmt: skip
        return None
    when = _when(evidence, limits)
    rules = (
        _clock(evidence),
        _memory(codes, evidence, when),
        _hypervisor(codes, evidence, when),
        _share(codes, evidence),
        _processors(codes, evidence, when),
        _engine(codes, evidence),
        _full(evidence),
        _halting(codes, evidence),
    )
    return next((one for one in rules if one is not None), None)


def _when(evidence: Evidence, limits: Limits) -> list[Share]:
    """Returns the stretches in which something was short; the whole run if there is none."""
    found = [
        one
        for shares, limit in (
            (evidence.cpu_pressure, limits.cpu_pressure),
            (evidence.steal, limits.steal),
            (evidence.memory_pressure, MEMORY_PRESSURE),
            (evidence.engine_busy, ENGINE_BUSY),
            (evidence.engine_wait, limits.cpu_pressure),
            *((shares, limits.cpu_pressure) for shares in evidence.node_wait.values()),
        )
        for one in stretches(shares, limit)
    ]
    return found or [_WHOLE_RUN]


def _mean(shares: Sequence[Share], when: Sequence[Share]) -> float:
    """Returns the mean of a share in these stretches; 0 without an observation there."""
    total = weight = 0.0
    for share in shares:
        if any(share.start < one.end and one.start < share.end for one in when):
            total += share.value * (share.end - share.start)
            weight += share.end - share.start
    return total / weight if weight else 0.0


def _clock(evidence: Evidence) -> Cause | None:
    if not evidence.clock:
        return None
    return Cause("the clock", evidence.clock, "let nothing suspend the machine or set its clock during a run")


def _memory(codes: set[str], evidence: Evidence, when: Sequence[Share]) -> Cause | None:
    if not codes & {"host.memory-pressure", "host.memory-low"}:
        return None
    waited = measured_percent(_mean(evidence.memory_pressure, when))
    return Cause(
        "this machine's memory", f"tasks waited for it in {waited} of the time",
        "fewer nodes, guests with less `memory`, or end other programs",
    )  # fmt: skip


def _hypervisor(codes: set[str], evidence: Evidence, when: Sequence[Share]) -> Cause | None:
    if "host.steal" not in codes:
        return None
    taken = measured_percent(_mean(evidence.steal, when))
    return Cause(
        "the hypervisor", f"it gave {taken} of this machine's processor time to others",
        "a machine with processors of its own; `--tries 3` repeats disturbed runs",
    )  # fmt: skip


def _share(codes: set[str], evidence: Evidence) -> Cause | None:
    late = codes & {"traffic.pacing", "node.share", "node.starved", "host.lost", "ingress.late"}
    held = {
        node: _mean(shares, [_WHOLE_RUN])
        for node, shares in evidence.node_throttled.items()
        if node in evidence.node_share
    }
    worst = max(held, key=held.__getitem__, default="")
    if not late or not worst or held[worst] < THROTTLED:
        return None
    # Others that waited too say that processors were short for all.
    if any(node not in held and stretches(shares, 0.5) for node, shares in evidence.node_wait.items()):
        return None
    return Cause(
        "a node's share",
        f"node {worst} was held to its {measured_percent(evidence.node_share[worst])} of a processor in "
        f"{measured_percent(held[worst])} of the time",
        f"raise `nodes.{worst}.cpu`, or give the node less to do",
    )


def _processors(codes: set[str], evidence: Evidence, when: Sequence[Share]) -> Cause | None:
    if not codes & _SHORT or not evidence.processors:
        return None
    count = evidence.processors
    all_of_it = _mean(evidence.processors_used, when)
    interrupts, others = _mean(evidence.interrupts, when), _mean(evidence.neighbours, when)
    own = max(0.0, all_of_it - others - interrupts)
    if interrupts >= INTERRUPTS and interrupts >= max(others, own):
        return Cause(
            "interrupt work", f"it took {_of(interrupts, count)}",
            "lower rates or larger frames, or spread the interrupts over more processors (irqbalance)",
        )  # fmt: skip
    if others >= NEIGHBOURS and others >= BESIDE_OWN * own:
        return Cause(
            "a neighbour on this machine", f"processes outside of this run used {_of(others, count)}",
            "end them, or run when the machine is free; `--tries 3` repeats disturbed runs",
        )  # fmt: skip
    used = {node: _mean(shares, when) for node, shares in evidence.node_used.items()}
    biggest = max(used, key=used.__getitem__, default="")
    kind = evidence.node_kinds.get(biggest)
    if kind in _KINDS_OF_GUESTS and used[biggest] >= max(GUEST * sum(used.values()), GUEST):
        return Cause(
            "a guest", f"the {kind} guest of node {biggest} used {used[biggest]:.2g} of {count} processors",
            f"less to do for it, fewer guests at a time, or another kind than {kind}",
        )  # fmt: skip
    if "host.cpu-pressure" not in codes and "engine.starved" not in codes and all_of_it < FREE:
        starved = [node for node, shares in evidence.node_wait.items() if stretches(shares, 0.2)]
        return Cause(
            "a node's processors", f"{of_nodes(sorted(starved))} waited although others were free",
            "allow more processors in `cpus`, or fewer programs in the node",
        )  # fmt: skip
    return Cause(
        "this machine's processors", f"the run itself needs more than there are: {_of(all_of_it, count)} in "
        f"use{_most(used)}",
        "fewer nodes or lower rates, more processors, or `--time virtual`",
    )  # fmt: skip


def _of(share: float, count: int) -> str:
    return f"{share * count:.2g} of {count} processors"


def _most(used: Mapping[str, float]) -> str:
    """Returns the nodes that used most, in words."""
    ranked = sorted((node for node in used if used[node] >= 0.05), key=lambda node: -used[node])[:2]
    return f", most by {' and '.join(f'{node} ({used[node]:.2g})' for node in ranked)}" if ranked else ""


def _engine(codes: set[str], evidence: Evidence) -> Cause | None:
    if "engine.busy" not in codes:
        return None
    busy = measured_percent(max(share.value for share in stretches(evidence.engine_busy, ENGINE_BUSY)))
    return Cause(
        "the engine's thread", f"one thread carries all frames, and was busy {busy} of the time",
        "lower rates, fewer hops, super-frames whole (`segments: carried`), or `--time virtual`",
    )  # fmt: skip


def _full(evidence: Evidence) -> Cause | None:
    """Returns what was full, of the reason that cost most frames."""
    lost = {reason: frames for reason, frames in evidence.host_lost.items() if frames}
    worst = max(lost, key=lost.__getitem__, default="")
    if not worst:
        return None
    port = max(_at(evidence, worst), default=(0, ""))[1]
    if worst == "guest-ring-full":
        return Cause(
            "a guest", f"the guest behind {port} did not empty its ring in time",
            "lower the rate to it, or give the guest more processor time",
        )  # fmt: skip
    if worst in _RINGS:
        return Cause(
            "a ring", f"the ring of {port} was full: bursts came faster than it was emptied",
            "lower the rate of the sender, or pace it",
        )  # fmt: skip
    if worst == "socket-full":
        return Cause(
            "a program's socket", f"what reads the {port} was too slow", "lower the rate, or fewer receivers"
        )
    if worst == "neighbour-table-full":
        return Cause(
            "this machine's neighbour table", "all laboratories share it, and it was full",
            "sysctl net.ipv4.neigh.default.gc_thresh3=65536",
        )  # fmt: skip
    return None


def _at(evidence: Evidence, reason: str) -> Iterator[tuple[int, str]]:
    for port, reasons in evidence.host_lost_by_port.items():
        if reasons.get(reason):
            yield reasons[reason], port


def _halting(codes: set[str], evidence: Evidence) -> Cause | None:
    if not evidence.halts or not codes & _LATE:
        return None
    return Cause(
        "idle processors", "those of this virtual machine halt, and the hypervisor wakes them late",
        "engine: {idle: poll}",
    )  # fmt: skip
