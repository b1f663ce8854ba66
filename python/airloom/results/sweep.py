"""A sweep: many runs of one scenario, one folder each, with an index for resuming."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from airloom.errors import RunError, ScenarioError
from airloom.results import result as results
from airloom.results import stored
from airloom.results.folder import Lock, disk, exists, refuse_foreign
from airloom.results.result import (
    SCHEMA,
    Claim,
    LatenessMicros,
    Ledger,
    Measurement,
    Part,
    Result,
)
from airloom.results.writer import SWEEP, RunWriter, write_atomically
from airloom.scenario import source
from airloom.stats import mean
from airloom.verdict import Verdict
from airloom.verdict import worst as worst_status

MOST_DIFFERENCES = 3
"""Number of differences between two sweeps that an error lists."""


class Point(Part):
    """One run of a sweep: a value for every swept path, and a repetition, counted from 0."""

    folder: Annotated[str, Field(pattern=r"^points/[A-Za-z0-9_-]{1,64}$")]
    values: dict[str, Any]
    repetition: int
    state: Literal["waiting", "finished"] = "waiting"
    machine: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The machine of a fleet that has made it; None for the one of the folder."""


class Index(Part):
    """Contents of ``sweep.json``."""

    version: int = SCHEMA
    scenario: str
    seed: int
    started: str
    sweep: dict[str, list[Any]]
    repetitions: int
    labels: dict[str, str] = Field(default_factory=dict)
    """Short names of swept paths, given by the scenario."""
    scenario_digest: str | None = None
    """SHA-256 of the scenario's text; None if an older release wrote the index."""
    inputs: dict[str, str] | None = None
    """Digests of all input files by path; None if an older release wrote the index."""
    points: tuple[Point, ...]

    @model_validator(mode="after")
    def _of_one_sweep(self) -> Self:
        """Checks that each point has one of the values of each swept path."""
        swept = {path: {_text(value) for value in values} for path, values in self.sweep.items()}
        for number, point in enumerate(self.points):
            strange = [
                path for path, value in point.values.items() if _text(value) not in swept.get(path, ())
            ]
            if strange or len(point.values) != len(swept):
                raise ValueError(f"point {number} has no value of the sweep for {(strange or [*swept])[0]}")
        return self

    def to_json(self) -> str:
        """Returns the text of ``sweep.json``."""
        raw = self.model_dump(mode="json")
        return json.dumps({"schema": raw.pop("version"), **raw}, indent=1, ensure_ascii=False) + "\n"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def read_index(folder: Path) -> Index:
    """Reads a folder's ``sweep.json``."""
    path = folder / SWEEP
    try:
        return stored.model(path, Index, version="version")
    except FileNotFoundError:
        raise stored.unreadable(path, "it is missing") from None


def points_of(sweep: Mapping[str, Sequence[Any]], repetitions: int) -> list[Point]:
    """Returns all combinations of swept values, repeated; the last path varies fastest."""
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
    """Writes a sweep's folder; resumes an existing sweep.

    It locks the folder until it is finished or closed; a ``with`` block closes it at the end.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        scenario: str,
        seed: int,
        sweep: Mapping[str, Sequence[Any]],
        repetitions: int = 1,
        labels: Mapping[str, str] | None = None,
        scenario_text: str = "",
        inputs: Mapping[str, str] | None = None,
        resume: bool = True,
    ):
        """Creates the folder, or resumes a sweep of the same scenario with the same inputs.

        ``labels`` are short names of swept paths.
        ``inputs`` are the digests of the scenario's input files, by path. With ``resume`` false, an
        existing sweep is refused.
        """
        self.folder = Path(folder)
        self.notes: list[str] = []
        """Notes for readers of the results on how this sweep was resumed."""
        self._text = scenario_text
        self._results: dict[str, Result] = {}
        fresh = Index(
            scenario=scenario,
            seed=seed,
            started=results.utc_now(),
            sweep={name: list(values) for name, values in sweep.items()},
            repetitions=repetitions,
            labels=dict(labels or {}),
            scenario_digest=_digest(scenario_text),
            inputs=dict(inputs or {}),
            points=tuple(points_of(sweep, repetitions)),
        )
        self._held = Lock(self.folder)
        with self._held.kept_if_done():
            if (self.folder / SWEEP).exists():
                if not resume:
                    cure = "go on with it by --resume, or name another folder with --out"
                    raise exists(self.folder, "a sweep", cure)
                self.index = self._resumed(fresh)
            elif (self.folder / "result.json").exists():
                raise exists(self.folder, "a single run's results")
            else:
                self.index = fresh
            refuse_foreign(self.folder, scenario_text)
            with disk(self.folder):
                (self.folder / "scenario.yaml").write_text(scenario_text, encoding="utf-8")
            self._write_index()
            self._write_result(self._state(()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the folder for other writers."""
        self._held.release()

    def unfinished(self) -> list[Point]:
        """Returns the points still to be run, in order."""
        return [point for point in self.index.points if point.state != "finished"]

    def run(
        self, point: Point, *, kinds: Iterable[str], seed: int, scenario_text: str | None = None
    ) -> SweepRun:
        """Returns the writer of one point; closing it with a verdict marks the point as finished.

        ``seed`` is the one derived for this point and repetition.
        """
        return SweepRun(self, point, kinds=kinds, seed=seed, scenario_text=scenario_text or self._text)

    def finished(self, point: Point, machine: str = "") -> None:
        """Marks a point as finished, so that resuming skips it. ``machine``: that of a fleet."""
        update = {"state": "finished", "machine": machine or None}
        points = tuple(
            one.model_copy(update=update) if one.folder == point.folder else one for one in self.index.points
        )
        self.index = self.index.model_copy(update={"points": points})
        self._results.pop(point.folder, None)
        self._write_index()
        self._write_result(self._state(()))

    def finish(self, claims: Sequence[Claim] = ()) -> Result:
        """Writes the sweep's ``result.json``: all points' measurements, the worst verdict."""
        result = self._state(tuple(claims))
        self._write_result(result)
        self.close()
        return result

    def _resumed(self, fresh: Index) -> Index:
        found = read_index(self.folder)
        differences = list(self._differences(found, fresh))
        if differences:
            more = len(differences) - MOST_DIFFERENCES
            told = "; ".join(differences[:MOST_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")
            raise ScenarioError(
                "results.other-sweep",
                f"this folder holds a sweep of something else: {told}",
                where=str(self.folder / SWEEP),
                cure="name another folder with --out to begin anew",
            )
        # A label may change between the parts of a sweep, and with it the scenario's text.
        update = {"labels": fresh.labels, "scenario_digest": fresh.scenario_digest}
        points = tuple(self._still_there(one) for one in found.points)
        return found.model_copy(update={**update, "points": points})

    def _differences(self, then: Index, now: Index) -> Iterator[str]:
        """Yields the differences between the coming runs and the existing ones."""
        for what in ("scenario", "seed", "sweep", "repetitions"):
            before, after = getattr(then, what), getattr(now, what)
            if json.dumps(before, default=str) != json.dumps(after, default=str):
                yield f"{what} is {_shown(before)} there, {_shown(after)} here"
        if then.scenario_digest != now.scenario_digest:
            yield from self._in_scenarios(then.scenario_digest)
        if then.inputs is not None:
            yield from _of_inputs(then.inputs, now.inputs or {})

    def _in_scenarios(self, digest: str | None) -> Iterator[str]:
        """Yields the differences between the scenario and the one that was run, by path."""
        path = self.folder / "scenario.yaml"
        try:
            before = stored.text(path)
            there, here = source.Source.of_text(before).data, source.Source.of_text(self._text).data
        except (OSError, RunError, ScenarioError):
            yield f"{path.name} in it cannot be read"
            return
        if digest not in (None, _digest(before)):
            yield f"{path.name} in it is no longer the one that was run"
        known = ("name", "seed", "sweep", "repetitions")
        for where, one, other in _changes(there, here):
            if where[:1] not in [(word,) for word in known]:
                yield f"{source.show(where)} is {_shown(one)} there, {_shown(other)} here"

    def _still_there(self, point: Point) -> Point:
        """Returns the point, as unfinished if its results are missing."""
        if point.state == "finished":
            try:
                self._results[point.folder] = results.read(self.folder / point.folder / "result.json")
            except RunError as error:
                self.notes.append(f"{point.folder} was finished and is made again: {error.message}")
                return point.model_copy(update={"state": "waiting"})
        return point

    def _write_index(self) -> None:
        with disk(self.folder):
            write_atomically(self.folder / SWEEP, self.index.to_json())

    def _write_result(self, result: Result) -> None:
        with disk(self.folder):
            write_atomically(self.folder / "result.json", result.to_json())

    def _state(self, claims: tuple[Claim, ...]) -> Result:
        for point in self.index.points:
            if point.state == "finished" and point.folder not in self._results:
                self._results[point.folder] = results.read(self.folder / point.folder / "result.json")
        return whole(self.index, self._results, claims, self.notes)


def whole(
    index: Index, found: Mapping[str, Result], claims: tuple[Claim, ...] = (), notes: Sequence[str] = ()
) -> Result:
    """Returns the ``result.json`` of a sweep from those of its finished runs, by folder."""
    done = [
        (point, found[point.folder])
        for point in index.points
        if point.state == "finished" and point.folder in found
    ]
    verdict = worst([(name_of(point), one.verdict) for point, one in done])
    missing = len(index.points) - len(done)
    if missing:
        reason = f"unfinished: {missing} of {len(index.points)} runs are still to be done"
        verdict = verdict.also("invalid", "sweep.unfinished", reason)
    return Result(
        scenario=index.scenario,
        seed=index.seed,
        kinds=tuple(dict.fromkeys(kind for _, one in done for kind in one.kinds)),
        started=index.started,
        wall_seconds=round(sum(one.wall_seconds for _, one in done), 3),
        verdict=verdict.model_copy(update={"notes": (*notes, *verdict.notes)}),
        ledger=total([one.ledger for _, one in done]),
        measurements=over_repetitions([m for _, one in done for m in one.measurements]),
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


def _changes(there: Any, here: Any, path: source.Path_ = ()) -> Iterator[tuple[source.Path_, Any, Any]]:
    """Yields path and both values wherever two pieces of plain data differ."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in dict.fromkeys([*there, *here]):
            yield from _changes(there.get(key), here.get(key), (*path, key))
        if there == here and list(there) != list(here):
            yield path, ", ".join(there), ", ".join(here)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for number, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from _changes(one, other, (*path, number))
    elif there != here:
        yield path, there, here


def _of_inputs(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for path in sorted({*then, *now}):
        if path not in now:
            yield f"{path} is no longer used"
        elif path not in then:
            yield f"{path} was not used"
        elif then[path] != now[path]:
            yield f"{path} has changed since"


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _shown(value: Any) -> str:
    """Returns a value on one line."""
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return repr(text if len(text) <= 60 else f"{text[:57]}...") if isinstance(value, str) else text[:60]


def name_of(point: Point) -> str:
    """Returns a point as text: ``nodes=3 #2``, the repetition counted from 1."""
    values = ", ".join(f"{path}={value}" for path, value in point.values.items())
    return f"{values} #{point.repetition + 1}".strip()


def worst(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """Returns the worst of several verdicts, with every reason and its run, the gravest first."""
    whole = Verdict.of(
        [
            replace(reason, sentence=f"{name}: {reason.sentence}")
            for name, one in verdicts
            for reason in one.causes
        ],
        dict.fromkeys(note for _, one in verdicts for note in one.notes),
        worst_status(one.status for _, one in verdicts),
    )
    named = Counter(one.resource for _, one in verdicts if one.resource)
    if not named:
        return whole
    resource, runs = named.most_common(1)[0]
    cause = next(one.cause for _, one in verdicts if one.resource == resource)
    told = f"{cause}, in {runs} of {len(verdicts)} runs" if len(verdicts) > 1 else cause
    return whole.model_copy(update={"resource": resource, "cause": told})


def over_repetitions(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Joins the repetitions of each figure: the mean of their means, with its confidence interval.

    Repetitions are independent runs, so the interval is Student's t with n - 1 degrees of freedom
    over their means; the spread within a run is not used. A figure that was measured once stays
    unchanged.
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
    """Returns the sum of ledgers; for lateness the maximum, as quantiles cannot be added."""
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
