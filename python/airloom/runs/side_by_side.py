"""Runs of a sweep, several at once: each in a process of its own, here or on a machine of a fleet.

Runs in wall time share the processors, and one would disturb the other: a machine has one at a time. In
virtual time their results do not depend on the processors, so that as many run at once as there are
processors.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airloom.errors import LabError, RunError, ScenarioError
from airloom.fleet import Machine, MachineLost
from airloom.host.stopping import on_first_signal
from airloom.rpc import Worker
from airloom.runs.progress import Watcher
from airloom.runs.single import Interrupted

if TYPE_CHECKING:
    from airloom.measure.tool import Metric
    from airloom.planning.gate import Experiment


def jobs_of(wanted: int | None, experiment: Experiment) -> int:
    """Returns how many runs go on at once: one in wall time, one for each processor in virtual time.

    Raises :class:`ScenarioError` if several are ``wanted`` in wall time.
    """
    if experiment.scenario.time == "virtual":
        return wanted or len(os.sched_getaffinity(0))
    if wanted is not None and wanted > 1:
        raise ScenarioError(
            "run.jobs",
            f"{wanted} runs at once in wall time would disturb each other",
            where="--jobs",
            cure="add --time virtual, or leave out --jobs",
        )
    return 1


@dataclass(frozen=True, slots=True)
class Task:
    """One run: ``function(folder, *arguments, watcher)``, of a module."""

    name: str
    """For messages: the values of the sweep."""
    folder: Path
    made: str
    """What the function makes, a path below the folder."""
    function: Callable[..., None]
    arguments: tuple[Any, ...]


class Place(Protocol):
    """Where one run at a time is carried out."""

    machine: str
    """Name of the machine in its fleet; empty for this one."""

    def execute(self, task: Task, watcher: Watcher) -> None:
        """Executes a task; callable from any thread."""

    def signal(self, number: int) -> None:
        """Sends a signal to the task that is executed."""

    def close(self) -> None:
        """Ends what executes tasks here."""


class Here:
    """A process on this machine, bound to some of the processors."""

    machine = ""

    def __init__(self, processors: Sequence[int], *, namespaces: bool) -> None:
        self._processors = processors
        self._namespaces = namespaces
        self._worker: Worker | None = None

    def execute(self, task: Task, watcher: Watcher) -> None:
        """As :meth:`Place.execute`."""
        if self._worker is None or self._worker.is_gone:
            self.close()
            self._worker = Worker(namespaces=self._namespaces)
            self._worker.call(bind, self._processors)
        self._worker.call(task.function, task.folder, *task.arguments, watcher)

    def signal(self, number: int) -> None:
        """As :meth:`Place.signal`."""
        if self._worker is not None:
            self._worker.signal(number)

    def close(self) -> None:
        """As :meth:`Place.close`."""
        if self._worker is not None:
            with self._worker:
                self._worker = None


class There:
    """A process on a machine of a fleet, bound to some of its processors."""

    def __init__(self, machine: Machine, processors: tuple[int, ...]) -> None:
        self._machine = machine
        self.machine = machine.name
        self._processors = processors
        self._number = 0

    def execute(self, task: Task, watcher: Watcher) -> None:
        """As :meth:`Place.execute`."""
        self._number = self._machine.number()
        self._machine.run(
            self._number, task.folder, task.made, self._processors, task.function, task.arguments, watcher
        )

    def signal(self, number: int) -> None:
        """As :meth:`Place.signal`."""
        self._machine.signal(self._number, number)

    def close(self) -> None:
        """Has no effect: the process ends with the machine's agent."""


def places_here(jobs: int, *, virtual: bool) -> list[Place]:
    """Returns places for so many runs on this machine: a run in virtual time stays on one processor."""
    processors = sorted(os.sched_getaffinity(0))
    shares = [processors[number::jobs] or processors for number in range(jobs)]
    return [Here(share, namespaces=not virtual) for share in shares]


def places_there(machines: Sequence[Machine], *, virtual: bool) -> list[Place]:
    """Returns the places of a fleet: one for each processor in virtual time, else one for each machine.

    Their order is that in which they are filled: a place of each machine, then the second ones.
    """
    shares = [
        [(one,) for one in machine.processors] if virtual else [machine.processors] for machine in machines
    ]
    return [
        There(machine, share)
        for filled in itertools.zip_longest(*shares)
        for machine, share in zip(machines, filled, strict=True)
        if share is not None
    ]


@dataclass
class SideBySide:
    """Executes tasks, one at a time in each place, and tells their events to one watcher.

    A task whose machine is lost is executed in another place.
    """

    places: Sequence[Place]
    watcher: Watcher
    begins: Callable[[int], None]
    """Called with the number of a task when it begins."""
    ends: Callable[[int, str], None]
    """Called with the number of a task that has ended without an error, and the name of its machine."""
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _busy: dict[int, Place] = field(default_factory=dict)
    """Places that execute a task, by its number."""
    _stopped_by: str | None = None

    def execute(self, tasks: Sequence[Task]) -> list[tuple[int, LabError]]:
        """Returns the errors of failed tasks. Raises the first error of a kind that ends all runs."""
        failures: list[tuple[int, LabError]] = []
        idle = list(reversed(self.places))
        waiting = list(reversed(range(len(tasks))))
        fatal: BaseException | None = None
        with ThreadPoolExecutor(len(idle), "airloom-run") as pool, on_first_signal(self._stop):
            try:
                going: dict[Future[None], int] = {}
                while True:
                    while waiting and idle and fatal is None and self._stopped_by is None:
                        number = waiting.pop()
                        place = self._busy[number] = idle.pop()
                        self.begins(number)
                        going[pool.submit(self._one, place, tasks[number])] = number
                    if not going:
                        break
                    done, _ = wait(going, return_when=FIRST_COMPLETED)
                    for future in done:
                        number = going.pop(future)
                        place, error = self._busy.pop(number), future.exception()
                        if isinstance(error, MachineLost):
                            waiting.append(number)
                            if idle or going:
                                self._lost(error, tasks[number])
                            else:
                                fatal = fatal or error
                            continue
                        idle.append(place)
                        if error is None:
                            self.ends(number, place.machine)
                        elif isinstance(error, LabError) and not _ends_all(error):
                            failures.append((number, error))
                        else:
                            fatal = fatal or error
            finally:
                for place in self.places:
                    place.close()
        if self._stopped_by is not None:
            raise Interrupted(self._stopped_by, tasks[0].folder)
        if fatal is not None:
            raise fatal
        return sorted(failures, key=lambda failure: failure[0])

    def _lost(self, error: MachineLost, task: Task) -> None:
        with self._telling:
            self.watcher.problem(f"{error.where}: {error.message}; another machine runs {task.name}")

    def _one(self, place: Place, task: Task) -> None:
        watcher = _OfOne(self.watcher, task.name, self._telling)
        try:
            if self._stopped_by is not None:
                raise KeyboardInterrupt
            place.execute(task, watcher)
        except (KeyboardInterrupt, SystemExit):
            raise Interrupted(self._stopped_by or "SIGINT", task.folder) from None

    def _stop(self, number: int) -> None:
        """Stops all runs in an orderly way. They end with this process, whatever it comes to."""
        self._stopped_by = signal.Signals(number).name
        for place in list(self._busy.values()):
            place.signal(number)


def bind(processors: Sequence[int]) -> None:
    """Binds this process to processors."""
    os.sched_setaffinity(0, processors)


def _ends_all(error: LabError) -> bool:
    """Whether a run's error is one of the whole sweep, such as a full disk."""
    return (
        isinstance(error, Interrupted) or not isinstance(error, RunError) or error.code.startswith("results.")
    )


class _OfOne(Watcher):
    """Tells the results and problems of one of several runs, with its name."""

    def __init__(self, whole: Watcher, name: str, telling: threading.Lock) -> None:
        self._whole = whole
        self._name = name
        self._telling = telling

    def measured(self, name: str, metrics: Sequence[Metric]) -> None:
        """A measurement has ended successfully."""
        with self._telling:
            self._whole.measured(f"{name} ({self._name})", metrics)

    def failed(self, name: str, message: str) -> None:
        """A measurement has failed."""
        with self._telling:
            self._whole.failed(f"{name} ({self._name})", message)

    def problem(self, text: str) -> None:
        """A problem that should be shown to the user at once."""
        with self._telling:
            self._whole.problem(f"{self._name}: {text}")
