"""A link whose packets fare as those of a path did: rate, queue, delay and its variation, loss.

The model is that of a link of the engine: packets wait for the ones before them (Lindley 1952),

`W(i+1) = max(0, W(i) + S(i) - (t(i+1) - t(i)))`, with `S = 8 * octets / rate`,

and arrive `W + S + delay + jitter` after they were sent. The rate is the one for which what is left of
the measured delays, `r = d - W - S`, spreads least (mean distance from the median), if that is at most
`GAIN` of the spread without a rate; else the load never waited and tells no rate. `delay` is the median
of r, the jitter its quantiles. A queue limit is told if packets were lost above a length of the queue and
hardly below; other losses are random, in bursts if a loss follows a loss more often than chance has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airloom.calibration.paired import Floats, Way
from airloom.errors import ScenarioError

LEAST = 200
"""Packets of a direction that are needed."""
GAIN = 0.8
_QUIET = 50_000.0
"""Jitter in ns that the clocks of capturing machines have anyway; less than this is none."""
_QUANTILES = 201
_FULL = 0.7
"""Share of the longest queue from which on a loss is taken for one of the queue. Random losses are
counted below it, where the queue cost nothing."""
_BRIM = 0.9
"""Share of the longest queue from which on losses show that it has a limit: four times as many as below."""
_BURSTS = 3.0
"""Bursts of loss: a loss follows a loss so many times as often as chance has it."""


@dataclass(frozen=True, slots=True)
class PathModel:
    """One direction; times in ns, rates in bit/s, sizes in octets."""

    rate: float | None
    delay: int
    jitter: tuple[int, ...]
    """Quantiles of the deviation from ``delay``, ascending; empty: none."""
    reorders: bool
    queue: int | None
    """Limit of the queue in octets; None: it never was full."""
    longest: int
    """Octets of the longest queue that packets waited in."""
    loss: float
    """Probability of random loss; of bursts, their long-term share."""
    bursts: tuple[float, float] | None
    """Probabilities of a change to the bad state, where all is lost, and back."""
    duplicate: float


def waiting(sent: Floats, service: Floats) -> Floats:
    """Returns the time that each packet waits for those before it: Lindley's recursion in closed form."""
    steps = np.concatenate(([0.0], np.cumsum(service[:-1] - np.diff(sent))))
    waits: Floats = steps - np.minimum.accumulate(steps)
    return waits


def fitted(way: Way) -> PathModel:
    """Returns the model of a direction. Raises :class:`ScenarioError` if it has too few packets."""
    if int(way.came.sum()) < LEAST:
        raise ScenarioError(
            "capture.few",
            f"{int(way.came.sum())} packets of a direction came, {LEAST} are needed",
            cure="capture for longer, or with more load",
        )
    came = way.came
    occupied = came.astype(np.float64)
    rate, left, backlog = _queued(way, occupied)
    queue, full = _queue(way, backlog)
    if not came.all():
        # Random losses occupied the wire, as in the engine; what found the queue full did not. Where it
        # was, nothing tells them apart, but those that came stand for their share of the others.
        share, _ = _loss(~came[~full])
        occupied = np.where(full, occupied / max(1e-3, 1 - share), 1.0)
        rate, left, backlog = _queued(way, occupied)
        queue, full = _queue(way, backlog)
    delay = float(np.median(left))
    jitter: tuple[int, ...] = ()
    if np.quantile(left, 0.99) - np.quantile(left, 0.01) > _QUIET:
        jitter = tuple(int(one) for one in np.rint(np.quantile(left, np.linspace(0, 1, _QUANTILES)) - delay))
    loss, bursts = _loss(~came[~full])
    arrivals = way.arrived[came]
    late = np.mean(arrivals < np.maximum.accumulate(arrivals))
    return PathModel(
        rate=rate,
        delay=max(0, round(delay)),
        jitter=jitter,
        reorders=bool(late > 1e-3),
        queue=queue,
        longest=int(backlog[came].max()),
        loss=loss,
        bursts=bursts,
        duplicate=way.duplicates / len(way.sent),
    )


def _queued(way: Way, occupied: Floats) -> tuple[float | None, Floats, Floats]:
    """Returns the rate, what is left of the delays of those that came, and the octets before each packet.

    ``occupied``: times that each packet's octets occupied the wire.
    """
    sent = (way.sent - way.sent[0]).astype(np.float64)
    own = way.wire.astype(np.float64) * 8
    bits = own * occupied
    delays = way.delays.astype(np.float64)

    def left(rate: float) -> Floats:
        rest: Floats = delays - (waiting(sent, bits * 1e9 / rate) + own * 1e9 / rate)[way.came]
        return rest

    rate = _rate(sent, bits, delays, left)
    if rate is None:
        return None, delays, np.zeros(len(sent))
    service = bits * 1e9 / rate
    departures = sent + waiting(sent, service) + service
    octets = np.concatenate(([0.0], np.cumsum(way.frames * occupied)))
    # Behind the frame on the wire, which is no part of the queue, up to the packet itself.
    behind = np.minimum(np.searchsorted(departures, sent, side="right") + 1, np.arange(len(sent)))
    return rate, left(rate), octets[:-1] - octets[behind]


def _spread(left: Floats) -> float:
    return float(np.mean(np.abs(left - np.median(left))))


def _rate(sent: Floats, bits: Floats, delays: Floats, left: Callable[[float], Floats]) -> float | None:
    """Returns the rate in bit/s at which the rest of the delays spreads least, to 0.01 %."""
    span = float(sent[-1] - sent[0])
    if span <= 0:
        return None
    best = mean = float(bits.sum()) * 1e9 / span
    low, high, count = 0.9 * mean, 2000.0 * mean, 160
    while high / low > 1.0001:
        grid = np.geomspace(low, high, count)
        at = int(np.argmin([_spread(left(float(rate))) for rate in grid]))
        best = float(grid[at])
        low, high, count = float(grid[max(0, at - 1)]), float(grid[min(count - 1, at + 1)]), 24
    return best if _spread(left(best)) < GAIN * _spread(delays) else None


def _queue(way: Way, backlog: Floats) -> tuple[int | None, npt.NDArray[np.bool_]]:
    """Returns the limit in octets, if there is one, and the packets that met a queue that was nearly full."""
    came = way.came
    filled = backlog + way.frames
    longest = float(filled[came].max())
    full, brim = backlog >= _FULL * longest, filled >= _BRIM * longest
    chance = (int((~came & ~full).sum()) + 1) / max(1, int((~full).sum()))
    lost = int((~came & brim).sum())
    short = longest < 4 * float(way.frames.mean())
    if short or lost < 4 or lost / int(brim.sum()) < 4 * chance:
        return None, np.zeros(len(came), dtype=bool)
    return round(longest), full


def _loss(lost: npt.NDArray[np.bool_]) -> tuple[float, tuple[float, float] | None]:
    """Returns the share of losses, and the changes of state if they come in bursts."""
    share = float(lost.mean()) if lost.size else 0.0
    after = lost[1:][lost[:-1]]
    if int(after.sum()) >= 10 and float(after.mean()) > _BURSTS * share:
        into = float(lost[1:][~lost[:-1]].mean())
        return share, (into, 1.0 - float(after.mean()))
    return share, None
