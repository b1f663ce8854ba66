"""A run ends with the window of its reservation, and in order."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.errors import RunError
from airloom.grid import window
from airloom.grid.window import within_window
from airloom.runs.progress import Watcher

WAIT_S = 30


class Run:
    """What a watcher gets of a run."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.by = ""

    def interrupt(self, who: str) -> None:
        self.by = who
        self.stopped.set()


class Told(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def phase(self, text: str) -> None:
        self.events.append(text)

    def up(self, run: Any) -> None:
        self.events.append(run)

    def down(self) -> None:
        self.events.append("down")


@pytest.mark.parametrize("when", ["while it runs", "before it is up"])
def test_a_run_ends_when_the_reservation_does_not_stand(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setattr(window, "ASK_S", 0.01)
    run, stands = Run(), threading.Event()
    stands.set()
    before = set(threading.enumerate())
    with (  # noqa: PT012
        pytest.raises(RunError, match="the reservation ended") as found,
        within_window(60, stands.is_set, Watcher()) as watcher,
    ):
        (asking,) = set(threading.enumerate()) - before
        if when == "while it runs":
            watcher.up(run)  # type: ignore[arg-type]
            stands.clear()
        else:
            stands.clear()
            asking.join(WAIT_S)
            watcher.up(run)  # type: ignore[arg-type]
        assert run.stopped.wait(WAIT_S)
        raise RunError("run.stopped", f"stopped by {run.by}")
    assert (found.value.code, found.value.exit_code) == ("grid.window", 1)
    assert "stopped by the end of the reservation" in found.value.message


def test_the_end_of_the_window_ends_it() -> None:
    run = Run()
    with (  # noqa: PT012
        pytest.raises(RunError, match="the reservation ended"),
        within_window(0.01, lambda: True, Watcher()) as watcher,
    ):
        watcher.up(run)  # type: ignore[arg-type]
        assert run.stopped.wait(WAIT_S)
        raise RunError("run.stopped", "stopped")


def test_a_run_that_ends_by_itself_is_left_alone_and_its_watcher_is_told_everything() -> None:
    told, run = Told(), SimpleNamespace()
    with within_window(60, lambda: True, told) as watcher:
        watcher.phase("bringing up")
        watcher.up(run)  # type: ignore[arg-type]
        watcher.down()
    assert told.events == ["bringing up", run, "down"]


def test_errors_of_the_run_stay_what_they_are() -> None:
    with pytest.raises(RunError, match="out of memory"), within_window(60, lambda: True, Watcher()):
        raise RunError("run.failed", "out of memory")
