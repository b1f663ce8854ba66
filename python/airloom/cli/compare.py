"""``airloom compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="Folder of a run or a sweep.", exists=True, file_okay=False)]


def command(first: Folder, second: Folder) -> None:
    """Show how two runs differ, with confidence intervals.

    The two may differ in anything: seed, node kind, a setting. Example: airloom compare out/a out/b
    """
    from rich.console import Console

    from airloom.report import compare

    Console().print(compare(first, second))
