"""Sets and reads the processors and the scheduling of a node's processes.

They are set for the node's first process before it starts anything; programs, and the machine of a
guest with all its threads, inherit them (``sched(7)``, ``sched_setaffinity(2)``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import RunError
from airloom.host.descendants import processes_below, threads
from airloom.planning.machine.cpus import POLICIES
from airloom.planning.plan import CpusPlan

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
LEAST_NICE = 19
"""The nice value with the least weight."""
_ENGINE = "airloom-engine"
"""Name of the engine's thread (``ports/src/runtime/driver.rs``)."""
_WORDS = {number: word for word, number in POLICIES.items()}
_WEIGHTS = ((2, "cpu.weight"), (1, "cpu.shares"))
"""Files with the weight of a control group, by the version of its hierarchy."""


@dataclass(frozen=True, slots=True, order=True)
class Scheduling:
    """What the kernel says of one task."""

    processors: tuple[int, ...]
    policy: str
    priority: int
    nice: int

    @property
    def text(self) -> str:
        """In words, such as ``processor 1, policy other, nice 0``."""
        several = "s" if len(self.processors) > 1 else ""
        priority = f" {self.priority}" if self.priority else ""
        numbers = ", ".join(map(str, self.processors))
        return f"processor{several} {numbers}; policy {self.policy}{priority}; nice {self.nice}"


def apply(node: str, pid: int, wish: CpusPlan, *, weighed: bool) -> None:
    """Sets processors and scheduling of a process. ``weighed``: a control group holds its share."""
    nice = wish.nice if weighed or wish.share is None else wish.share_as_nice
    try:
        if wish.processors:
            os.sched_setaffinity(pid, wish.processors)
        if wish.policy != "other":
            os.sched_setscheduler(pid, POLICIES[wish.policy], os.sched_param(wish.priority))
        if nice:
            os.setpriority(os.PRIO_PROCESS, pid, nice)
    except OSError as error:
        raise RunError(
            "node.cpus",
            f"node {node}: its processors and scheduling cannot be set: {error.strerror}",
            cure="see `airloom doctor`, or take `cpus` out",
        ) from None


def of_tasks(tasks: Iterable[int]) -> list[Scheduling]:
    """Reads the scheduling of tasks from the kernel; each different one once, without ended tasks."""
    found = set()
    for task in tasks:
        with contextlib.suppress(OSError):
            found.add(
                Scheduling(
                    tuple(sorted(os.sched_getaffinity(task))),
                    _WORDS.get(os.sched_getscheduler(task) & ~os.SCHED_RESET_ON_FORK, "unknown"),
                    os.sched_getparam(task).sched_priority,
                    os.getpriority(os.PRIO_PROCESS, task),
                )
            )
    return sorted(found)


def tasks_below(pid: int) -> list[int]:
    """The threads of a process and of all processes below it, by the numbers of this namespace."""
    return [thread for process in processes_below(pid) for thread in threads(process)]


def weight_of(*groups: Path | None) -> str | None:
    """The weight of a node's control groups in words; None if they have none."""
    for group in groups:
        for version, name in _WEIGHTS if group is not None else ():
            with contextlib.suppress(OSError):
                assert group is not None
                value = (group / name).read_text().strip()
                return f"{name} {value} (control groups, version {version})"
    return None


def groups_sessions() -> bool:
    """Whether the kernel shares processors by session, so that nice values act only within one."""
    try:
        return AUTOGROUP.read_text().strip() == "1"
    except OSError:
        return False


@contextlib.contextmanager
def on_processors(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Binds the threads that this thread creates meanwhile, unless ``numbers`` is empty.

    The list then has the numbers of these threads.
    """
    created: list[int] = []
    own, before = os.sched_getaffinity(0), _own_tasks()
    if numbers:
        os.sched_setaffinity(0, numbers)
    try:
        yield created
    finally:
        if numbers:
            os.sched_setaffinity(0, own)
        created += _own_tasks() - before


def of_engine(tasks: Iterable[int]) -> list[Scheduling]:
    """Reads the scheduling of the engine's thread, one of these; a thread names itself."""
    return of_tasks(task for task in tasks if _name_of(task) == _ENGINE)


def _name_of(task: int) -> str:
    try:
        return Path(f"/proc/self/task/{task}/comm").read_text().strip()
    except OSError:
        return ""


def _own_tasks() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}
