"""Quality of a G.711 call from delay and loss: the E-model of ITU-T Recommendation G.107.

Default values of G.107 (2015) for everything but the one-way delay and the packet loss, and those
of G.113 (2007), appendix I, for G.711 with packet loss concealment and random loss.
"""

from __future__ import annotations

import math

from airloom.units.quantities import Duration, Size

INTERVAL = Duration("20 ms")
SIZE = Size("172 B")
"""An RTP header and 20 ms of G.711: 160 octets."""

_BASIC = 93.2
"""Rating with all default values and without delay and loss."""
_ROBUSTNESS = 25.1
"""Packet-loss robustness factor Bpl of G.711 with concealment."""
_UNHEARD = 100.0
"""One-way delay in ms that does not impair a call."""


def rating(delay: float, loss: float) -> float:
    """The transmission rating R for a one-way delay in ns and a share of lost packets from 0 to 1."""
    milliseconds = delay / 1e6
    impaired = 0.0
    if milliseconds > _UNHEARD:
        x = math.log2(milliseconds / _UNHEARD)
        impaired = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
    percent = 100 * loss
    equipment = 95 * percent / (percent + _ROBUSTNESS)
    return _BASIC - impaired - equipment


def mos(rating: float) -> float:
    """The mean opinion score, 1 to 4.5, of a rating (G.107, annex B)."""
    if rating <= 0:
        return 1.0
    if rating >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
