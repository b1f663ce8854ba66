"""The tables at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.cli.console import Console
    from airloom.results import Result


def show_result(console: Console, folder: Path) -> Result | None:
    """Prints what a folder of results holds; its ``result.json``, if there is one."""
    if not (folder / "result.json").is_file():
        return None
    from rich.text import Text

    from airloom.report.terminal import render
    from airloom.results import RunReader

    run = RunReader(folder)
    console.print(render(run))
    console.print(Text.assemble("results in ", (str(folder), "bold")), soft_wrap=True)
    return run.result
