"""Writer of a run's folder, which stays correct and readable however the run ends."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from airloom.errors import LabError, RunError
from airloom.results import samples, stored
from airloom.results.details import Details
from airloom.results.folder import Lock, disk, exists, refuse_foreign
from airloom.results.result import Claim, Ledger, Measurement, Repeated, Result, Violation, read, utc_now
from airloom.verdict import Verdict

FLUSH_ROWS = 200_000
FLUSH_SECONDS = 5.0
SWEEP = "sweep.json"
"""The index of a sweep, which distinguishes a sweep's folder from a run's."""
RESERVE = ".reserve"
RESERVE_OCTETS = 256 * 1024
CUT_SHORT = "run.cut-short"
"""Verdict code of a run that was stopped or failed."""
UNFINISHED = "the run has not finished; what is here was measured until then"


class RunWriter:
    """Writes one run's folder; thread-safe.

    Figures and whole readings are written at once. Samples recorded one by one are written when
    200,000 rows wait or 5 s after the last flush, and at :meth:`flush`. A kill loses at most the
    waiting samples. A small reserve file is deleted before the final ``result.json``, so that a
    full disk cannot prevent the verdict.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        scenario: str,
        seed: int,
        kinds: Iterable[str],
        scenario_text: str = "",
        point: Mapping[str, Any] | None = None,
        repetition: int = 0,
        replace: bool = False,
    ):
        """Creates the folder and its first ``result.json``.

        ``point`` contains a sweep's values for this run; ``replace`` deletes an earlier run in the
        folder, which is otherwise an error.
        """
        self.folder = Path(folder)
        self._lock = threading.RLock()
        self._began = time.monotonic()
        self._flushed = self._began
        self._part = 0
        self._lost_rows = 0
        self._closed = False
        self._cut_short = False
        self._measurements: list[Measurement] = []
        self._measured: list[str] = []
        """JSON of each figure, encoded once: re-encoding thousands would disturb the run."""
        self._labels = {name: label_of(value) for name, value in (point or {}).items()}
        self._buffer = samples.Buffer(point_text(point or {}), repetition)
        self.in_force: dict[str, str] = {}
        """Settings in force by path, for the next ``result.json``."""
        self.violations: tuple[Violation, ...] = ()
        self.violations_unrecorded = 0
        """Violations of slices' grants, for the next ``result.json``."""
        self.virtual_seconds: float | None = None
        """Length of a run in virtual time so far, for the next ``result.json``; None in wall time."""
        self.ledger = Ledger()
        """The ledger so far; used for a run that is cut short."""
        self._head = Result(
            scenario=scenario,
            seed=seed,
            kinds=tuple(kinds),
            started=utc_now(),
            wall_seconds=0.0,
            verdict=Verdict(status="invalid", reasons=(UNFINISHED,), codes=("run.unfinished",)),
        )
        self._held = Lock(self.folder)
        with self._held.kept_if_done(), self._disk():
            if not replace:
                refuse_foreign(self.folder, scenario_text)
            self._prepare(replace)
            (self.folder / "scenario.yaml").write_text(scenario_text, encoding="utf-8")
            self._reserve()
            self._checkpoint()

    def record(
        self, measurement: str, metric: str, unit: str, t_ns: Any, values: Any, *, node: str = ""
    ) -> None:
        """Adds samples of one series: times in engine ns, and as many values.

        Raises ``results.disk-full`` if they cannot be stored.
        """
        with self._lock:
            self._buffer.add(measurement, metric, unit, node, t_ns, values)
            self._flush_if_due()

    def record_table(self, measurement: str, table: pa.Table) -> None:
        """Writes a tool's reading: columns ``metric``, ``unit``, ``t_ns``, ``value``, ``node``."""
        with self._lock:
            self._buffer.add_table(measurement, table)
            self.flush()

    def measured(self, *measurements: Measurement) -> None:
        """Adds figures to ``measurements`` and writes them; a sweep's values become labels."""
        with self._lock, self._disk():
            new = [one.model_copy(update={"labels": self._labels | one.labels}) for one in measurements]
            self._measurements += new
            self._measured += [one.to_json() for one in new]
            self._checkpoint()

    def describe(self, details: Details) -> None:
        """Writes ``details.json``; may be called repeatedly."""
        with self._lock, self._disk():
            write_atomically(self.folder / "details.json", details.to_json())

    def log_path(self, node: str, program: str) -> Path:
        """Returns the path of a program's output: ``nodes/NODE/PROGRAM.log``."""
        folder = self.folder / "nodes" / node
        with self._disk():
            folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{program}.log"

    def flush(self) -> None:
        """Writes the waiting samples as one part, and the current ``result.json``."""
        with self._lock:
            self._flushed = time.monotonic()
            if self._buffer.rows == 0:
                return
            rows = self._buffer.rows
            table = self._buffer.take()
            try:
                with self._disk():
                    samples.write_part(self.folder, self._part + 1, table)
            except RunError:
                self._lost_rows += rows
                raise
            self._part += 1
            with self._disk():
                self._checkpoint()

    def _flush_if_due(self) -> None:
        due = time.monotonic() - self._flushed >= FLUSH_SECONDS
        if self._buffer.rows >= FLUSH_ROWS or due:
            self.flush()

    def finish(
        self,
        verdict: Verdict,
        ledger: Ledger,
        *,
        claims: Sequence[Claim] = (),
        repeated: Sequence[Repeated] = (),
        details: Details | None = None,
    ) -> Result:
        """Ends the run: joins the samples and writes the final ``result.json``.

        Samples that could not be stored make the verdict ``invalid``, whatever ``verdict`` is. If
        there is no space to join the parts, they stay as they are; readers accept both.
        """
        with self._lock:
            for attempt in (self.flush, lambda: self.describe(details) if details else None):
                try:
                    attempt()
                except RunError as error:
                    if not self._lost_rows:
                        verdict = verdict.also("degraded", error.code, f"details.json is missing: {error}")
            if self._lost_rows:
                reason = f"the disk was full: {self._lost_rows} samples are missing"
                verdict = verdict.also("invalid", "results.disk-full", reason)
            result = self._with(
                verdict=verdict, ledger=ledger, claims=tuple(claims), repeated=tuple(repeated)
            )
            self._close(result)
            return result

    def abort(self, reason: str, *, details: Details | None = None) -> Result:
        """Ends a run that was cut short: ``invalid`` with the reason; all measurements are kept."""
        self._cut_short = True
        verdict = Verdict(status="invalid", reasons=(reason,), codes=(CUT_SHORT,))
        return self.finish(verdict, self.ledger, details=details)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._closed:
            return
        self.abort(self._reason(error))

    def _reason(self, error: BaseException | None) -> str:
        after = f"after {time.monotonic() - self._began:.1f} s; what was measured until then is kept"
        if error is None:
            return f"the run ended without a verdict {after}"
        if isinstance(error, KeyboardInterrupt):
            return f"interrupted {after}"
        said = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        return f"{said}, {after}"

    def _with(self, **changes: Any) -> Result:
        now = {
            "wall_seconds": round(time.monotonic() - self._began, 3),
            "time": "wall" if self.virtual_seconds is None else "virtual",
            "virtual_seconds": self.virtual_seconds,
            "measurements": tuple(self._measurements),
            "in_force": self.in_force,
            "violations": self.violations,
            "violations_unrecorded": self.violations_unrecorded,
        }
        return self._head.model_copy(update=now | changes)

    def _checkpoint(self) -> None:
        text = self._with(ledger=self.ledger).to_json(self._measured)
        write_atomically(self.folder / "result.json", text)

    def _prepare(self, replace: bool) -> None:
        if (self.folder / SWEEP).exists() and not replace:
            raise exists(self.folder, "a sweep")
        if (self.folder / "result.json").exists():
            if not replace:
                raise exists(self.folder, "a run's results")
            (self.folder / samples.FILE).unlink(missing_ok=True)
            for part in samples.parts_of(self.folder):
                part.unlink()
        (self.folder / samples.PARTS).mkdir(exist_ok=True)

    def _reserve(self) -> None:
        with (self.folder / RESERVE).open("wb") as reserve:
            os.posix_fallocate(reserve.fileno(), 0, RESERVE_OCTETS)

    def _close(self, result: Result) -> None:
        self._closed = True
        try:
            (self.folder / RESERVE).unlink(missing_ok=True)
            # The verdict first: joining needs disk space and must not delay the verdict.
            with self._disk():
                write_atomically(self.folder / "result.json", result.to_json(self._measured), lasting=True)
            with contextlib.suppress(OSError, pa.ArrowException):
                samples.join_parts(self.folder)
        finally:
            self._held.release()

    def _disk(self) -> contextlib.AbstractContextManager[None]:
        return disk(self.folder)


def refuse_others(folder: Path, name: str) -> None:
    """Raises ``results.exists`` if a folder holds other results than those of the experiment ``name``.

    Those are put together from runs, and have no scenario of their own.
    """
    if (folder / SWEEP).exists():
        raise exists(folder, "a sweep")
    if not (folder / "result.json").exists():
        refuse_foreign(folder, "")
        return
    try:
        own = read(folder / "result.json").scenario == name and not stored.text(folder / "scenario.yaml")
    except (FileNotFoundError, RunError):
        own = False
    if not own:
        raise exists(folder, f"other results than those of {name}")


def point_text(point: Mapping[str, Any]) -> str:
    """Returns a sweep point as in the samples: JSON with sorted keys, ``{}`` without a sweep."""
    return json.dumps(dict(point), sort_keys=True, ensure_ascii=False, default=str)


def label_of(value: Any) -> str:
    """Returns a swept value as in the labels of measurements."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def write_atomically(path: Path, text: str, *, lasting: bool = False) -> None:
    """Replaces a file atomically; ``lasting`` also waits until it is on disk.

    Only the last write waits: a sync during a run would disturb the measurement.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", encoding="utf-8") as sink:
            sink.write(text)
            if lasting:
                sink.flush()
                os.fsync(sink.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
