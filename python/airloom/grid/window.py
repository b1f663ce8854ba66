"""Ends a run when the window of its reservation ends, or when the reservation does not stand any more."""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from airloom.errors import LabError, RunError
from airloom.rpc.references import stub
from airloom.runs.progress import Watcher

if TYPE_CHECKING:
    from airloom.runs.single import OneRun

ASK_S = 5.0
"""How often the manager is asked whether the reservation still stands."""
_WHO = "the end of the reservation"


class _Window:
    """The run that is under way, if any, and whether the window has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: OneRun | None = None
        self.ended = False

    def up(self, run: OneRun) -> None:
        """A run begins."""
        with self._lock:
            self._run = run
            ended = self.ended
        if ended:
            run.interrupt(_WHO)

    def down(self) -> None:
        """The run is over."""
        with self._lock:
            self._run = None

    def end(self) -> None:
        """The window ends."""
        with self._lock:
            self.ended = True
            run = self._run
        if run is not None:
            run.interrupt(_WHO)


@contextlib.contextmanager
def within_window(remaining_s: float, stands: Callable[[], bool], watcher: Watcher) -> Iterator[Watcher]:
    """Context manager: a watcher, whose runs end in order when the window ends, ``remaining_s`` seconds
    from now, or when the reservation does not stand any more.

    It passes on to ``watcher`` what it is told. Raises :class:`RunError` instead of the error of an
    interrupted run.
    """
    window, over, end = _Window(), threading.Event(), time.monotonic() + remaining_s

    def watch() -> None:
        while (left := end - time.monotonic()) > 0 and stands():
            if over.wait(min(ASK_S, left)):
                return
        if not over.is_set():
            window.end()

    def tell(name: str, told: tuple[Any, ...]) -> None:
        if name == "up":
            window.up(*told)
        elif name == "down":
            window.down()
        getattr(watcher, name)(*told)

    thread = threading.Thread(target=watch, name="window", daemon=True)
    thread.start()
    try:
        yield stub(Watcher, [name for name, _ in inspect.getmembers(Watcher, inspect.isfunction)], tell)
    except LabError as error:
        if not window.ended:
            raise
        raise RunError("grid.window", f"the reservation ended during the run: {error.message}") from error
    finally:
        over.set()
