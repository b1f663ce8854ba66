"""The lease of a connection to another machine: both sides tell each other that they live."""

from __future__ import annotations

import time
from typing import Protocol

BEAT_S = 0.5
"""Seconds between two messages by which either side tells that it lives."""
LEASE_S = 5.0
"""Seconds after which a silent side counts as gone."""


class Side(Protocol):
    """One side of a connection."""

    heard: float
    """When the last message arrived, in seconds of the monotonic clock."""

    def beat(self) -> None:
        """Tells the other side that this one lives; raises :class:`OSError` if the connection has ended."""


def keep(side: Side) -> bool:
    """Tells the other side that this one lives, until the connection has ended, or nothing comes from there.

    Returns whether the other side is silent.
    """
    while time.monotonic() - side.heard < LEASE_S:
        try:
            side.beat()
        except OSError:
            return False
        time.sleep(BEAT_S)
    return True
