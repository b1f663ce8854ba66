"""A campaign: the runs of one experiment, their figures, and the claims about these figures.

An experiment lists its :class:`Case`\\ s, reads figures from each finished run, and states claims
about them::

    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        found = campaign.measure(cases, figures_of, extent.repetitions("throughput"))

        def claims() -> None:
            campaign.claim("plateau", "...", "native within 3 % of 23.08 Mbit/s", says="plateau",
                           native=found.sample("throughput", load=50, kind="netns"))

        campaign.judge(claims)
        campaign.draw(Figure(...))

Every run is stored in a folder below ``points/``, so a stopped experiment resumes after its last
finished run. The progress reports the estimated duration before the first run, and before each run
its name and the estimated remaining time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from airloom.errors import HostError, RunError
from airloom.experiments import capacity_search, outside
from airloom.experiments import paper as published
from airloom.experiments.found import Bounded, Figures, Found, Labels, Largest, Point, Sample, point
from airloom.experiments.paper import Paper, Statement
from airloom.experiments.repetitions import LONGEST, Repetitions
from airloom.planning.capture import Capture
from airloom.planning.sweep import derived_seed
from airloom.report import figures
from airloom.report.figures import Figure
from airloom.results import Claim, Interval, Result, RunReader, RunWriter, claims
from airloom.results.writer import refuse_others
from airloom.runs.single import Interrupted
from airloom.scenario.model import Scenario
from airloom.units.figures import Quantity
from airloom.units.text import seconds as in_words

_CANNOT_RUN = "it cannot run"
TRIES = 3
"""Tries of a run that this machine makes ``invalid``, where a point is run several times."""
OVERHEAD = 3.0
"""Estimated overhead of a run in seconds (bring-up, reading, writing) until runs were timed."""

Value = Sample | Bounded | Largest | Quantity | float | None
"""A value of a claim; of a quantity or a number all is known, None was not measured."""


Outside = Callable[[Path, Scenario], tuple[Figures, bool]]
"""Measures a scenario into a folder by what is no run, such as another emulator: its figures, and if
they are valid."""


_stored: ContextVar[Found | None] = ContextVar("stored figures", default=None)


@contextmanager
def on(figures: Found) -> Iterator[None]:
    """Context manager: campaigns make no run, and have these figures."""
    before = _stored.set(figures)
    try:
        yield
    finally:
        _stored.reset(before)


@dataclass(frozen=True, slots=True)
class Case:
    """One run: its folder, its labels and its expected duration."""

    name: str
    labels: Labels
    scenario: Scenario
    seconds: float
    capture: bool | Capture = False
    outside: Outside | None = None
    """What measures it instead of a run of ``scenario``."""

    def repeated(self, repetition: int) -> Case:
        """Returns the case with seed and folder of this repetition, counted from 0."""
        seed = derived_seed(
            self.scenario.seed, {key: str(one) for key, one in self.labels.items()}, repetition
        )
        scenario = self.scenario.model_copy(update={"seed": seed})
        return replace(self, name=f"{self.name}-r{repetition:02}", scenario=scenario)


Read = Callable[[Case, RunReader], Figures]
"""Reads the figures of a finished run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A case that a campaign would run, and how its figures are read."""

    case: Case
    read: Read


_asked: ContextVar[list[Asked] | None] = ContextVar("cases that are asked for", default=None)


@contextmanager
def asking() -> Iterator[list[Asked]]:
    """Context manager: campaigns make no run; the list has what they would run."""
    asked: list[Asked] = []
    before = _asked.set(asked)
    try:
        with on(Found()):
            yield asked
    finally:
        _asked.reset(before)


@dataclass(slots=True)
class _Repeated:
    """A case, how its figures are read, and how often it was run."""

    case: Case
    read: Read
    rule: Repetitions
    optional: bool
    certain: int
    """How often it is run at least."""
    tries: int
    """Largest number of tries of a run that this machine makes ``invalid``."""
    runs: int = 0
    points: set[Point] = field(default_factory=set)
    """Points to which its runs gave figures: its own, and others of the same run."""
    stopped: str = ""
    """Why it is not repeated further; empty while it is."""


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
        self._stored = _stored.get()
        self.found = Found() if self._stored is None else self._stored
        self._progress = progress
        self._claims: list[Claim] = []
        self._repeated: list[_Repeated] = []
        self._spoken: set[str] = set()
        """Statements of the paper that a claim refers to."""
        self._figures: list[Figure] = []
        self._overheads: list[float] = []
        self._spent = 0.0
        """Estimated seconds of all runs so far, stored ones too, so that a resumed experiment ends alike."""
        self._failures: list[str] = []
        self._lacking: HostError | None = None
        """The first missing requirement of this machine."""
        self._measured: dict[str, Point] = {}
        self._asked: set[str] = set()
        """The campaign's runs; the folder may contain runs of other campaigns."""
        self._undecided: set[Point] = set()
        """Points of claims that are undecided."""
        self._flooded: set[Point] = set()
        """Points that flood a node on purpose."""
        self._kept: set[str] = set()
        self._notes: list[str] = []
        kinds = tuple(dict.fromkeys(kinds))
        refuse_others(folder, name)
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

    def measure(self, cases: Sequence[Case], read: Read, repetitions: Repetitions) -> Found:
        """Runs every case as often as ``repetitions`` says; all cases once before any is repeated."""
        self.announce(cases, repetitions)
        return self.repeat(cases, read, repetitions)

    def announce(self, cases: Sequence[Case], repetitions: Repetitions, *, search: bool = False) -> None:
        """Reports how long the cases take; a ``search`` runs some of them and a few between them."""
        if self._stored is not None:
            return
        least, most = self._estimate(cases, repetitions)
        longest = f" to {in_words(most * 1e9)}" if most > least else ""
        upper = ", less where it ends earlier" if search else ""
        self._progress(
            f"{len(cases)} points, {_times(repetitions)}: about {in_words(least * 1e9)}{longest}{upper}"
        )

    def repeat(
        self, cases: Sequence[Case], read: Read, repetitions: Repetitions, *, optional: bool = False
    ) -> Found:
        """Runs the cases as :meth:`measure` does, without the estimate.

        That an ``optional`` case cannot run is a finding and no failure of the experiment: it is noted,
        and not tried again.
        """
        if self._stored is not None:
            if (asked := _asked.get()) is not None:
                asked += [Asked(case, read) for case in cases]
            return self.found
        tries = TRIES if repetitions.most > 1 else 1
        points = [_Repeated(one, read, repetitions, optional, repetitions.least, tries) for one in cases]
        self._repeated += points
        while waiting := [one for one in points if not one.stopped]:
            if waiting[0].runs >= repetitions.least:
                waiting.sort(key=lambda one: -repetitions.relative_width(self.found, one.case.labels))
            self._round(waiting)
            for one in waiting:
                one.stopped = one.stopped or repetitions.stopped(self.found, one.case.labels, one.runs) or ""
        return self.found

    def judge(self, claims: Callable[[], object]) -> None:
        """States claims: ``claims`` calls :meth:`claim`, and is called twice if any is undecided.

        Between the two calls the points of undecided claims are run as often as their rule allows, which
        may be more than their headline needs. Claims are not judged after each of these runs: repeating
        a measurement until it decides a claim would decide too many claims by chance.
        """
        first = len(self._claims)
        self._undecided.clear()
        claims()
        further = [one for one in self._repeated if self._can_decide(one)]
        if not further:
            return
        self._progress(f"points of undecided claims, which are run further: {len(further)}")
        for one in further:
            one.certain, one.stopped = one.rule.most, ""
        while waiting := [one for one in further if not one.stopped]:
            self._round(waiting)
            for one in waiting:
                if one.runs == one.certain and not one.stopped:
                    one.stopped = f"an undecided claim: the limit of {one.certain} runs"
        del self._claims[first:]
        claims()

    def _can_decide(self, one: _Repeated) -> bool:
        """Whether an undecided claim is about this point, and it can be run further."""
        known = not one.points.isdisjoint(self._undecided)
        return known and one.runs < one.rule.most and one.stopped != _CANNOT_RUN

    def _round(self, waiting: Sequence[_Repeated]) -> None:
        """Runs each of these points once more, while the experiment has time for it."""
        for number, one in enumerate(waiting):
            if one.runs >= one.rule.least and self._spent + self._cost(one.case) > LONGEST:
                one.stopped = f"the limit of {in_words(LONGEST * 1e9)} of the experiment"
                continue
            self._spent += self._cost(one.case)
            left = self._left(waiting[:number], waiting[number:])
            case = one.case.repeated(one.runs)
            self._progress(f"{number + 1}/{len(waiting)} {case.name}, {_to_go(left, one)}")
            self.found.added.clear()
            if not self._try(one, case) and one.optional:
                one.stopped = _CANNOT_RUN
            one.points |= self.found.added
            one.runs += 1

    def _try(self, one: _Repeated, case: Case) -> bool:
        """Whether this repetition of a case ran and gave its figures.

        If it is ``invalid`` after all tries, it is the point that overloads the machine: its other runs
        have one try.
        """
        self._asked.add(case.name)
        try:
            if case.outside is not None:
                figures, valid = outside.measured(self._place(case), case.scenario, case.outside)
            else:
                reader = self.run(case, one.tries)
                figures, valid = one.read(case, reader), capacity_search.believable([reader])
                if not valid:
                    one.tries = 1
            self.found.add(case.labels, figures, valid=valid)
            self._measured[case.name] = point(case.labels)
        except Interrupted:
            raise
        except (RunError, HostError) as error:
            # The other runs remain useful; the figures of this one are missing from the claims.
            (self._notes if one.optional else self._failures).append(f"{case.name}: {error}")
            if one.optional:
                self._asked.discard(case.name)
            if isinstance(error, HostError):
                self._lacking = self._lacking or error
            return False
        return True

    def run(self, case: Case, tries: int = 1) -> RunReader:
        """Returns one run: the stored one if it has finished, otherwise a new one.

        A run that the machine makes ``invalid`` is made again, until ``tries`` were made.
        """
        reader = capacity_search.kept(self.folder, case.name, case.scenario)
        if reader is None:
            began = time.monotonic()
            reader = capacity_search.made(
                self.folder, case.name, case.scenario, capture=case.capture, tries=tries
            )
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
        floods: bool = False,
        **values: Value,
    ) -> Claim:
        """Evaluates a claim with its own values; ``says`` is the ID of the paper's statement.

        Values of several runs enter with their intervals. Runs with the verdict ``invalid`` do not
        enter, unless the claim ``floods``: it is about what a node does if it is offered more than it
        can handle. The experiment's verdict counts its runs as ``degraded`` at worst. Without a value
        the claim is undecided. If the claim fails and arithmetic excludes the published number, the
        outcome is "implausible in its source".
        """
        said = self.paper[says]
        self._spoken.add(says)
        known: dict[str, Quantity] = {}
        intervals: dict[str, Interval] = {}
        for name, value in values.items():
            if isinstance(value, Sample):
                known[name], intervals[name] = value.judged(floods=floods)
                if floods:
                    self._flooded.add(value.point)
            elif isinstance(value, Bounded | Largest):
                known[name], intervals[name] = value.judged()
            elif value is not None:
                known[name] = value if isinstance(value, Quantity) else Quantity(float(value))
        found = claims.evaluate(
            id,
            statement,
            check,
            claims.from_measurements((), known),
            source=said.source,
            published=f"{said.says} [{said.remark}]" if said.remark and not said.needs else said.says,
            shape=shape,
            implausible=said.implausible,
            intervals=intervals,
            unmeasured="undecided",
        )
        self._claims.append(found)
        if found.outcome == "undecided":
            self._undecided |= {value.point for value in values.values() if isinstance(value, Sample)}
        return found

    def floods(self, labels: Labels) -> None:
        """Says that the runs with these labels offer a node more than it can handle, on purpose.

        In the experiment's verdict they count as ``degraded`` at worst.
        """
        self._flooded.add(point(labels))

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

        Statements with a remark, and those that arithmetic excludes, are listed too if no claim is about
        them. Raises :class:`~airloom.errors.HostError` if nothing could be measured because this machine
        lacks a requirement.
        """
        if self._lacking is not None and not self.found.values:
            raise self._lacking
        self._claims += [_as_claim(one) for one in self.paper.remarked if one.id not in self._spoken]
        self._writer.measured(*self.found.measurements(self.name))
        figures.save(self.folder, self._figures)
        flooded = {name for name, at in self._measured.items() if at in self._flooded}
        if flooded:
            self.note(f"on purpose, {len(flooded)} runs offer a node more than it can handle")
        verdict, ledger = capacity_search.whole(self.folder, self._asked or None, flooded=flooded)
        for failure in reversed(self._failures):
            verdict = verdict.also("invalid", "experiment.failed-run", failure)
        if not self.found.values:
            verdict = verdict.also("invalid", "experiment.empty", "nothing was measured")
        verdict = verdict.model_copy(update={"notes": (*self._notes, *verdict.notes)})
        repeated = [one.rule.report(self.found, one.case.labels, one.stopped) for one in self._repeated]
        return self._writer.finish(verdict, ledger, claims=self._claims, repeated=repeated)

    def _is_done(self, case: Case) -> bool:
        if case.name not in self._kept:
            kept: object | None
            if case.outside is not None:
                kept = outside.kept(self._place(case), case.scenario)
            else:
                kept = capacity_search.kept(self.folder, case.name, case.scenario)
            if kept is not None:
                self._kept.add(case.name)
        return case.name in self._kept

    def _place(self, case: Case) -> Path:
        return self.folder / capacity_search.POINTS / case.name

    def _estimate(self, cases: Sequence[Case], repetitions: Repetitions) -> tuple[float, float]:
        """Seconds that the runs without a stored result take, with the fewest repetitions and the most."""
        rounds = [
            sum(self._seconds(case.repeated(number)) for case in cases) for number in range(repetitions.most)
        ]
        least = sum(rounds[: repetitions.least])
        return least, max(least, min(sum(rounds), LONGEST))

    def _left(self, done: Sequence[_Repeated], rest: Sequence[_Repeated]) -> float:
        """Seconds until the rest of a round, and the later runs that are certain, have ended."""
        later = [(one.case, range(one.runs, one.certain)) for one in done]
        later += [(one.case, range(one.runs, max(one.certain, one.runs + 1))) for one in rest]
        return sum(self._seconds(case.repeated(number)) for case, numbers in later for number in numbers)

    def _seconds(self, case: Case) -> float:
        return 0.0 if self._is_done(case) else self._cost(case)

    def _cost(self, case: Case) -> float:
        """Estimated seconds of a run."""
        overhead = sum(self._overheads) / len(self._overheads) if self._overheads else OVERHEAD
        return case.seconds + overhead


def _times(repetitions: Repetitions) -> str:
    if repetitions.least == repetitions.most:
        return "once each" if repetitions.most == 1 else f"{repetitions.most} runs each"
    return f"{repetitions.least} to {repetitions.most} runs each"


def _to_go(left: float, one: _Repeated) -> str:
    """The remaining time; which points are repeated further is known only after each round."""
    certain = "about" if one.certain == one.rule.most else "at least"
    return f"repetition {one.runs + 1}, {certain} {in_words(left * 1e9)} to go"


def _as_claim(said: Statement) -> Claim:
    return Claim(
        id=f"published-{said.id}",
        statement=said.says,
        source=said.source,
        published=said.says,
        outcome="implausible-in-source" if said.needs else "undecided",
        why=said.implausible or f"not tried; {said.remark}",
    )
