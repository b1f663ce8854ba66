"""How much of an experiment runs."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

Value = TypeVar("Value")


class Extent(Enum):
    """Extents of an experiment; the values are the options of ``airloom experiment run``."""

    FULL = ""
    """All points and repetitions of the publication."""
    QUICK = "--quick"
    """Fewer points, one repetition, at most two minutes: wider intervals."""
    SMOKE = "--smoke"
    """One point of each series, a few seconds: shows that the experiment works on this machine."""

    def choose(self, *, full: Value, quick: Value, smoke: Value) -> Value:
        """Returns the value of this extent."""
        return {Extent.FULL: full, Extent.QUICK: quick, Extent.SMOKE: smoke}[self]

    def repetitions(self, full: int) -> int:
        """Returns the number of repetitions of each point: ``full`` or 1."""
        return full if self is Extent.FULL else 1
