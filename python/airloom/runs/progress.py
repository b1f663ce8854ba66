"""What a run says of itself while it lasts, to whoever watches: the command line, or nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.measure.tool import Metric


class Watcher:
    """Hears everything and does nothing; those who show something override what they need.

    All calls come from the thread that runs the scenario, and must be quick.
    """

    def phase(self, text: str) -> None:
        """What is being done before and after the run itself, such as bringing up nodes."""

    def point(self, number: int, total: int, text: str) -> None:
        """In a sweep or with repetitions: which run begins, counted from 1."""

    def measuring(self, name: str, expected: int) -> None:
        """A measurement begins, and is expected to take so many nanoseconds."""

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """A measurement has come to its end."""

    def failed(self, name: str, message: str) -> None:
        """A measurement has failed."""

    def happened(self, at: int, text: str) -> None:
        """An event, or something that befell a program, at engine time in nanoseconds."""

    def problem(self, text: str) -> None:
        """Something that the experimenter should know now."""
