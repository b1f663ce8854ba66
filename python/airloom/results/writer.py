"""Writing a run's folder so that whatever ends the run, what was measured is kept and honest."""

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
from airloom.results import samples
from airloom.results.details import Details
from airloom.results.folder import Lock, disk, exists
from airloom.results.result import Claim, Ledger, Measurement, Result, utc_now
from airloom.verdict import Verdict

FLUSH_ROWS = 200_000
FLUSH_SECONDS = 5.0
SWEEP = "sweep.json"
"""The index of a sweep: it tells a folder of many runs from that of one."""
RESERVE = ".reserve"
RESERVE_OCTETS = 256 * 1024
CUT_SHORT = "run.cut-short"
"""Code of the verdict of a run that was stopped, or failed."""
UNFINISHED = "the run has not finished; what is here was measured until then"


class RunWriter:
    """Writes one run's folder; safe to use from several threads.

    Figures and whole readings reach the disk at once; samples recorded one by one when 200,000 rows
    wait or the last flush is 5 s ago, and at :meth:`flush`. A kill loses at most what waits. A small
    reserve file is given back to the disk before the final ``result.json``, so that a full disk cannot
    cost the verdict.
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
        """Makes the folder and its first ``result.json``.

        ``point`` are a sweep's values for this run; ``replace`` throws away an earlier run in the
        folder, which is otherwise refused.
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
        """The text of each, made once: a run may have thousands, and is not to be disturbed by them."""
        self._labels = {name: label_of(value) for name, value in (point or {}).items()}
        self._buffer = samples.Buffer(point_text(point or {}), repetition)
        self.ledger = Ledger()
        """The ledger as far as it is known; goes into a run that is cut short."""
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
            self._prepare(replace)
            (self.folder / "scenario.yaml").write_text(scenario_text, encoding="utf-8")
            self._reserve()
            self._checkpoint()

    def record(
        self, measurement: str, metric: str, unit: str, t_ns: Any, values: Any, *, node: str = ""
    ) -> None:
        """Adds samples of one series: times in engine nanoseconds, and values of one length.

        Raises ``results.disk-full`` when they cannot be kept.
        """
        with self._lock:
            self._buffer.add(measurement, metric, unit, node, t_ns, values)
            self._flush_if_due()

    def record_table(self, measurement: str, table: pa.Table) -> None:
        """Writes a tool's reading at once: columns ``metric``, ``unit``, ``t_ns``, ``value``, ``node``."""
        with self._lock:
            self._buffer.add_table(measurement, table)
            self.flush()

    def measured(self, *measurements: Measurement) -> None:
        """Adds figures to ``measurements``, and writes them; a sweep's values become labels."""
        with self._lock, self._disk():
            new = [one.model_copy(update={"labels": self._labels | one.labels}) for one in measurements]
            self._measurements += new
            self._measured += [one.to_json() for one in new]
            self._checkpoint()

    def describe(self, details: Details) -> None:
        """Writes ``details.json``; again and again as more is known."""
        with self._lock, self._disk():
            write_atomically(self.folder / "details.json", details.to_json())

    def log_path(self, node: str, program: str) -> Path:
        """Where a program's output goes: ``nodes/NODE/PROGRAM.log``."""
        folder = self.folder / "nodes" / node
        with self._disk():
            folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{program}.log"

    def flush(self) -> None:
        """Writes what waits, as one part, and a ``result.json`` of the state so far."""
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
        details: Details | None = None,
    ) -> Result:
        """Ends the run: joins the samples and writes the final ``result.json``.

        Samples that found no room make the verdict ``invalid``, whatever the caller says. The parts
        stay as they are if there is no room to join them; they are read just the same.
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
            result = self._with(verdict=verdict, ledger=ledger, claims=tuple(claims))
            self._close(result)
            return result

    def abort(self, reason: str, *, details: Details | None = None) -> Result:
        """Ends a run that was cut short: ``invalid``, with the reason, and everything measured kept."""
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
            "measurements": tuple(self._measurements),
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
            # The verdict first: joining needs room that the verdict must not wait for.
            with self._disk():
                write_atomically(self.folder / "result.json", result.to_json(self._measured), lasting=True)
            with contextlib.suppress(OSError, pa.ArrowException):
                samples.join_parts(self.folder)
        finally:
            self._held.release()

    def _disk(self) -> contextlib.AbstractContextManager[None]:
        return disk(self.folder)


def point_text(point: Mapping[str, Any]) -> str:
    """A sweep point as the samples have it: JSON with sorted keys, ``{}`` when there is no sweep."""
    return json.dumps(dict(point), sort_keys=True, ensure_ascii=False, default=str)


def label_of(value: Any) -> str:
    """A swept value as it stands in the labels of measurements."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def write_atomically(path: Path, text: str, *, lasting: bool = False) -> None:
    """Replaces a file as a whole; ``lasting`` also waits until the disk has it.

    Only the last write waits: a sync during a run would disturb what is being measured.
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
