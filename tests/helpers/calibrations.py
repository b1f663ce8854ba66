"""Fabricated calibrations; nothing was measured."""

from __future__ import annotations

from typing import Any

from airloom.calibration.model import Calibration, Figure

US = 1e3


def figure(value: float, half: float | None = 0.0) -> Figure:
    """Returns a figure with half of its interval, and the least value at the lower end."""
    return Figure(value=value, half_width=half, least=value - (half or 0))


def made(**more: Any) -> Calibration:
    """Returns a calibration of ``netns``: 100 us of delay, 20 us of jitter, 30,000 packets/s."""
    values = {
        "kind": "netns", "made": "", "airloom": "0", "machine": {}, "rounds": 3,
        "ceilings": {1: figure(30_000, 3_000), 2: figure(20_000, 2_000)},
        "native_ceiling": figure(90_000, 9_000),
        "delay_ns": figure(100 * US, 20 * US), "jitter_ns": figure(20 * US, 4 * US),
        "spread_ns": figure(1.0), "cost_ns": figure(1.0),
    }  # fmt: skip
    return Calibration.model_validate(values | more)
