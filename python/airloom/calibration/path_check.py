"""Sends the packets of a capture over a link of the engine, and compares what comes with what came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloom import _engine
from airloom.calibration.paired import LOST, Way

_HEADER = bytes.fromhex("0200000000020200000000010800")
_NUMBER = slice(14, 22)
_DRAIN = 60_000_000_000
"""ns after the last packet within which all others arrive."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of the held-out packets: measured, of the model, and the unit (ns, or 1 for a share)."""

    name: str
    measured: float
    model: float
    unit: str

    @property
    def error(self) -> float | None:
        """Relative error of the model; None if the measured figure is 0."""
        return None if self.measured == 0 else self.model / self.measured - 1


def through_the_engine(way: Way, settings: Mapping[str, Any], seed: int) -> Way:
    """Returns the packets of a direction as a link with these settings of the engine lets them arrive."""
    engine = _engine.Engine(seed)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("path", "a", "b", dict(settings), {})
    start = int(way.sent[0])
    arrived = np.full(len(way.sent), LOST, dtype=np.int64)
    for number, (sent, octets) in enumerate(zip(way.sent, way.frames, strict=True)):
        frame = (_HEADER + number.to_bytes(8, "big")).ljust(max(int(octets), 60), b"\0")
        engine.offer("a", int(sent) - start, frame)
    for _, at, octets in engine.step(int(way.sent[-1]) - start + _DRAIN):
        number = int.from_bytes(octets[_NUMBER], "big")
        if arrived[number] == LOST:
            arrived[number] = at + start
    return Way(way.sent, arrived, way.frames, 0)


def compared(measured: Way, modelled: Way) -> tuple[Compared, ...]:
    """Returns delay and loss of both, and how far their distributions of delay are apart."""
    rows = [
        Compared(name, float(function(measured.delays)), float(function(modelled.delays)), "ns")
        for name, function in (
            ("delay mean", np.mean),
            ("delay p5", lambda delays: np.quantile(delays, 0.05)),
            ("delay p50", np.median),
            ("delay p95", lambda delays: np.quantile(delays, 0.95)),
            ("delay p99", lambda delays: np.quantile(delays, 0.99)),
        )
    ]
    lost, lost_in_model = (1 - float(way.came.mean()) for way in (measured, modelled))
    return (*rows, Compared("loss", lost, lost_in_model, "1"))


def distance(measured: Way, modelled: Way) -> float:
    """Returns the largest difference of the distribution functions of the delays (Kolmogorov, Smirnov)."""
    one, other = np.sort(measured.delays), np.sort(modelled.delays)
    points = np.concatenate((one, other))
    below = [np.searchsorted(values, points, side="right") / len(values) for values in (one, other)]
    return float(np.max(np.abs(below[0] - below[1])))
