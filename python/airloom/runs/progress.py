"""Progress events of a run, for the command line or another listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airloom.rpc import Listener

if TYPE_CHECKING:
    from airloom.measure.tool import Metric
    from airloom.results import Result
    from airloom.runs.single import OneRun


class Watcher(Listener):
    """Receives all events and ignores them; subclasses override the methods they need.

    Calls come from the thread that runs the scenario unless noted, and must return quickly.
    """

    def phase(self, text: str) -> None:
        """Current activity before and after the run itself, such as bringing up nodes."""

    def point(self, number: int, total: int, text: str) -> None:
        """A run of a sweep or a set of repetitions begins; ``number`` counts from 1."""

    def up(self, run: OneRun) -> None:
        """The nodes of a run are up; it can be asked for its state until :meth:`down`."""

    def down(self) -> None:
        """The nodes of the run are about to be removed."""

    def finished(self, result: Result) -> None:
        """The run has its result."""

    def measuring(self, name: str, expected: int) -> None:
        """A measurement begins; ``expected`` is its expected duration in nanoseconds."""

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """A measurement has ended successfully."""

    def failed(self, name: str, message: str) -> None:
        """A measurement has failed."""

    def happened(self, at: int, text: str) -> None:
        """An event, or a change of a program's state, at engine time ``at`` in nanoseconds."""

    def captured(self, octets: int, skipped: int) -> None:
        """Size of the captures so far, and frames that are missing in them; from another thread."""

    def problem(self, text: str) -> None:
        """A problem that should be shown to the user at once."""


class Passing(Watcher):
    """Passes all events on to another watcher. Subclasses do something with some of them before."""

    def __init__(self, then: Watcher | None = None) -> None:
        self._then = then or Watcher()

    def phase(self, text: str) -> None:
        """Passes it on."""
        self._then.phase(text)

    def point(self, number: int, total: int, text: str) -> None:
        """Passes it on."""
        self._then.point(number, total, text)

    def up(self, run: OneRun) -> None:
        """Passes it on."""
        self._then.up(run)

    def down(self) -> None:
        """Passes it on."""
        self._then.down()

    def finished(self, result: Result) -> None:
        """Passes it on."""
        self._then.finished(result)

    def measuring(self, name: str, expected: int) -> None:
        """Passes it on."""
        self._then.measuring(name, expected)

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """Passes it on."""
        self._then.measured(name, metrics)

    def failed(self, name: str, message: str) -> None:
        """Passes it on."""
        self._then.failed(name, message)

    def happened(self, at: int, text: str) -> None:
        """Passes it on."""
        self._then.happened(at, text)

    def captured(self, octets: int, skipped: int) -> None:
        """Passes it on."""
        self._then.captured(octets, skipped)

    def problem(self, text: str) -> None:
        """Passes it on."""
        self._then.problem(text)
