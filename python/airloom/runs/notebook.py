"""Progress of a run in a Jupyter notebook."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from airloom.runs.progress import Watcher
from airloom.units.text import seconds

if TYPE_CHECKING:
    from airloom.measure.tool import Metric

PERIOD = 0.5
"""Seconds between two drawings."""


def watcher() -> Watcher:
    """Returns a watcher that shows progress in a notebook, and a silent one elsewhere."""
    return NotebookProgress() if is_here() else Watcher()


def is_here() -> bool:
    """True in a notebook. Terminals of IPython have no display that can be replaced."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    return hasattr(shell, "kernel")


class NotebookProgress(Watcher):
    """Shows a bar for the running measurement, which disappears at the end of the run."""

    def __init__(self) -> None:
        # IPython is no dependency: it is there where this class is used.
        self._screen: Any = importlib.import_module("IPython.display")
        self._handle: Any = None
        self._lock = threading.Lock()
        self._text = ""
        self._whole = ""
        self._began = time.monotonic()
        self._expected = 0.0
        self._drawn = 0.0

    def phase(self, text: str) -> None:
        """Shows the phase without a bar."""
        self._now(text, 0)

    def point(self, number: int, total: int, text: str) -> None:
        """Shows which run of how many it is."""
        self._whole = f"run {number} of {total}: "
        self._now(text, 0)

    def measuring(self, name: str, expected: int) -> None:
        """Starts a bar that advances by the clock."""
        self._now(f"{name}, about {seconds(expected)}", expected / 1e9)
        threading.Thread(target=self._move, args=(self._began,), daemon=True).start()

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """Ends the bar."""
        self._now(f"{name} done", 0)

    def failed(self, name: str, message: str) -> None:
        """Shows the error."""
        self._now(f"{name} failed: {message}", 0)

    def happened(self, at: int, text: str) -> None:
        """Shows an event if no measurement runs."""
        if not self._expected:
            self._now(text, 0)

    def _now(self, text: str, expected: float) -> None:
        with self._lock:
            self._text, self._expected, self._began = text, expected, time.monotonic()
            self._draw()

    def _move(self, began: float) -> None:
        """Advances the bar until something else is shown."""
        while True:
            time.sleep(PERIOD)
            with self._lock:
                if self._began != began:
                    return
                self._draw()
                if time.monotonic() - began > self._expected:
                    return

    def _draw(self) -> None:
        """Replaces the display; the caller has the lock."""
        share = min(1.0, (time.monotonic() - self._began) / self._expected) if self._expected else None
        bar = f'<progress value="{share:.3f}" max="1"></progress> ' if share is not None else ""
        shown = self._screen.HTML(f"{bar}{escape(self._whole + self._text)}")
        if self._handle is None:
            self._handle = self._screen.display(shown, display_id=True)
        else:
            self._handle.update(shown)
