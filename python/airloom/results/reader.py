"""Reading a run's folder, or a sweep of them, finished or cut short."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from airloom.results import details, result, samples, sweep
from airloom.results.details import Details
from airloom.results.result import Result
from airloom.results.writer import CUT_SHORT, SWEEP

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class RunReader:
    """What one folder holds; a sweep's folder reads like one run whose samples name their point."""

    def __init__(self, folder: Path | str):
        """Reads ``result.json``; everything else when it is asked for."""
        self.folder = Path(folder)
        self.result: Result = result.read(self.folder / "result.json")

    def __repr__(self) -> str:
        return f"RunReader({str(self.folder)!r}: {self.result.scenario}, {self.result.verdict.status})"

    @property
    def name(self) -> str:
        """What to call this run in a table: its folder's name."""
        return self.folder.resolve().name

    @property
    def finished(self) -> bool:
        """Whether the folder was closed in good order, rather than left by a run that was killed.

        Of a sweep: whether every run is done.
        """
        if self.is_sweep:
            return all(point.state == "finished" for point in self.index.points)
        return not (self.folder / ".reserve").exists()

    @property
    def complete(self) -> bool:
        """Whether the run came to its end by itself: neither killed nor stopped, and without failing."""
        return self.finished and CUT_SHORT not in self.result.verdict.codes

    @property
    def is_sweep(self) -> bool:
        """Whether this folder holds many runs."""
        return (self.folder / SWEEP).exists()

    @cached_property
    def index(self) -> sweep.Index:
        """A sweep's index."""
        return sweep.read_index(self.folder)

    @cached_property
    def points(self) -> list[RunReader]:
        """The runs of a sweep that have been begun; none if this is a single run."""
        if not self.is_sweep:
            return []
        folders = [self.folder / point.folder for point in self.index.points]
        return [RunReader(folder) for folder in folders if (folder / "result.json").exists()]

    @cached_property
    def details(self) -> Details:
        """What the report shows beyond the verdict; a sweep has its first run's."""
        first = self.points[0].folder if self.points else self.folder
        return details.read(first / "details.json")

    @cached_property
    def scenario_text(self) -> str:
        """The scenario as it ran."""
        path = self.folder / "scenario.yaml"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The scenario as plain values."""
        raw = yaml.safe_load(self.scenario_text)
        return raw if isinstance(raw, dict) else {}

    def table(
        self, measurement: str | None = None, metric: str | None = None, node: str | None = None
    ) -> pa.Table:
        """Samples as an Arrow table; columns as in ``docs/results.md``."""
        import pyarrow

        if not self.is_sweep:
            return samples.read(self.folder, measurement, metric, node)
        tables = [point.table(measurement, metric, node) for point in self.points]
        if not tables:
            return samples.SCHEMA.empty_table()
        return pyarrow.concat_tables(tables, promote_options="permissive").unify_dictionaries()

    def samples(
        self, measurement: str | None = None, metric: str | None = None, node: str | None = None
    ) -> pd.DataFrame:
        """Samples as a pandas frame: ``run.samples("rtt")``."""
        frame: pd.DataFrame = self.table(measurement, metric, node).to_pandas()
        return frame

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """The figures of ``result.json``: one row each, labels as further columns."""
        import pandas as pd

        rows = [{**one.model_dump(exclude={"labels"}), **one.labels} for one in self.result.measurements]
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
