"""Reading a run's folder, or a sweep of them, finished or cut short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.errors import RunError, ScenarioError
from airloom.results import details, fairness, result, samples, stored, sweep
from airloom.results.details import Details
from airloom.results.headline import headlines
from airloom.results.result import Measurement, Result
from airloom.results.sweep import Point
from airloom.results.writer import CUT_SHORT, SWEEP
from airloom.scenario.source import Source
from airloom.units import html
from airloom.units.figures import of_metric

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class RunReader:
    """The contents of a folder of results. In a sweep, samples contain their point.

    Missing or damaged parts are omitted; ``notes`` lists them.
    """

    def __init__(self, folder: Path | str):
        """Reads ``result.json``; everything else on first use."""
        self.folder = Path(folder)
        self._lost: dict[str, None] = {}
        """Notes in order, each once."""
        self.result: Result = self._read_result()

    def __repr__(self) -> str:
        return f"RunReader({str(self.folder)!r}: {self.result.scenario}, {self.result.verdict.status})"

    def _repr_html_(self) -> str:
        verdict = self.result.verdict
        shown = headlines(self.result.measurements)
        swept = list(dict.fromkeys(label for one in shown for label in one.labels))
        rows = [
            (
                one.name,
                *(one.labels.get(label, "") for label in swept),
                one.metric.replace("_", " "),
                of_metric(one.metric, one.mean, one.unit),
                of_metric(one.metric, one.ci95, one.unit) if one.ci95 is not None else "",
                one.n,
            )
            for one in shown
        ]
        columns = ["measurement", *swept, "metric", "mean", "± 95 %", "n"]
        right = range(len(columns) - 3, len(columns))
        return (
            html.paragraph(str(self.folder), strong=self.result.scenario)
            + html.paragraph(verdict.cause, strong=verdict.status)
            + html.listing([*verdict.reasons, *(f"note: {note}" for note in verdict.notes)])
            + html.table(columns, rows, numeric=right)
        )

    @property
    def name(self) -> str:
        """Name of the run in tables: the name of its folder."""
        return self.folder.resolve().name

    @property
    def finished(self) -> bool:
        """True if the run closed the folder; false if it was killed. Of a sweep: true if all runs are
        done.
        """
        if self.is_sweep:
            return all(point.state == "finished" for point in self.index.points)
        return not (self.folder / ".reserve").exists()

    @property
    def complete(self) -> bool:
        """True if the run was neither killed nor stopped and did not fail."""
        return self.finished and CUT_SHORT not in self.result.verdict.codes

    @property
    def is_sweep(self) -> bool:
        """True for the folder of a sweep."""
        return (self.folder / SWEEP).exists()

    @cached_property
    def index(self) -> sweep.Index:
        """Index of a sweep."""
        return sweep.read_index(self.folder)

    @property
    def notes(self) -> list[str]:
        """Missing or damaged parts of the folder, one sentence each."""
        _ = self.scenario, self.details
        runs = [(f"{point.folder}/", run) for point, run in self.begun] if self.is_sweep else [("", self)]
        lost = [f"{place}{note}" for place, run in runs for note in run._samples_lost()]
        return list(dict.fromkeys([*self._lost, *lost]))

    @cached_property
    def begun(self) -> list[tuple[Point, RunReader]]:
        """Points of a sweep with started, readable runs, and these runs."""
        found: list[tuple[Point, RunReader]] = []
        for point in self.index.points if self.is_sweep else ():
            try:
                found.append((point, RunReader(self.folder / point.folder)))
            except RunError as error:
                if point.state == "finished" or error.code != "results.missing":
                    self._note_lost(f"{point.folder} is left out: {error.message}")
        return found

    @property
    def points(self) -> list[RunReader]:
        """The started runs of a sweep; empty for a single run."""
        return [run for _, run in self.begun]

    @cached_property
    def details(self) -> Details:
        """Contents of ``details.json``; for a sweep those of its first run."""
        first = self.points[0].folder if self.points else self.folder
        try:
            return details.read(first / "details.json")
        except RunError as error:
            place = f"{first.relative_to(self.folder)}/" if self.points else ""
            self._note_lost(f"{place}{error.message}")
            return Details()

    @cached_property
    def scenario_text(self) -> str:
        """The scenario of the run, as text."""
        try:
            return stored.text(self.folder / "scenario.yaml")
        except FileNotFoundError:
            return ""
        except RunError as error:
            self._note_lost(error.message)
            return ""

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The scenario as dictionaries and lists."""
        if not self.scenario_text:
            return {}
        try:
            raw = Source.of_text(self.scenario_text, "scenario.yaml").data
        except ScenarioError as error:
            self._note_lost(f"scenario.yaml cannot be read: {error.message}")
            return {}
        return raw if isinstance(raw, dict) else {}

    @cached_property
    def names(self) -> list[str]:
        """Names of the measurements, in the order of the scenario; others follow as they ended."""
        written = self.scenario.get("measurements")
        given = [one.get("name") for one in written if isinstance(one, dict)] if written else []
        measured = dict.fromkeys(one.name for one in self.result.measurements)
        return [name for name in dict.fromkeys([*given, *measured]) if name in measured]

    @cached_property
    def figures(self) -> tuple[Measurement, ...]:
        """The figures of ``result.json`` in the order of the scenario, and the fairness of its flows.

        The fairness is Jain's index of flows that ran at the same time
        (:mod:`airloom.results.fairness`).
        """
        return (*self._measured, *self.fairness)

    @property
    def _measured(self) -> list[Measurement]:
        """The figures of ``result.json`` in the order of the scenario."""
        place = {name: number for number, name in enumerate(self.names)}
        return sorted(self.result.measurements, key=lambda one: place[one.name])

    @cached_property
    def fairness(self) -> tuple[Measurement, ...]:
        """Jain's fairness index of each group of flows that ran at the same time, over repetitions."""
        if not self.is_sweep:
            return tuple(fairness.of_flows(self._measured, lambda: self.table(metric=fairness.RATE)))
        done = [run for point, run in self.begun if point.state == "finished"]
        return sweep.over_repetitions([one for run in done for one in run.fairness])

    def table(
        self, measurement: str | None = None, metric: str | None = None, node: str | None = None
    ) -> pa.Table:
        """Samples as an Arrow table; columns as in ``docs/guide/results.md``."""
        import pyarrow

        if not self.is_sweep:
            return samples.read(self.folder, measurement, metric, node, lost=self._note_lost)
        tables = [run.table(measurement, metric, node) for run in self.points]
        return pyarrow.concat_tables([samples.AS_READ.empty_table(), *tables]).unify_dictionaries()

    def samples(
        self, measurement: str | None = None, metric: str | None = None, node: str | None = None
    ) -> pd.DataFrame:
        """Samples as a pandas frame: ``run.samples("rtt")``; each swept path is a column of its values."""
        frame: pd.DataFrame = self.table(measurement, metric, node).to_pandas()
        swept = self.index.sweep if self.is_sweep else {}
        values = {text: self._values(text, swept) for text in frame["point"].unique()} if swept else {}
        for path in swept:
            # As objects: a swept value may be a mapping, which cannot be a category.
            frame[path] = frame["point"].astype(object).map({text: one[path] for text, one in values.items()})
        return frame

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """All :attr:`figures`, one row each, with labels as columns."""
        import pandas as pd

        rows = [{**one.model_dump(exclude={"labels"}), **one.labels} for one in self.figures]
        columns = ["name", "metric", "unit", "mean", "ci95", "n"]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)

    def logs(self) -> dict[str, Path]:
        """Every program's and measuring tool's output: ``NODE/PROGRAM`` or ``MEASUREMENT/FILE``, path."""
        found = {}
        for run in self.points or [self]:
            prefix = f"{run.name}/" if self.points else ""
            for path in sorted((run.folder / "nodes").glob("*/*.log")):
                found[f"{prefix}{path.parent.name}/{path.stem}"] = path
            for path in sorted((run.folder / "measurements").glob("*/*.*")):
                found[f"{prefix}{path.parent.name}/{path.name}"] = path
        return found

    def _read_result(self) -> Result:
        """Rebuilds a sweep's missing result from its runs."""
        try:
            return result.read(self.folder / "result.json")
        except RunError as error:
            if not self.is_sweep or error.code not in (
                "results.missing",
                "results.unreadable",
                "results.malformed",
            ):
                raise
            self._note_lost(f"result.json is put together from the runs: {error.message}")
            return sweep.whole(self.index, {point.folder: run.result for point, run in self.begun})

    def _values(self, text: str, swept: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the swept values of a point of the samples."""
        try:
            found = json.loads(text)
            return {path: found[path] for path in swept}
        except (ValueError, KeyError, TypeError, RecursionError):
            where = str(self.folder / SWEEP)
            raise RunError(
                "results.malformed", f"the point {text[:80]!r} of a sample is none of the sweep", where=where
            ) from None

    def _note_lost(self, note: str) -> None:
        self._lost[note.splitlines()[0]] = None

    def _samples_lost(self) -> list[str]:
        lost = samples.lost_of(self.folder, finished=self.finished)
        return [*(note for note in self._lost if note not in lost), *lost]
