"""Adaptive repetitions: a point is repeated until the interval of its headline figure is narrow enough.

The rule is sequential: after each run Student's 95 % interval over the runs so far is compared with
the asked half width (Law, Simulation Modeling and Analysis, section 9.4.1). With few runs such an
interval covers the mean a little less often than 95 %; ``least`` limits that. An experiment ends
within :data:`LONGEST`: what is left of it after the certain runs goes to the widest intervals first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from airloom.experiments.found import Found, Labels, Sample
from airloom.results.result import Repeated
from airloom.stats import mean

LEAST, MOST = 3, 10
WITHIN = 0.01
LONGEST = 3600.0
"""Estimated seconds of an experiment after which no point is repeated beyond ``least``."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often a point is run; a fixed number if ``least`` and ``most`` are equal."""

    headlines: tuple[str, ...] = ()
    """The first of these figures that a point has is its headline."""
    within: float | Mapping[str, float] = WITHIN
    """Largest half width of the 95 % interval, as a share of the mean; of some headlines by name."""
    least: int = LEAST
    most: int = MOST

    @classmethod
    def fixed(cls, number: int, *headlines: str) -> Repetitions:
        """Returns a fixed number of runs of each point."""
        return cls(headlines, least=number, most=number)

    def stopped(self, found: Found, labels: Labels, runs: int) -> str | None:
        """Returns why a point needs no further run after ``runs``; None if it needs one."""
        if runs < self.least:
            return None
        if self.least == self.most:
            return "a fixed number of runs" if self._headline(found, labels) else "no run gave the figure"
        headline = self._headline(found, labels)
        if headline is None:
            return "no run gave the figure"
        if self.relative_width(found, labels) <= 1:
            return f"the interval is within {100 * self._share(headline[0]):g} % of the mean"
        return f"the limit of {self.most} runs" if runs >= self.most else None

    def relative_width(self, found: Found, labels: Labels) -> float:
        """Returns the half width of the headline's interval over the asked one; infinite if unknown."""
        headline = self._headline(found, labels)
        if headline is None:
            return math.inf
        name, sample = headline
        values = sample.valid or sample.every
        if len(values) < self.least:
            return math.inf
        over = mean(values)
        asked = self._share(name) * abs(over.value)
        if over.half_width == 0:
            return 0.0
        return over.half_width / asked if asked else math.inf

    def report(self, found: Found, labels: Labels, stopped: str) -> Repeated:
        """Returns what ``result.json`` says about a point."""
        said = {key: str(value) for key, value in labels.items()}
        headline = self._headline(found, labels)
        if headline is None:
            return Repeated(labels=said, metric=next(iter(self.headlines), ""), unit="", stopped=stopped)
        name, sample = headline
        over = mean(sample.valid or sample.every)
        return Repeated(
            labels=said,
            metric=name,
            unit=sample.unit,
            mean=over.value,
            ci95=over.half_width if over.n > 1 else None,
            n=over.n,
            invalid=len(sample.every) - len(sample.valid),
            within=None if self.least == self.most else self._share(name),
            stopped=stopped,
        )

    def _headline(self, found: Found, labels: Labels) -> tuple[str, Sample] | None:
        for name in self.headlines:
            sample = found.sample(name, **labels)
            if sample is not None:
                return name, sample
        return None

    def _share(self, name: str) -> float:
        return self.within if isinstance(self.within, float) else self.within.get(name, WITHIN)
