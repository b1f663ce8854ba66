"""A reading of a node's clock together with the host's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Offset of a node's CLOCK_MONOTONIC from the host's at one moment."""

    at: int
    """The host's CLOCK_MONOTONIC: ns."""
    ahead: int = 0
    """The node's clock minus the host's: ns."""
    error: int = 0
    """Largest error of ``ahead``: ns; 0 if both are the same clock."""
