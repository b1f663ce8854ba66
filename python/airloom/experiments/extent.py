"""How much of an experiment runs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from airloom.experiments.repetitions import MOST, WITHIN, Repetitions

Value = TypeVar("Value")


class Extent(Enum):
    """Extents of an experiment; the values are the options of ``airloom experiment run``."""

    FULL = ""
    """All points of the publication, repeated until their intervals are narrow enough."""
    QUICK = "--quick"
    """Fewer points, one repetition, at most two minutes: figures without intervals."""
    SMOKE = "--smoke"
    """One point of each series, a few seconds: shows that the experiment works on this machine."""

    def choose(self, *, full: Value, quick: Value, smoke: Value) -> Value:
        """Returns the value of this extent."""
        return {Extent.FULL: full, Extent.QUICK: quick, Extent.SMOKE: smoke}[self]

    def repetitions(
        self, *headlines: str, within: float | Mapping[str, float] = WITHIN, most: int = MOST
    ) -> Repetitions:
        """Returns how often points are run: until the headline is exact enough, or once.

        The headline of a point is the first of these figures that it has.
        """
        if self is Extent.FULL:
            return Repetitions(headlines, within, most=most)
        return Repetitions.fixed(1, *headlines)
