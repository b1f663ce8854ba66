"""Classes of experiments, and whether a kind of node is harmless, correctable or unusable for each.

A kind is known by its calibration (:mod:`airloom.calibration.model`), measured between two
neighbours. A path over ``h`` hops from node to node adds ``h * D`` to the delay and ``h * J`` to the
jitter; the half width of their 95 % intervals grows with ``sqrt(h)``, as for independent hops.

==========  ==================================================================================
class       rule
==========  ==================================================================================
throughput  packets/s below the ceiling for so many pairs: harmless. Above it: correctable to the
            native equivalent, rate * native ceiling / ceiling, if both are known to better than
            half; else unusable
real-time   jitter limit 0.5 ms, of UDP applications in real time (thesis on ORBIT, jitter over
            load)
voice       jitter limit 50 ms, of audio (the same, RTP video)
video       jitter limit 50 ms, and the rule of throughput
tcp         added round-trip time, at most 5 % of the path's own: harmless; else unusable, since
            TCP reacts to it: no formula brings the native course back
routing     added delay of a path, limit 1 s, the shortest interval of OSPF's hello packets
            (RFC 2328; not checked)
==========  ==================================================================================

With a limit: an addition of at most 5 % of it, its uncertainty included, is harmless; below the
limit it is correctable by subtraction; else, or without an interval, unusable.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from airloom.calibration.correct import HARMLESS, KNOWN
from airloom.calibration.model import Calibration, Figure
from airloom.units.figures import readable

Verdict = Literal["harmless", "correctable", "unusable"]
ORDER: tuple[Verdict, ...] = ("harmless", "correctable", "unusable")

REAL_TIME, MEDIA, HELLO = 500_000, 50_000_000, 1_000_000_000
"""Limits in ns."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a scenario asks of its nodes."""

    packets: float
    """Largest packets/s of a flow."""
    pairs: int
    """Pairs of nodes that send at once."""
    hops: int
    """Most hops from node to node on the path of a measurement."""
    rtt_ns: float
    """The shortest round-trip time of such a path without its nodes, ns; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A class of experiments on one kind."""

    experiment: str
    verdict: Verdict
    why: str
    formula: str = ""
    """How a figure is corrected; only if correctable."""
    correction: float | None = None
    """Summand in ns, negative, or factor."""
    half_width: float | None = None
    """Half of its 95 % interval."""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return asdict(self)


def judged(made: Calibration, load: Load) -> list[Judgement]:
    """Returns the judgement of every class."""
    delay, jitter = _over(made.delay_ns, load.hops), _over(made.jitter_ns, load.hops)
    rate = _throughput(made, load)
    media = _bound("video", "jitter", jitter, MEDIA)
    return [
        rate,
        _bound("real-time", "jitter", jitter, REAL_TIME),
        _bound("voice", "jitter", jitter, MEDIA),
        max(media, Judgement("video", rate.verdict, rate.why, rate.formula, rate.correction, rate.half_width),
            key=lambda one: ORDER.index(one.verdict)),
        _tcp(delay, load),
        _bound("routing", "delay", delay, HELLO),
    ]  # fmt: skip


def latency_bounds(made: Calibration, hops: int) -> tuple[float, float] | None:
    """Returns the least latency bounds that still fit, in ns: harmless, and with subtraction.

    None without an interval.
    """
    value, half = _over(made.delay_ns, hops)
    if half is None:
        return None
    most = max(0.0, value) + half
    return most / HARMLESS, most


def _over(figure: Figure, hops: int) -> tuple[float, float | None]:
    half = figure.half_width
    return figure.value * hops, None if half is None else half * math.sqrt(hops)


def _throughput(made: Calibration, load: Load) -> Judgement:
    ceiling, measured = made.ceiling(load.pairs)
    guess = "" if measured else ", by extrapolation"
    pairs = "one pair" if load.pairs == 1 else f"{load.pairs} pairs"
    why = f"{load.packets:,.0f} packets/s of a ceiling of {ceiling:,.0f} with {pairs}{guess}"
    if load.packets < ceiling:
        return Judgement("throughput", "harmless", why)
    native, own = made.native_ceiling, made.ceilings[1]
    halves = [one.half_width for one in (native, own)]
    if any(half is None for half in halves):
        return Judgement("throughput", "unusable", f"{why}; without an interval of the ceilings")
    relative = math.hypot(*((one.half_width or 0) / one.value for one in (native, own)))
    if relative >= KNOWN:
        return Judgement("throughput", "unusable", f"{why}; the ceilings are known to {relative:.0%} only")
    factor = native.value / own.value
    return Judgement(
        "throughput", "correctable", why, "rate * native ceiling / ceiling, at most the offered rate",
        factor, factor * relative,
    )  # fmt: skip


def _bound(name: str, what: str, added: tuple[float, float | None], limit: int) -> Judgement:
    value, half = added
    said = f"adds {readable(value, 'ns')} to the {what}, limit {readable(limit, 'ns')}"
    if half is None:
        return Judgement(name, "unusable", f"{said}; the calibration has one round, thus no interval")
    said = (
        f"adds {readable(value, 'ns')} +- {readable(half, 'ns')} to the {what}, limit {readable(limit, 'ns')}"
    )
    most = max(abs(value - half), abs(value + half))
    if most <= HARMLESS * limit:
        return Judgement(name, "harmless", said)
    if most < limit:
        return Judgement(name, "correctable", said, f"{what} - addition", -value, half)
    return Judgement(name, "unusable", said)


def _tcp(delay: tuple[float, float | None], load: Load) -> Judgement:
    value, half = 2 * delay[0], None if delay[1] is None else math.sqrt(2) * delay[1]
    said = f"adds {readable(value, 'ns')} to the round-trip time of {readable(load.rtt_ns, 'ns')}"
    if half is None:
        return Judgement("tcp", "unusable", f"{said}; the calibration has one round, thus no interval")
    if max(abs(value - half), abs(value + half)) <= HARMLESS * load.rtt_ns:
        return Judgement("tcp", "harmless", said)
    return Judgement("tcp", "unusable", f"{said}, to which TCP reacts; give the links more delay")
