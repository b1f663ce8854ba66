"""``airloom compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="Folder of a run or a sweep.", exists=True, file_okay=False)]


def command(
    first: Folder,
    second: Folder,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write it as JSON; `-` prints only that."),
    ] = None,
) -> None:
    """Show how two runs differ, with confidence intervals.

    The two may differ in anything: seed, node kind, a setting. Example: airloom compare out/a out/b
    """
    from rich.console import Console

    from airloom.compare import compare

    found = compare(first, second)
    if json_file == Path("-"):
        typer.echo(found.to_json(), nl=False)
        return
    Console().print(found.render())
    if json_file is not None:
        json_file.write_text(found.to_json(), encoding="utf-8")
