"""A campaign: the runs of one experiment, their figures, and the claims about these figures.

An experiment lists its :class:`Case`\\ s, reads figures from each finished run, and states claims
about them::

    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        found = campaign.measure(cases, figures_of, repetitions=10)
        campaign.claim("plateau", "...", "native within 3 % of 23.08 Mbit/s", says="plateau",
                       native=found.quantity("throughput", "bit/s", load=50, kind="netns"))
        campaign.draw(Figure(...))

Every run is stored in a folder below ``points/``, so a stopped experiment resumes after its last
finished run. Before each run, the progress reports its name and the estimated remaining time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from airloom.errors import HostError, RunError
from airloom.experiments import capacity_search
from airloom.experiments import paper as published
from airloom.experiments.paper import Paper, Statement
from airloom.planning.sweep import derived_seed
from airloom.report import figures
from airloom.report.figures import Figure, Line, Role
from airloom.results import Claim, Measurement, Result, RunReader, RunWriter, claims
from airloom.runs.single import Interrupted
from airloom.scenario.model import Scenario
from airloom.stats import mean
from airloom.units.figures import Quantity
from airloom.units.text import seconds as in_words

OVERHEAD = 3.0
"""Estimated overhead of a run in seconds (bring-up, reading, writing) until runs were timed."""

Labels = Mapping[str, Any]
Figures = Mapping[str, tuple[float, str]]
"""Name of a figure: value and unit."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: its folder, its labels and its expected duration."""

    name: str
    labels: Labels
    scenario: Scenario
    seconds: float

    def repeated(self, repetition: int) -> Case:
        """Returns the case with seed and folder of this repetition, counted from 0."""
        seed = derived_seed(
            self.scenario.seed, {key: str(one) for key, one in self.labels.items()}, repetition
        )
        scenario = self.scenario.model_copy(update={"seed": seed})
        return Case(f"{self.name}-r{repetition:02}", self.labels, scenario, self.seconds)


@dataclass(slots=True)
class Found:
    """Figures of many runs, by name and labels; one value for each repetition."""

    values: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, labels: Labels, figures: Figures) -> None:
        """Adds the figures of one run."""
        for name, (value, unit) in figures.items():
            self.values.setdefault((name, _key(labels)), []).append(value)
            self.units[name] = unit

    def all(self, name: str, **labels: Any) -> list[float]:
        """Returns the value of each repetition; empty without a value."""
        return self.values.get((name, _key(labels)), [])

    def mean(self, name: str, **labels: Any) -> float | None:
        """Returns the mean over the repetitions in the figure's unit; None if not measured."""
        values = self.all(name, **labels)
        return mean(values).value if values else None

    def quantity(self, name: str, **labels: Any) -> Quantity | None:
        """Returns the mean with its unit, for claims."""
        value = self.mean(name, **labels)
        return None if value is None else Quantity.of(value, self.units[name])

    def line(
        self, label: str, role: Role, name: str, over: str, at: Sequence[float], scale: float, **labels: Any
    ) -> Line:
        """Returns a figure over one label, divided by ``scale``, with confidence intervals."""
        found = [self.all(name, **{over: x}, **labels) for x in at]
        means = [mean(values) if values else None for values in found]
        return Line(
            label=label,
            role=role,
            x=tuple(float(x) for x in at),
            y=tuple(None if one is None else one.value / scale for one in means),
            ci95=tuple(None if one is None or one.n < 2 else one.half_width / scale for one in means),
        )

    def measurements(self, name: str) -> list[Measurement]:
        """Returns all figures with intervals, for ``result.json``; labels distinguish them."""
        found = []
        for (metric, labels), values in self.values.items():
            over = mean(values)
            found.append(
                Measurement(
                    name=name,
                    metric=metric,
                    unit=self.units[metric],
                    mean=over.value,
                    ci95=over.half_width if over.n > 1 else None,
                    n=over.n,
                    labels=dict(labels),
                )
            )
        return found


class Campaign:
    """Runs cases, collects their figures, and writes the experiment's results on exit."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        paper: Paper,
        progress: Callable[[str], None],
        kinds: Iterable[str],
    ) -> None:
        self.name = name
        self.folder = folder
        self.paper = paper
        self.found = Found()
        self._progress = progress
        self._claims: list[Claim] = []
        self._spoken: set[str] = set()
        """Statements of the paper that a claim refers to."""
        self._figures: list[Figure] = []
        self._overheads: list[float] = []
        self._failures: list[str] = []
        self._lacking: HostError | None = None
        """The first missing requirement of this machine."""
        self._measured: set[str] = set()
        self._asked: set[str] = set()
        """The campaign's runs; the folder may contain runs of other campaigns."""
        self._kept: set[str] = set()
        self._notes: list[str] = []
        kinds = tuple(dict.fromkeys(kinds))
        self._writer = RunWriter(folder, scenario=name, seed=1, kinds=kinds, replace=True)

    @classmethod
    def of(
        cls, experiment: str, folder: Path, *, progress: Callable[[str], None], kinds: Iterable[str]
    ) -> Self:
        """Returns the campaign of an ``experiment.py`` (its ``__file__``) and its paper."""
        path = Path(experiment)
        paper = published.read(path.with_name("paper.csv"))
        return cls(path.parent.name, folder, paper=paper, progress=progress, kinds=kinds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def measure(
        self, cases: Sequence[Case], read: Callable[[Case, RunReader], Figures], *, repetitions: int = 1
    ) -> Found:
        """Runs every case ``repetitions`` times; all cases once before any is repeated."""
        todo = [case.repeated(number) for number in range(repetitions) for case in cases]
        self._asked |= {case.name for case in todo}
        for number, case in enumerate(todo):
            left = self._left(todo[number:])
            self._progress(f"{number + 1}/{len(todo)} {case.name}, about {in_words(left * 1e9)} to go")
            try:
                self.found.add(case.labels, read(case, self.run(case)))
                self._measured.add(case.name)
            except Interrupted:
                raise
            except (RunError, HostError) as error:
                # The other runs remain useful; the figures of this one are missing from the claims.
                self._failures.append(f"{case.name}: {error}")
                if isinstance(error, HostError):
                    self._lacking = self._lacking or error
        return self.found

    def run(self, case: Case) -> RunReader:
        """Returns one run: the stored one if it has finished, otherwise a new one."""
        if self._is_done(case):
            return capacity_search.point(self.folder, case.name, case.scenario)
        began = time.monotonic()
        reader = capacity_search.point(self.folder, case.name, case.scenario)
        self._overheads.append(max(0.0, time.monotonic() - began - case.seconds))
        return reader

    def reader(self, case: Case, repetition: int = 0) -> RunReader | None:
        """Returns a finished run of a case; None if it failed."""
        one = case.repeated(repetition)
        return self.run(one) if one.name in self._measured else None

    def claim(
        self,
        id: str,
        statement: str,
        check: str,
        *,
        says: str,
        shape: str | None = None,
        **values: Quantity | float | None,
    ) -> Claim:
        """Evaluates a claim with its own values; ``says`` is the ID of the paper's statement.

        None means not measured, and fails the claim. If the claim does not hold and the paper's
        statement is flagged, the outcome is "implausible in its source".
        """
        said = self.paper[says]
        self._spoken.add(says)
        known = {
            name: value if isinstance(value, Quantity) else Quantity(float(value))
            for name, value in values.items()
            if value is not None
        }
        found = claims.evaluate(
            id,
            statement,
            check,
            claims.from_measurements((), known),
            source=said.source,
            published=said.says,
            shape=shape,
            implausible=said.implausible,
        )
        self._claims.append(found)
        return found

    def note(self, text: str) -> None:
        """Adds to the verdict a limitation of the result that is no fault of a run."""
        self._notes.append(text)

    def draw(self, figure: Figure) -> None:
        """Adds a figure, with the published values for it."""
        lines = (*figure.lines, *self.paper.lines(figure.name))
        marks = (*figure.marks, *self.paper.marks(figure.name))
        self._figures.append(figure.model_copy(update={"lines": lines, "marks": marks}))

    def finish(self) -> Result:
        """Writes measurements, figures, claims, and the worst verdict of all runs.

        Flagged statements of the paper without a claim are listed too. Raises
        :class:`~airloom.errors.HostError` if nothing could be measured because this machine lacks a
        requirement.
        """
        if self._lacking is not None and not self.found.values:
            raise self._lacking
        self._claims += [_as_claim(one) for one in self.paper.implausible if one.id not in self._spoken]
        self._writer.measured(*self.found.measurements(self.name))
        figures.save(self.folder, self._figures)
        verdict, ledger = capacity_search.whole(self.folder, self._asked or None)
        for failure in reversed(self._failures):
            verdict = verdict.also("invalid", "experiment.failed-run", failure)
        if not self.found.values:
            verdict = verdict.also("invalid", "experiment.empty", "nothing was measured")
        verdict = verdict.model_copy(update={"notes": (*self._notes, *verdict.notes)})
        return self._writer.finish(verdict, ledger, claims=self._claims)

    def _is_done(self, case: Case) -> bool:
        if (
            case.name not in self._kept
            and capacity_search.kept(self.folder, case.name, case.scenario) is not None
        ):
            self._kept.add(case.name)
        return case.name in self._kept

    def _left(self, cases: Sequence[Case]) -> float:
        overhead = sum(self._overheads) / len(self._overheads) if self._overheads else OVERHEAD
        return sum(case.seconds + overhead for case in cases if not self._is_done(case))


def _as_claim(said: Statement) -> Claim:
    return Claim(
        id=f"published-{said.id}",
        statement=said.says,
        source=said.source,
        published=said.says,
        outcome="implausible-in-source",
        why=said.implausible or "",
    )


def _key(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(value)) for key, value in labels.items()))
