"""Models of real equipment, fitted to the study's real network, and what they give for its cases.

The engine runs in memory here: what comes out is the models', nothing of the host's.

For each candidate model and each rate of the link one parameter is chosen from a stated ladder, the one that
comes nearest to the published mean jitters (least sum of squared logarithms of the ratios over the rate's
cases). The rest between frames is chosen in the same way, from the published mean bandwidths of the
saturated cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloom import _engine
from airloom.measure.flow import FlowReading, jitter_rfc3550, jitter_rfc4689

SEED = 1
PARETO_SHAPE = 2.0
"""The tail that reaches the published maxima: the largest of n draws is about `scale * sqrt(n)`."""
LADDERS: dict[str, tuple[float, ...]] = {
    "moderation": (50, 125, 250, 500, 1000, 2000),
    "tick": (10, 50, 100, 500, 1000, 2000),
    "service": (4, 6, 9, 12, 18, 30, 60, 120, 180, 270, 400, 600),
}
"""For the receiver, us: least time between interrupts, clock granularity, scale of the Pareto law."""
GAPS = (0.0, 1, 2, 3, 4, 5, 7, 10, 20, 40, 60, 80, 120, 160, 240)
"""Rest of the sender's adapter after a frame: us."""


@dataclass(frozen=True, slots=True)
class Model:
    """Parameters of one receiver model and of the sender's rest: us."""

    word: str
    value: float
    gap: float

    def receiver(self) -> dict[str, Any]:
        """In the engine's words."""
        nanos = round(self.value * 1000)
        match self.word:
            case "moderation":
                return {"moderation_ns": nanos}
            case "tick":
                return {"tick_ns": nanos}
            case "service":
                return {"service": {"pareto": {"scale_ns": nanos, "shape": PARETO_SHAPE}}}
            case _:
                return {}


def simulate(case: Any, model: Model, packets: int) -> FlowReading:
    """The flow of a case over ideal wires with this equipment at the hosts."""
    engine = _engine.Engine(SEED)
    for name in ("h1", "h2"):
        engine.add_memory_port(name)
    engine.add_switch("s1", {"switch": {"ageing_ns": 300 * 10**9, "addresses": 8}})
    wire: dict[str, Any] = {"rate": {"bits-per-second": case.link * 10**6}, "queue": {"packets": packets}}
    engine.connect("h1-s1", "h1", "s1", {**wire, "gap_ns": round(model.gap * 1000)}, wire)
    engine.connect("s1-h2", "s1", "h2", {**wire, "receiver": model.receiver()}, wire)
    interval = case.frame * 8000 / case.load
    head = bytes.fromhex("020000000002020000000001") + b"\x88\xb5"
    body = head.ljust(case.frame - 4, b"\0")
    sent = np.array([round(number * interval) for number in range(packets)], np.int64)
    for at in sent.tolist():
        engine.offer("h1", at, body)
    arrived = np.array([at for port, at, _ in engine.step(10**13) if port == "h2"], np.int64)
    delays = arrived - sent
    none = np.empty(0, np.int64)
    octets = np.full(packets, case.frame, np.int64)
    return FlowReading(
        protocol="udp", sent=packets, not_sent=0, received=packets, duplicates=0, reordered=0, extents=none,
        host_lost=0, complete=True, sent_at=sent, arrived_at=arrived, delays=delays,
        jitter=jitter_rfc4689(delays), jitter_rtp=jitter_rfc3550(delays), lateness=none, lateness_at=none,
        arrivals=arrived, arrival_octets=octets, departures=sent, departure_octets=octets,
    )  # fmt: skip


def distance(pairs: Sequence[tuple[float, float]]) -> float:
    """Root mean square of the logarithm of the ratios; a jitter below 0.1 us counts as that."""
    logs = [math.log(max(ours, 1e-4) / theirs) for ours, theirs in pairs]
    return math.sqrt(sum(one * one for one in logs) / len(logs))


@dataclass(frozen=True, slots=True)
class Fit:
    """The best parameter of one candidate at one rate of the link, and how far it is from the study."""

    link: int
    model: Model
    factor: float
    """By which mean jitters miss the published ones, in the geometric mean."""


def fit(
    cases: Sequence[Any],
    jitters: dict[str, float],
    bandwidths: dict[str, float],
    packets: int,
    progress: Callable[[str], None],
) -> list[Fit]:
    """All candidates at all rates; for each rate the nearest one first."""
    found = []
    for link in sorted({case.link for case in cases}):
        own = [case for case in cases if case.link == link]
        full = [case for case in own if case.load == link]
        progress(f"fitting equipment at {link} Mbit/s")
        gap = min(GAPS, key=lambda gap: sum((_saturated(c, gap) / bandwidths[c.id] - 1) ** 2 for c in full))
        fits = []
        for word, ladder in {"none": (0.0,), **LADDERS}.items():
            trials = []
            for value in ladder:
                model = Model(word, value, gap)
                pairs = [(_jitter(case, model, packets), jitters[case.id]) for case in own]
                trials.append(Fit(link, model, math.exp(distance(pairs))))
            fits.append(min(trials, key=lambda one: one.factor))
        found += sorted(fits, key=lambda one: one.factor)
    return found


def _saturated(case: Any, gap: float) -> float:
    """Mean bandwidth of a full link with a rest after each frame: Mbit/s."""
    return float(case.frame * 8e3 / (case.on_wire + gap * 1000))


def _jitter(case: Any, model: Model, packets: int) -> float:
    return float(simulate(case, model, packets).jitter.mean()) / 1e6
