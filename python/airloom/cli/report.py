"""``airloom report``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from airloom.cli.console import Console
    from airloom.report import Progress

TIMEOUT = 2.0
"""Seconds after which a progress bar appears."""


def command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Runs or sweeps.", exists=True, file_okay=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The page; by default report.html in DIR."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="DIR", help="Also write every figure as PNG.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="DIR", help="Also write every figure as SVG.")
    ] = None,
    flent: Annotated[
        Path | None,
        typer.Option("--flent", metavar="DIR", help="Also write ready tests and pings for flent."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="DIR", help="Also write every table as CSV.")
    ] = None,
) -> None:
    """Write a self-contained HTML report with plots, and print its tables.

    Several folders make one page that shows them side by side. Their exported files are those of the
    comparison, and a folder for each. Example: airloom report out/a out/b
    """
    from airloom import report
    from airloom.cli.console import Console, say
    from airloom.results.writer import SWEEP

    console = Console()
    wanted = [
        (form, target)
        for form, target in (("png", png), ("svg", svg), ("csv", csv), ("flent", flent))
        if target
    ]
    files: list[Path] = []
    with _patiently(console) as show:
        page = report.write(folders, out, show)
        for form, target in wanted:
            if len(folders) > 1:
                files += report.export_together(folders, target, [form], show)
            else:
                files += report.export(folders[0], target, [form], show)
    for folder in folders:
        console.print(report.on_terminal(folder))
    if len(folders) > 1:
        console.print(report.together_on_terminal(folders))
    table = report.beside(page)
    written = [table] if len(folders) == 1 and (folders[0] / SWEEP).exists() else []
    for path in [*files[:20], *written, page]:
        say(path)
    if len(files) > 20:
        typer.echo(f"and {len(files) - 20} more files")


@contextmanager
def _patiently(console: Console) -> Iterator[Progress]:
    """Yields a progress callback; its bar appears after ``TIMEOUT`` seconds."""
    from rich.markup import escape
    from rich.progress import Progress as Bar

    began = time.monotonic()
    bar = Bar(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task("report", total=1.0)

    def show(what: str, share: float) -> None:
        bar.update(task, description=escape(what), completed=share)
        if time.monotonic() - began > TIMEOUT:
            bar.start()

    try:
        yield show
    finally:
        bar.stop()
