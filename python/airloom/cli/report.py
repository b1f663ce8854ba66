"""``airloom report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Runs or sweeps.", exists=True, file_okay=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The page; by default report.html in DIR."),
    ] = None,
    forms: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="png|svg|csv", help="Also write figures or tables. Repeatable."),
    ] = None,
) -> None:
    """Write a self-contained HTML report with plots, and print its tables.

    Several folders make one page that lays them side by side. Example: airloom report out/a out/b
    """
    from rich.console import Console
    from rich.progress import Progress

    from airloom import report

    console = Console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("report", total=1.0)

        def show(what: str, share: float) -> None:
            progress.update(task, description=what, completed=share)

        page = report.write(folders, out, show)
        files = [
            path
            for folder in folders
            for path in (report.export(folder, folder / "export", forms, show) if forms else [])
        ]
    for folder in folders:
        console.print(report.on_terminal(folder))
    for path in [*files[:20], page]:
        typer.echo(str(path))
    if len(files) > 20:
        typer.echo(f"and {len(files) - 20} more files")
