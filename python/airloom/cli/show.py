"""Result tables at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.cli.console import Console
    from airloom.results import Result


def show_result(console: Console, folder: Path) -> Result | None:
    """Prints a folder of results; returns its ``result.json`` if it is readable."""
    from rich.text import Text

    from airloom.errors import RunError
    from airloom.report.terminal import render
    from airloom.results import RunReader

    try:
        run = RunReader(folder)
    except RunError:
        return None
    console.print(render(run))
    console.print(Text.assemble("results in ", (str(folder), "bold")), soft_wrap=True)
    return run.result
