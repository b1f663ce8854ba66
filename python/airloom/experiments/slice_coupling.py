"""How strongly slices disturb each other by radio, measured in stepped time.

The UDP flows of a scenario's slices are offered to its media on the engine in memory: those of one
slice alone, then beside those of one other slice, or of all. A node takes no time and nothing depends
on the machine, so host coupling is exactly zero: what a run on the wall clock shows beyond this is the
host's doing.

============  ==================================================================================
figure        meaning
============  ==================================================================================
coupling      C = (R - R') / R with the throughput R of the slice alone and R' beside the others
              (Mahindra, thesis, eq. 5.1); below 0 if it got more
most          the same with the least throughput of any 100 ms beside the others
delay, ...    mean beside the others, minus mean alone: one-way delay, jitter (RFC 4689), loss
============  ==================================================================================

Each has a value for every run, with a seed and phases of its own.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from airloom import _engine
from airloom.errors import ScenarioError, translated
from airloom.planning.plan import MediumPlan, Plan, RadioPlan
from airloom.planning.timed_changes import radio_changes

RUNS = 3
SPAN = 2_000_000_000
"""ns that are measured of each run."""
SETTLING = 500_000_000
"""ns before, and after for the frames on the way."""
WINDOW = 100_000_000
"""ns of a window of the instantaneous coupling."""
_HEADERS = 14 + 28
"""Octets of Ethernet, IP and UDP headers."""
_NUMBER = 34
"""Offset of the frame's number, after those headers' fields that the engine reads."""
_LEAST = 60


@dataclass(frozen=True, slots=True)
class Coupling:
    """Effect of other slices on one; a value for each run, none where the slice alone gets nothing."""

    slice: str
    others: tuple[str, ...]
    coupling: tuple[float, ...]
    most: tuple[float, ...]
    delay_ns: tuple[float, ...]
    jitter_ns: tuple[float, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow of a slice: packets of one size at a constant rate between two radios."""

    slice: str
    sender: str
    """Port: ``node:interface``."""
    receiver: str
    addresses: bytes
    """MAC addresses of receiver and sender."""
    interval: float
    """ns between packets."""
    size: int
    """Octets of payload."""


@dataclass(frozen=True, slots=True)
class _Figures:
    rate: float
    least: float
    delay: float
    jitter: float
    loss: float


def flows(plan: Plan) -> list[Flow]:
    """Returns the flows between radios of one slice, at a constant rate of packets.

    Equal ones count as often as they send at the same time. Raises :class:`ScenarioError` if fewer than
    two slices have one.
    """
    found: dict[Flow, list[tuple[int, int]]] = {}
    for one in plan.scenario.measurements:
        said = one.traffic
        if said is None or said.protocol == "tcp" or said.pattern != "constant" or said.offered is None:
            continue
        for medium in plan.media.values():
            sender, receiver = (_radio(medium, node) for node in (said.source, said.to))
            if sender is None or receiver is None or sender.grant is None or receiver.grant is None:
                continue
            if sender.grant.slice == receiver.grant.slice:
                addresses = bytes(receiver.settings["mac"]) + bytes(sender.settings["mac"])
                flow = Flow(
                    sender.grant.slice, sender.port, receiver.port, addresses, 1e9 / said.offered, said.size
                )
                found.setdefault(flow, []).append((said.at, said.at + said.duration))
    if len({one.slice for one in found}) < 2:
        raise ScenarioError(
            "coupling.flows", "fewer than two slices have a flow to compute their coupling with",
            where="measurements", cure="add 'traffic' with a 'rate' or an 'interval' within each slice",
        )  # fmt: skip
    return [flow for flow, spans in found.items() for _ in range(_at_once(spans))]


def _at_once(spans: Sequence[tuple[int, int]]) -> int:
    """Returns the largest number of spans of time that overlap."""
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def pairs(plan: Plan, *, runs: int = RUNS, span: int = SPAN) -> list[Coupling]:
    """Returns the coupling of each slice with each other one, and with all others if there are more.

    ``span`` in ns. Raises :class:`ScenarioError` if a flow has a radio that needs the node's own stack.
    """
    found = flows(plan)
    ends = {port for one in found for port in (one.sender, one.receiver)}
    radios = (radio for medium in plan.media.values() for radio in medium.radios)
    if any(radio.settings["membership"] == "wlan" for radio in radios if radio.port in ends):
        raise ScenarioError(
            "coupling.device", "the coupling of wireless devices, which need a stack, is not computed",
            where="measurements", cure="measure it: airloom run",
        )  # fmt: skip
    slices = list(dict.fromkeys(one.slice for one in found))
    groups: list[tuple[str, ...]] = [(one,) for one in slices]
    groups += itertools.combinations(slices, 2)
    if len(slices) > 2:
        groups.append(tuple(slices))
    seeds = [plan.seed + number for number in range(runs)]
    figures = {group: [_stepped(plan, found, group, seed, span) for seed in seeds] for group in groups}
    return [
        _coupling(one, group, figures[(one,)], figures[group])
        for one in slices
        for group in groups
        if one in group and len(group) > 1
    ]


def _radio(medium: MediumPlan, node: str) -> RadioPlan | None:
    return next((radio for radio in medium.radios if radio.node == node), None)


def _coupling(
    slice: str,
    group: Sequence[str],
    alone: Sequence[dict[str, _Figures]],
    beside: Sequence[dict[str, _Figures]],
) -> Coupling:
    both = [
        (one[slice], other[slice]) for one, other in zip(alone, beside, strict=True) if one[slice].rate > 0
    ]
    return Coupling(
        slice,
        tuple(one for one in group if one != slice),
        tuple((a.rate - b.rate) / a.rate for a, b in both),
        tuple((a.rate - b.least) / a.rate for a, b in both),
        tuple(b.delay - a.delay for a, b in both if math.isfinite(b.delay - a.delay)),
        tuple(b.jitter - a.jitter for a, b in both if math.isfinite(b.jitter - a.jitter)),
        tuple(b.loss - a.loss for a, b in both),
    )


def _stepped(
    plan: Plan, every: Sequence[Flow], group: Sequence[str], seed: int, span: int
) -> dict[str, _Figures]:
    """Returns the figures of each slice of the group, whose flows send at the same time."""
    active = [one for one in every if one.slice in group]
    # A flow has the same phase in whatever company it is.
    phases = [random.Random(f"{seed}/{number}").random() for number in range(len(every))]
    phases = [phase for phase, one in zip(phases, every, strict=True) if one.slice in group]
    end = SETTLING + span
    arrivals: list[list[tuple[int, int]]] = [[] for _ in active]
    offered: list[list[int]] = []
    with translated():
        engine = _engine_of(plan, seed)
        for number, flow in enumerate(active):
            times = _times(flow.interval, phases[number], end)
            offered.append(times)
            for packet, at in enumerate(times):
                engine.offer(flow.sender, at, _octets(flow, number, packet))
        receivers = {flow.receiver for flow in active}
        for until in range(WINDOW, end + SETTLING + 1, WINDOW):
            for port, at, octets in engine.step(until):
                if port in receivers:
                    number, packet = (
                        int.from_bytes(octets[_NUMBER + k : _NUMBER + k + 4], "big") for k in (0, 4)
                    )
                    arrivals[number].append((packet, at))
    return {name: _figures(name, active, offered, arrivals, end) for name in group}


def _engine_of(plan: Plan, seed: int) -> _engine.Engine:
    engine = _engine.Engine(seed)
    for medium in plan.media.values():
        engine.add_medium(medium.name, medium.settings)
        for radio in medium.radios:
            engine.add_memory_port(radio.port)
            engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.mover)
            if radio.grant is not None:
                engine.police(radio.port, radio.grant.engine())
        for card in medium.cards:
            engine.add_card(medium.name, card.name, card.settings, list(card.ports))
    for change in radio_changes(plan):
        engine.schedule_radio(change.at, change.port, change.change)
    return engine


def _times(interval: float, phase: float, end: int) -> list[int]:
    """Returns when packets are sent until ``end``; ``phase`` is the share of an interval before them."""
    return [round((number + phase) * interval) for number in range(int(end / interval))]


def _octets(flow: Flow, number: int, packet: int) -> bytes:
    head = (flow.addresses + b"\x08\x00").ljust(_NUMBER, b"\0")
    head += number.to_bytes(4, "big") + packet.to_bytes(4, "big")
    return head.ljust(max(_LEAST, flow.size + _HEADERS), b"\0")


def _figures(
    name: str,
    active: Sequence[Flow],
    offered: Sequence[Sequence[int]],
    arrivals: Sequence[Sequence[tuple[int, int]]],
    end: int,
) -> _Figures:
    sent = received = 0
    bits = np.zeros((end - SETTLING) // WINDOW)
    delays: list[float] = []
    jitters: list[float] = []
    for flow, times, arrived in zip(active, offered, arrivals, strict=True):
        if flow.slice != name:
            continue
        at = np.array([one for _, one in arrived], dtype=np.int64)
        inside = (at[(at >= SETTLING) & (at < end)] - SETTLING) // WINDOW
        bits += np.bincount(inside, minlength=bits.size)[: bits.size] * 8.0 * flow.size
        sent += sum(one >= SETTLING for one in times)
        own = [(packet, one - times[packet]) for packet, one in arrived if times[packet] >= SETTLING]
        received += len(own)
        delays += [delay for _, delay in own]
        jitters += list(_differences(own))
    return _Figures(
        rate=float(bits.sum()) / (end - SETTLING) * 1e9,
        least=float(bits.min()) / WINDOW * 1e9,
        delay=float(np.mean(delays)) if delays else math.nan,
        jitter=float(np.mean(jitters)) if jitters else math.nan,
        loss=1 - received / sent if sent else math.nan,
    )


def _differences(delays: Sequence[tuple[int, int]]) -> Iterator[float]:
    """Yields the jitter of consecutive received packets (RFC 4689)."""
    for (_, one), (_, other) in itertools.pairwise(delays):
        yield abs(other - one)
