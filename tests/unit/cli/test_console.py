"""What the command line prints: text is neither markup nor a terminal's control, and names stay whole."""

from __future__ import annotations

import io
import os
import subprocess
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table as RichTable
from rich.text import Text

from airloom.cli.console import Console, say
from airloom.cli.display import Clock, Display
from airloom.report.tables import table
from airloom.report.terminal import rich_table
from airloom.units.text import visible
from helpers import forked

HOSTILE = "see [/red] \x1b]0;owned\x07\x1b[2J\x9b2J \u202e \udcff"
SENT = ("\x1b", "\x07", "\x9b", "\u202e", "\udcff")


def printed(*parts: object, width: int = 100) -> str:
    sink = io.StringIO()
    console = Console(file=sink, width=width, force_terminal=False)
    for part in parts:
        console.print(part)
    return sink.getvalue()


@given(text=st.text())
def test_no_text_is_a_control_of_the_terminal(text):
    shown = visible(text)
    assert all(sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cs") for sign in shown)
    assert not any(sign in shown for sign in SENT)
    shown.encode()


def test_markup_and_controls_of_text_are_shown():
    drawn = RichTable("[bold]head", title=HOSTILE)
    drawn.add_row(HOSTILE)
    for shown in (printed(HOSTILE), printed(Text(HOSTILE)), printed(drawn)):
        assert "[/red]" in shown
        assert not any(sign in shown for sign in SENT)


def test_what_happens_in_a_run_is_shown_as_it_stands():
    sink = io.StringIO()
    display = Display(Console(file=sink, width=200))
    with display:
        display.phase(HOSTILE)
        display.point(1, 2, HOSTILE)
        display.measuring(HOSTILE, 1)
        display.failed(HOSTILE, HOSTILE)
        display.happened(0, HOSTILE)
        display.problem(HOSTILE)
    assert sink.getvalue().count("[/red]") >= 5
    assert not any(sign in sink.getvalue() for sign in SENT)


def test_a_moving_display_takes_any_name():
    sink = io.StringIO()
    display = Display(Console(file=sink, width=200, force_terminal=True))
    with display:
        display.phase("[/red]")
        display.measuring("[/red]", 1)
    assert "[/red]" in sink.getvalue()


def test_plain_lines_too():
    sink = io.StringIO()
    say(HOSTILE, file=sink)
    assert sink.getvalue().startswith("see [/red] ␛]0;owned␇␛[2J")


PATH = "links[bottleneck].queue.discipline"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("columns", [2, 4, 11])
def test_a_path_breaks_only_at_its_dots_in_a_table_of_any_width(width, columns):
    heads = [PATH, *(f"links[other-{number}].delay" for number in range(columns - 1))]
    made = table("runs", "Runs", heads, [[f"<{index}>" for index in range(columns)] for _ in range(3)])
    lines = printed(rich_table(made), width=width).splitlines()
    if width >= 60:
        for head in heads:
            first, *rest = head.split(".")
            parts = [first, *(f".{part}" for part in rest)]
            assert all(any(part in line for line in lines) for part in parts), head
        assert sum("<1>" in line for line in lines) == 3
    assert max(map(len, lines)) <= width


def airloom(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forked.run(words, folder, os.environ, timeout=60)


def test_check_shows_a_description_as_it_stands(tmp_path):
    (tmp_path / "x.yaml").write_text('name: x\ndescription: "see [/red] \\e]0;owned\\a"\nnodes: {a: {}}\n')
    done = airloom(tmp_path, "check", "x.yaml")
    assert done.returncode == 0, done.stderr
    assert "see [/red] ␛]0;owned" in done.stdout


def test_an_error_shows_what_it_quotes_as_it_stands(tmp_path):
    (tmp_path / "x.yaml").write_text('name: x\nnodes: {a: {files: {"\\e]0;owned\\a": x}}}\n')
    done = airloom(tmp_path, "check", "x.yaml")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


def test_the_clock_of_a_run_in_virtual_time_says_how_fast_it_passes() -> None:
    world = SimpleNamespace(running=False, now=lambda: at)
    at, wall = 5_000_000_000, 100.0
    clock = Clock(world, lambda: wall)  # type: ignore[arg-type]
    assert clock.passed() == 0, "it has not begun"
    world.running = True
    assert clock.passed() == 5
    at, wall = 45_000_000_000, 110.0
    assert clock.passed() == 40
    assert clock.text() == "45.000 s, 4.5 virtual seconds a second"
    world.running = False
    assert clock.passed() == 0
