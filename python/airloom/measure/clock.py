"""What a node's clock said, beside the machine's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockReading:
    """How a node's CLOCK_MONOTONIC stood to the host's at one moment."""

    at: int
    """The host's CLOCK_MONOTONIC: ns."""
    ahead: int = 0
    """The node's clock minus the host's: ns."""
    error: int = 0
    """Largest error of that: ns; 0 where both are one clock."""
