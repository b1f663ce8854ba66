"""What a watcher shows while a run lasts: the size of the captures, and the bar of a notebook."""

from __future__ import annotations

import io
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from airloom.cli.console import Console
from airloom.cli.display import Display
from airloom.errors import LabError
from airloom.runs import capture_watch, notebook
from airloom.runs.progress import Watcher


class Engine:
    """An engine that writes 1 kB between two looks at it, and ends after the third."""

    def __init__(self) -> None:
        self.looks = 0

    def lateness(self) -> dict[str, Any]:
        self.looks += 1
        if self.looks > 3:
            raise LabError("engine", "it has ended")
        return {"capture": {"written": self.looks, "skipped": self.looks // 3, "octets": 1000 * self.looks}}


class Told(Watcher):
    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []
        self.enough = threading.Event()

    def captured(self, octets: int, skipped: int) -> None:
        self.sizes.append((octets, skipped))
        if len(self.sizes) == 3:
            self.enough.set()


def test_the_size_of_the_captures_is_told_while_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_watch, "PERIOD", 0.001)
    told = Told()
    world: Any = SimpleNamespace(running=True, engine=Engine(), pacer=None)
    with capture_watch.CaptureWatch(world, told) as watch:
        assert told.enough.wait(20)
    assert told.sizes == [(1000, 0), (2000, 0), (3000, 1)]
    # The engine has ended: what it said last remains.
    assert (watch.counts.octets, watch.counts.frames, watch.skipped) == (3000, 3, 1)


def test_a_terminal_shows_the_last_size() -> None:
    sink = io.StringIO()
    with Display(Console(file=sink, width=200, force_terminal=True)) as display:
        display.captured(1_500_000, 0)
        display.captured(2_500_000, 7)
    assert "capture 2.5 MB, 7 frames missing" in sink.getvalue()


class Screen(ModuleType):
    """In place of IPython.display: keeps what was shown."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.shown: list[str] = []
        self.displays = 0

    def HTML(self, text: str) -> str:
        return text

    def display(self, shown: str, *, display_id: bool) -> Any:
        assert display_id
        self.displays += 1
        self.shown.append(shown)
        return SimpleNamespace(update=self.shown.append)


def test_a_notebook_has_one_bar_that_advances(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, python = Screen(), ModuleType("IPython")
    monkeypatch.setattr(python, "get_ipython", lambda: SimpleNamespace(kernel=object()), raising=False)
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    watcher = notebook.watcher()
    watcher.point(2, 3, "")
    watcher.measuring("<rtt>", 4_000_000_000)
    watcher._began -= 2.0  # type: ignore[attr-defined]
    watcher._draw()  # type: ignore[attr-defined]
    watcher.measured("<rtt>", [])
    assert screen.displays == 1
    first, half, last = screen.shown[-3:]
    assert 'value="0.0' in first
    assert 'value="0.5' in half
    assert "run 2 of 3: &lt;rtt&gt;, about 4 s" in half
    assert last == "run 2 of 3: &lt;rtt&gt; done"


def test_outside_of_a_notebook_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert type(notebook.watcher()) is Watcher
