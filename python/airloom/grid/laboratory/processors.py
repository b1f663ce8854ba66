"""Equal shares of processor time for the runs in a shared laboratory, by control groups.

Each run is in a group of equal weight: when processors are short, every run gets the same, however
many programs it has; otherwise it may use all (Linux, ``Documentation/admin-guide/cgroup-v2.rst``,
"Weights"; ``Documentation/scheduler/sched-design-CFS.rst``, section 7, for version 1). Groups of the
run's nodes are made below it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Self

_ROOT = Path("/sys/fs/cgroup")
_RUN = "run"
"""Group of the run's own process; version 2 has processes only where no group is below."""

_WEIGHTS = {False: "cpu.shares", True: "cpu.weight"}
"""File of a group's weight in version 1, where 1024 is the weight of one program, and in version 2."""
_FIRST = "10000"
"""Weight of all runs together, against the programs outside of the laboratory: the largest of version 2."""


class Processors:
    """The groups of a laboratory; without the right to make them, runs are not held apart."""

    def __init__(self, root: Path = _ROOT) -> None:
        self._root = root
        self._own: Path | None = None

    def __enter__(self) -> Self:
        for base in (self._root, self._root / "cpu"):
            if not (base / "cgroup.procs").is_file():
                continue
            _sweep(base)
            own = base / f"airloom-grid-{os.getpid()}"
            try:
                if base == self._root:
                    (base / "cgroup.subtree_control").write_text("+cpu")
                own.mkdir()
                (own / _WEIGHTS[base == self._root]).write_text(_FIRST)
                if base == self._root:
                    (own / "cgroup.subtree_control").write_text("+cpu")
            except OSError:
                with contextlib.suppress(OSError):
                    own.rmdir()
                continue
            self._own = own
            break
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            for group in [path for path in self._own.iterdir() if path.is_dir()]:
                self._remove(group)
            with contextlib.suppress(OSError):
                self._own.rmdir()

    def hold(self, number: int, pid: int) -> bool:
        """Puts a run's process, and what it starts from now on, into a group; False if impossible."""
        if self._own is None:
            return False
        group = self._own / str(number)
        try:
            group.mkdir()
            if self._own.parent == self._root:
                # The groups of the run's nodes are made beside its own process, and share its weight.
                (group / "cgroup.subtree_control").write_text("+cpu")
            (group / _RUN).mkdir()
            (group / _RUN / "cgroup.procs").write_text(str(pid))
        except OSError:
            self._remove(group)
            return False
        return True

    def release(self, number: int) -> None:
        """Removes the group of a run, whose process goes on outside of it."""
        if self._own is not None:
            self._remove(self._own / str(number))

    def _remove(self, group: Path) -> None:
        assert self._own is not None
        outside = self._own.parent / "cgroup.procs"
        for one in (group / _RUN, group):
            with contextlib.suppress(OSError):
                for pid in (one / "cgroup.procs").read_text().split():
                    with contextlib.suppress(OSError):
                        outside.write_text(pid)
            with contextlib.suppress(OSError):
                one.rmdir()


def _sweep(base: Path) -> None:
    """Removes the empty groups of laboratories that were killed."""
    for left in base.glob("airloom-grid-*"):
        if Path("/proc", left.name.rpartition("-")[2]).exists():
            continue
        with contextlib.suppress(FileNotFoundError):  # another laboratory removes them too
            for group in (*left.glob(f"*/{_RUN}"), *left.glob("*/"), left):
                with contextlib.suppress(OSError):
                    group.rmdir()
