"""Brings a finished run in virtual time back to an instant: by running its begin again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from airloom.errors import ScenarioError
from airloom.lab.lab import Lab
from airloom.lab.steering import TOUCHED, span_of
from airloom.planning.capture import Capture
from airloom.results import RunReader
from airloom.runs.progress import Watcher
from airloom.units.text import duration


class Replay(Lab):
    """A laboratory that begins as a finished run in virtual time, up to an instant.

    ``with Replay("out/ten", "2.5 s") as lab``: at the begin of the block the run's programs, events
    and measurements happen again up to that engine time, where time stands still. The watcher is told
    of logs that differ from those of the run.
    """

    def __init__(
        self,
        run: str | Path,
        until: str | int,
        *,
        out: str | Path | None = None,
        capture: bool | Capture = False,
        watcher: Watcher | None = None,
    ) -> None:
        """Checks the run; nothing is created before the ``with`` block is entered."""
        self._run = Path(run)
        begin = begin_of(self._run, until)
        super().__init__(begin.scenario, seed=begin.seed, out=out, capture=capture, watcher=watcher)
        self._again = begin.until

    def __enter__(self) -> Self:
        super().__enter__()
        for log in differing(self._run, self.folder):
            self._watcher.problem(f"{log} is not what it was in {self._run}")
        return self


@dataclass(frozen=True, slots=True)
class Begin:
    """What is run again."""

    scenario: Path
    seed: int
    until: int
    """Engine time in ns."""


def begin_of(run: Path, until: str | int) -> Begin:
    """Returns the begin of a run up to an engine time; raises an error if it cannot be run again."""
    read = RunReader(run)
    result = read.result
    if read.is_sweep:
        points = ", ".join(str(point.folder) for point in read.points[:3]) or "none has begun"
        raise _refused(f"{run} is a sweep of several runs", f"name one of them: {points}")
    if result.time != "virtual" or result.virtual_seconds is None:
        raise _refused(
            f"{run} is a run in wall time, which no other run repeats", "run it with --time virtual"
        )
    if any(note.startswith(TOUCHED) for note in result.verdict.notes):
        raise _refused(
            f"{run} was steered while it ran, so that its scenario alone does not repeat it",
            "repeat its script of calls",
        )
    at, end = span_of(until), round(result.virtual_seconds * 1e9)
    if not 0 <= at <= end:
        raise ScenarioError(
            "replay.until",
            f"{at / 1e9:g} s is not within the run, which took {duration(end)}",
            where="--until",
            cure=f"give a time up to {duration(end)}",
        )
    return Begin(run / "scenario.yaml", result.seed, at)


def differing(run: Path, again: Path) -> list[str]:
    """Names of logs of programs in the folder ``again`` that do not begin those of the run."""
    logs = sorted(path.relative_to(again) for path in (again / "nodes").rglob("*.log"))
    return [str(log) for log in logs if not _content(run / log).startswith(_content(again / log))]


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _refused(words: str, cure: str) -> ScenarioError:
    return ScenarioError("replay.run", words, cure=cure)
