"""A campaign: the runs of one experiment, what they found, and the claims held against it.

An experiment names its :class:`Case`\\ s, reads its figures out of each finished run, and says what they must
show::

    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        found = campaign.measure(cases, figures_of, repetitions=10)
        campaign.claim("plateau", "...", "native within 3 % of 23.08 Mbit/s", says="plateau",
                       native=found.quantity("throughput", "bit/s", load=50, kind="netns"))
        campaign.draw(Figure(...))

Every run has a folder of its own below ``points/`` and is kept: an experiment that was stopped goes on
where it was. Before each run the progress says which it is and how long the rest will take.
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
"""Seconds that a run takes beside its own length: bring-up, reading, writing; until some were timed."""

Labels = Mapping[str, Any]
Figures = Mapping[str, tuple[float, str]]
"""Name of a figure: value and unit."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the folder it has, what distinguishes it, and how long it will take."""

    name: str
    labels: Labels
    scenario: Scenario
    seconds: float

    def repeated(self, repetition: int) -> Case:
        """The same with the seed and the folder of a repetition, counted from 0."""
        seed = derived_seed(
            self.scenario.seed, {key: str(one) for key, one in self.labels.items()}, repetition
        )
        scenario = self.scenario.model_copy(update={"seed": seed})
        return Case(f"{self.name}-r{repetition:02}", self.labels, scenario, self.seconds)


@dataclass(slots=True)
class Found:
    """Figures of many runs: by name and labels, one value for each repetition."""

    values: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, labels: Labels, figures: Figures) -> None:
        """Adds what one run gave."""
        for name, (value, unit) in figures.items():
            self.values.setdefault((name, _key(labels)), []).append(value)
            self.units[name] = unit

    def all(self, name: str, **labels: Any) -> list[float]:
        """The value of each repetition; empty if there is none."""
        return self.values.get((name, _key(labels)), [])

    def mean(self, name: str, **labels: Any) -> float | None:
        """The mean over the repetitions, in the figure's own unit; None if it was not measured."""
        values = self.all(name, **labels)
        return mean(values).value if values else None

    def quantity(self, name: str, **labels: Any) -> Quantity | None:
        """The same with its unit, for claims."""
        value = self.mean(name, **labels)
        return None if value is None else Quantity.of(value, self.units[name])

    def line(
        self, label: str, role: Role, name: str, over: str, at: Sequence[float], scale: float, **labels: Any
    ) -> Line:
        """A figure against one of the labels, divided by ``scale``, with its intervals."""
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
        """Every figure with its interval, for ``result.json``; they are told apart by their labels."""
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
    """Runs cases, gathers what they found, and writes the experiment's results when it is left."""

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
        """Statements of the paper that a claim was made of."""
        self._figures: list[Figure] = []
        self._overheads: list[float] = []
        self._failures: list[str] = []
        self._lacking: HostError | None = None
        """What this machine lacked first."""
        self._measured: set[str] = set()
        self._asked: set[str] = set()
        """Every run that was to be measured; others in the folder are not of this campaign."""
        self._kept: set[str] = set()
        self._notes: list[str] = []
        kinds = tuple(dict.fromkeys(kinds))
        self._writer = RunWriter(folder, scenario=name, seed=1, kinds=kinds, replace=True)

    @classmethod
    def of(
        cls, experiment: str, folder: Path, *, progress: Callable[[str], None], kinds: Iterable[str]
    ) -> Self:
        """That of an ``experiment.py`` (its ``__file__``): called as its folder, with the paper beside it."""
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
        """Runs every case so many times, all cases once before any again."""
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
                # The others are worth having: what this one should have measured is missing from the claims.
                self._failures.append(f"{case.name}: {error}")
                if isinstance(error, HostError):
                    self._lacking = self._lacking or error
        return self.found

    def run(self, case: Case) -> RunReader:
        """One run: read if it was finished before, else made."""
        if self._is_done(case):
            return capacity_search.point(self.folder, case.name, case.scenario)
        began = time.monotonic()
        reader = capacity_search.point(self.folder, case.name, case.scenario)
        self._overheads.append(max(0.0, time.monotonic() - began - case.seconds))
        return reader

    def reader(self, case: Case, repetition: int = 0) -> RunReader | None:
        """A finished run of a case; None if it failed."""
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
        """Holds a claim against values of its own; ``says`` is the id of what the paper says to it.

        A value of None was not measured, and the claim fails for it. Where the paper's statement is flagged
        and the claim does not hold, it is implausible in its source.
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
        """Something that bounds the result and is no fault of a run; goes into the verdict."""
        self._notes.append(text)

    def draw(self, figure: Figure) -> None:
        """Adds a figure, with what the paper has in it."""
        lines = (*figure.lines, *self.paper.lines(figure.name))
        marks = (*figure.marks, *self.paper.marks(figure.name))
        self._figures.append(figure.model_copy(update={"lines": lines, "marks": marks}))

    def finish(self) -> Result:
        """Writes measurements, figures, claims, and the worst verdict of all runs.

        What cannot be right in the paper, and no claim was made of, is shown all the same. Where nothing
        could be measured for want of something that this machine lacks, :class:`~airloom.errors.HostError`
        names it.
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
