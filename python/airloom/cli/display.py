"""Terminal display of a run: a bar for every measurement, a line for every event."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from airloom._engine import EngineError
from airloom.cli.console import Console
from airloom.results.headline import chosen
from airloom.runs.progress import Watcher
from airloom.units.figures import readable
from airloom.units.text import virtual_speed

if TYPE_CHECKING:
    from airloom.measure.tool import Metric
    from airloom.runs.emulation import World
    from airloom.runs.single import OneRun

_PERIOD = 0.2
"""Wall seconds between two steps of the bars."""


class Clock:
    """The clock of a run in virtual time, read now and then by another thread."""

    def __init__(self, world: World, wall: Callable[[], float] = time.monotonic) -> None:
        self._world = world
        self._wall = wall
        self._began: float | None = None
        self._at = 0.0
        self._speed = 0.0

    def passed(self) -> float:
        """The virtual seconds since the last call; none before time zero and after the end."""
        if not self._world.running:
            return 0.0
        before = self._at
        with contextlib.suppress(EngineError):  # it has just ended
            self._at = self._world.now() / 1e9
        self._began = self._wall() if self._began is None else self._began
        wall = self._wall() - self._began
        self._speed = self._at / wall if wall > 0 else 0.0
        return self._at - before

    def text(self) -> str:
        """The time, and how fast it has passed from the begin."""
        return virtual_speed(self._at * 1e9, self._speed)


class Display(Watcher):
    """Displays a run: with moving bars on a terminal, otherwise one line for each event."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self._quiet = quiet
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._phase: TaskID | None = None
        self._whole: TaskID | None = None
        self._capture: TaskID | None = None
        self._tasks: dict[str, TaskID] = {}
        self._virtual: Clock | None = None
        self._passing: TaskID | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._move, daemon=True)

    def __enter__(self) -> Self:
        self._progress.start()
        if not self._progress.disable:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._progress.stop()

    def _move(self) -> None:
        """Advances the bars by the run's clock, since the actual progress is unknown."""
        while not self._over.wait(_PERIOD):
            clock = self._virtual
            passed = _PERIOD if clock is None else clock.passed()
            if clock is not None and self._passing is not None:
                self._progress.update(self._passing, description=clock.text())
            for task in list(self._tasks.values()):
                self._progress.advance(task, passed)

    def up(self, run: OneRun) -> None:
        """Shows how fast virtual time passes."""
        if run.plan.virtual:
            self._virtual = Clock(run.world)
            self._passing = self._progress.add_task("virtual time", total=None)

    def down(self) -> None:
        """Ends that."""
        self._virtual = None
        if self._passing is not None:
            self._progress.remove_task(self._passing)
            self._passing = None

    def phase(self, text: str) -> None:
        """Replaces the current phase."""
        self._end_phase()
        self._phase = self._progress.add_task(text, total=None)

    def point(self, number: int, total: int, text: str) -> None:
        """Starts the next run of a sweep."""
        if self._whole is None:
            self._whole = self._progress.add_task("sweep", total=total)
        self._progress.update(self._whole, completed=number - 1, description=f"run {number} of {total}")
        self._say((f"run {number} of {total}", "bold"), f" {text}")

    def measuring(self, name: str, expected: int) -> None:
        """Starts a bar that advances by the clock."""
        self._end_phase()
        self._tasks[name] = self._progress.add_task(name, total=max(expected / 1e9, 0.1))

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """Replaces the bar by the results."""
        self._drop(name)
        found = {one.name: one for one in metrics}
        first = [found[name] for name in chosen(found)] or list(metrics[:4])
        shown = ", ".join(f"{one.name.replace('_', ' ')} {one.text}" for one in first)
        self._say(("done", "green"), "   ", (name, "bold"), f"  {shown}")

    def failed(self, name: str, message: str) -> None:
        """Replaces the bar by the error."""
        self._drop(name)
        self._say(("failed", "red"), " ", (name, "bold"), f"  {message}")

    def happened(self, at: int, text: str) -> None:
        """Prints an event with its time."""
        self._end_phase()
        self._say((f"{at / 1e9:6.1f} s", "dim"), f" {text}")

    def captured(self, octets: int, skipped: int) -> None:
        """Shows the size of the captures."""
        if self._capture is None:
            self._capture = self._progress.add_task("capture", total=None)
        missing = f", {skipped:,} frames missing" if skipped else ""
        size = readable(octets, "octets", 3)
        self._progress.update(self._capture, description=f"capture {size}{missing}")

    def problem(self, text: str) -> None:
        """Prints a highlighted problem."""
        self._say(("problem", "red"), f" {text}")

    def _drop(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            self._progress.remove_task(task)

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._progress.remove_task(self._phase)
            self._phase = None

    def _say(self, *parts: str | tuple[str, str]) -> None:
        if not self._quiet:
            self.console.print(Text.assemble(*parts))
