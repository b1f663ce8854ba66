"""What the live page knows: the run that is up, what happened until now, and how it ended."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airloom.live.state import Answer, Reader, drawing
from airloom.results.headline import chosen
from airloom.runs.progress import Passing, Watcher

if TYPE_CHECKING:
    from airloom.measure.tool import Metric
    from airloom.planning.plan import Plan
    from airloom.results import Result
    from airloom.runs.single import OneRun

MOST_ENTRIES = 1000
"""Entries of the journal that are kept."""


class Page(Passing):
    """Listens to a run, or to all runs of a sweep, and passes everything on to another listener."""

    def __init__(self, then: Watcher | None = None) -> None:
        super().__init__(then)
        self._lock = threading.Lock()
        self._run: OneRun | None = None
        self._reader: Reader | None = None
        self._plan: Plan | None = None
        self._entries: deque[Answer] = deque(maxlen=MOST_ENTRIES)
        self._number = 0
        self._generation = 0
        self._drawing: Answer = {}
        self._ended: Answer | None = None
        self._last: Answer | None = None

    # Questions of the server

    @property
    def run(self) -> OneRun | None:
        """The run that is up."""
        return self._run

    @property
    def generation(self) -> int:
        """A number that is another one when the drawing has changed."""
        return self._generation

    @property
    def drawing(self) -> Answer:
        """The constant part of the run that is up or was up last; empty before the first."""
        return {**self._drawing, "generation": self._generation} if self._drawing else {}

    @property
    def ended(self) -> Answer | None:
        """How it ended, once it has."""
        return self._ended

    def entries(self, after: int) -> list[Answer]:
        """The entries of the journal after the one with that number."""
        with self._lock:
            return [one for one in self._entries if one["number"] > after]

    def state(self) -> Answer | None:
        """The state of the run that is up; None if none is."""
        with self._lock:
            run = self._run
            if run is None or self._reader is None:
                return None
            if run.world.plan is not self._plan:
                self._draw(run)
            return self._reader.read()

    def verdict(self) -> Answer | None:
        """The verdict on the run that is up, so far."""
        with self._lock:
            return None if self._reader is None else self._reader.verdict()

    def end(self, failure: str | None = None) -> None:
        """No further run follows."""
        with self._lock:
            said = failure and {"status": "failed", "reasons": [failure], "claims": []}
            self._ended = said or self._last or {"status": "ended", "reasons": [], "claims": []}

    # Listener

    def phase(self, text: str) -> None:
        """Keeps the phase."""
        self._add("phase", text)
        super().phase(text)

    def point(self, number: int, total: int, text: str) -> None:
        """Keeps the start of a run of a sweep."""
        self._add("point", f"run {number} of {total}: {text}")
        super().point(number, total, text)

    def up(self, run: OneRun) -> None:
        """Shows the run."""
        with self._lock:
            self._run, self._reader = run, Reader(run)
            self._draw(run)
        super().up(run)

    def down(self) -> None:
        """Shows no run. Waits until nobody reads its state."""
        with self._lock:
            self._run = self._reader = None
        super().down()

    def finished(self, result: Result) -> None:
        """Keeps verdict and claims."""
        verdict = result.verdict
        self._last = {
            "status": verdict.status,
            "reasons": list(verdict.reasons),
            "claims": [
                {"id": one.id, "statement": one.statement, "outcome": one.outcome} for one in result.claims
            ],
        }
        self._add("verdict", f"verdict: {verdict.status}")
        super().finished(result)

    def measuring(self, name: str, expected: int) -> None:
        """Keeps the start of a measurement."""
        self._add("measuring", name, name=name, expected=expected)
        super().measuring(name, expected)

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """Keeps the figures of a measurement."""
        found = {one.name: one for one in metrics}
        first = [found[name] for name in chosen(found)] or list(metrics[:4])
        further = [one for one in metrics if one not in first]
        self._add("measured", name, name=name, figures=_figures(first), further=_figures(further))
        super().measured(name, metrics)

    def failed(self, name: str, message: str) -> None:
        """Keeps the failure of a measurement."""
        self._add("failed", message, name=name)
        super().failed(name, message)

    def happened(self, at: int, text: str) -> None:
        """Keeps an event."""
        self._add("event", text, at=at)
        super().happened(at, text)

    def problem(self, text: str) -> None:
        """Keeps a problem."""
        self._add("problem", text)
        super().problem(text)

    def _add(self, kind: str, text: str, **more: Any) -> None:
        with self._lock:
            run = self._run
            at = run.world.now() if run is not None and run.world.running else None
            self._number += 1
            entry = {"number": self._number, "kind": kind, "text": text, "at": at, "clock": time.time()}
            self._entries.append(entry | more)

    def _draw(self, run: OneRun) -> None:
        self._plan = run.world.plan
        self._drawing = drawing(self._plan, run.runner.measurings)
        self._generation += 1


def _figures(metrics: Sequence[Metric]) -> list[list[str]]:
    return [[one.name.replace("_", " "), one.text] for one in metrics]
