"""A sweep: many runs of one scenario, one folder each, and an index that lets it be resumed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from airloom.errors import RunError, ScenarioError
from airloom.results import result as results
from airloom.results.result import (
    SCHEMA,
    Claim,
    LatenessMicros,
    Ledger,
    Measurement,
    Part,
    Result,
)
from airloom.results.writer import RunWriter, write_atomically
from airloom.stats import mean
from airloom.verdict import Verdict
from airloom.verdict import worst as worst_status

INDEX = "sweep.json"


class Point(Part):
    """One run of a sweep: a value for every swept path, and a repetition, counted from 0."""

    folder: str
    values: dict[str, Any]
    repetition: int
    state: Literal["waiting", "finished"] = "waiting"


class Index(Part):
    """The whole of ``sweep.json``."""

    version: int = SCHEMA
    scenario: str
    seed: int
    started: str
    sweep: dict[str, list[Any]]
    repetitions: int
    points: tuple[Point, ...]

    def to_json(self) -> str:
        """The text of ``sweep.json``."""
        raw = self.model_dump(mode="json")
        return json.dumps({"schema": raw.pop("version"), **raw}, indent=1, ensure_ascii=False) + "\n"


def read_index(folder: Path) -> Index:
    """Reads a folder's ``sweep.json``."""
    path = folder / INDEX
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Index.model_validate(raw | {"version": raw.get("schema", SCHEMA)})
    except (OSError, ValueError, ValidationError) as error:
        raise RunError(
            "results.unreadable", f"sweep.json cannot be read: {error}", where=str(path)
        ) from error


def points_of(sweep: Mapping[str, Sequence[Any]], repetitions: int) -> list[Point]:
    """Every combination of the swept values, each repeated; the last path varies fastest."""
    names = list(sweep)
    points = []
    for number, combination in enumerate(itertools.product(*sweep.values())):
        for repetition in range(repetitions):
            points.append(
                Point(
                    folder=f"points/p{number:04d}-r{repetition:02d}",
                    values=dict(zip(names, combination, strict=True)),
                    repetition=repetition,
                )
            )
    return points


class SweepWriter:
    """Writes a sweep's folder; on a folder that has one already it goes on where that ended."""

    def __init__(
        self,
        folder: Path | str,
        *,
        scenario: str,
        seed: int,
        sweep: Mapping[str, Sequence[Any]],
        repetitions: int = 1,
        scenario_text: str = "",
    ):
        """Makes the folder, or resumes it if it holds the same scenario, seed, sweep and repetitions."""
        self.folder = Path(folder)
        self._text = scenario_text
        self._results: dict[str, Result] = {}
        fresh = Index(
            scenario=scenario,
            seed=seed,
            started=results.utc_now(),
            sweep={name: list(values) for name, values in sweep.items()},
            repetitions=repetitions,
            points=tuple(points_of(sweep, repetitions)),
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / INDEX).exists():
            self.index = self._resumed(fresh)
        else:
            self.index = fresh
            (self.folder / "scenario.yaml").write_text(scenario_text, encoding="utf-8")
        self._write_index()
        self._write_result(self._state(()))

    def unfinished(self) -> list[Point]:
        """The points that are still to be run, in order."""
        return [point for point in self.index.points if point.state != "finished"]

    def run(
        self, point: Point, *, kinds: Iterable[str], seed: int, scenario_text: str | None = None
    ) -> SweepRun:
        """The writer for one point; closing it with a verdict marks the point as finished.

        ``seed`` is the one derived for this point and repetition.
        """
        return SweepRun(self, point, kinds=kinds, seed=seed, scenario_text=scenario_text or self._text)

    def finished(self, point: Point) -> None:
        """Marks a point as finished, so that resuming leaves it out."""
        points = tuple(
            one.model_copy(update={"state": "finished"}) if one.folder == point.folder else one
            for one in self.index.points
        )
        self.index = self.index.model_copy(update={"points": points})
        self._write_index()
        self._write_result(self._state(()))

    def finish(self, claims: Sequence[Claim] = ()) -> Result:
        """Writes the ``result.json`` of the whole: every point's measurements, the worst verdict."""
        result = self._state(tuple(claims))
        self._write_result(result)
        return result

    def _resumed(self, fresh: Index) -> Index:
        found = read_index(self.folder)
        for what in ("scenario", "seed", "sweep", "repetitions"):
            then, now = getattr(found, what), getattr(fresh, what)
            if json.dumps(then, default=str) != json.dumps(now, default=str):
                raise ScenarioError(
                    "results.other-sweep",
                    f"this folder holds a sweep with {what} {then!r}, not {now!r}",
                    where=str(self.folder / INDEX),
                    cure="name another folder with --out to begin anew",
                )
        return found

    def _write_index(self) -> None:
        write_atomically(self.folder / INDEX, self.index.to_json())

    def _write_result(self, result: Result) -> None:
        write_atomically(self.folder / "result.json", result.to_json())

    def _state(self, claims: tuple[Claim, ...]) -> Result:
        done = [point for point in self.index.points if point.state == "finished"]
        for point in done:
            if point.folder not in self._results:
                path = self.folder / point.folder / "result.json"
                self._results[point.folder] = results.read(path)
        found = [(point, self._results[point.folder]) for point in done]
        verdict = worst([(name_of(point), one.verdict) for point, one in found])
        missing = len(self.index.points) - len(done)
        if missing:
            reason = f"unfinished: {missing} of {len(self.index.points)} runs are still to be done"
            verdict = verdict.also("invalid", "sweep.unfinished", reason)
        return Result(
            scenario=self.index.scenario,
            seed=self.index.seed,
            kinds=tuple(dict.fromkeys(kind for _, one in found for kind in one.kinds)),
            started=self.index.started,
            wall_seconds=round(sum(one.wall_seconds for _, one in found), 3),
            verdict=verdict,
            ledger=total([one.ledger for _, one in found]),
            measurements=over_repetitions([m for _, one in found for m in one.measurements]),
            claims=claims,
        )


class SweepRun(RunWriter):
    """The writer of one point of a sweep."""

    def __init__(
        self, sweep: SweepWriter, point: Point, *, kinds: Iterable[str], seed: int, scenario_text: str
    ):
        super().__init__(
            sweep.folder / point.folder,
            scenario=sweep.index.scenario,
            seed=seed,
            kinds=kinds,
            scenario_text=scenario_text,
            point=point.values,
            repetition=point.repetition,
            replace=True,
        )
        self._sweep = sweep
        self._point = point

    def _close(self, result: Result) -> None:
        super()._close(result)
        if not self._cut_short:
            self._sweep.finished(self._point)


def name_of(point: Point) -> str:
    """A point in words: ``nodes=3 #2``, the repetition counted from 1."""
    values = ", ".join(f"{path}={value}" for path, value in point.values.items())
    return f"{values} #{point.repetition + 1}".strip()


def worst(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """The worst of several verdicts, with every reason and which run gave it."""
    return Verdict(
        status=worst_status(one.status for _, one in verdicts),
        reasons=tuple(f"{name}: {reason}" for name, one in verdicts for reason in one.reasons),
        codes=tuple(code for _, one in verdicts for code in one.codes),
        notes=tuple(dict.fromkeys(note for _, one in verdicts for note in one.notes)),
    )


def over_repetitions(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Joins the repetitions of each figure: the mean of their means, with its confidence interval.

    Repetitions are independent runs, so the interval is Student's t with n - 1 degrees of freedom
    over their means; what one run says of its own spread does not enter. A figure that was
    measured once stays as it is.
    """
    groups: dict[tuple[str, str, str, str], list[Measurement]] = {}
    for one in measurements:
        labels = json.dumps(one.labels, sort_keys=True)
        groups.setdefault((one.name, one.metric, one.unit, labels), []).append(one)
    return tuple(_joined(group) for group in groups.values())


def _joined(group: list[Measurement]) -> Measurement:
    means = [one.mean for one in group if one.mean is not None]
    if len(group) == 1 or not means:
        return group[0]
    over_runs = mean(means)
    ci95 = over_runs.half_width if over_runs.n > 1 else None
    return group[0].model_copy(update={"mean": over_runs.value, "ci95": ci95, "n": over_runs.n})


def total(ledgers: Sequence[Ledger]) -> Ledger:
    """The sum of ledgers; of lateness the largest of each, as quantiles cannot be added."""
    dropped: dict[str, int] = {}
    for ledger in ledgers:
        for reason, frames in ledger.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + frames
    return Ledger(
        delivered=sum(ledger.delivered for ledger in ledgers),
        dropped=dropped,
        host_lost=sum(ledger.host_lost for ledger in ledgers),
        lateness_us=LatenessMicros(
            p50=max((ledger.lateness_us.p50 for ledger in ledgers), default=0.0),
            p99=max((ledger.lateness_us.p99 for ledger in ledgers), default=0.0),
            p999=max((ledger.lateness_us.p999 for ledger in ledgers), default=0.0),
            max=max((ledger.lateness_us.max for ledger in ledgers), default=0.0),
        ),
    )
