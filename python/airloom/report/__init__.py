"""Reports: a self-contained HTML page, the same tables on the terminal, and exported files.

::

    page = report.write([Path("out/chain")])            # out/chain/report.html
    console.print(report.on_terminal(Path("out/chain")))     # for rich
    report.export(Path("out/chain"), Path("plots"), ["png", "svg", "csv"])
    report.export_together([Path("out/a"), Path("out/b")], Path("plots"), ["png"])

matplotlib and its dependencies are imported with the first figure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airloom import extras
from airloom.errors import ScenarioError, writing
from airloom.host import output
from airloom.results import RunReader
from airloom.results.writer import write_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType

Progress = Callable[[str, float], None]

FORMS = ("png", "svg", "csv", "flent")
_CURE = "name another file with --out"


def write(
    folders: Sequence[Path], target: Path | None = None, progress: Progress = lambda what, share: None
) -> Path:
    """Writes one page about one run or sweep, or several; returns its path.

    Without ``target``, the page is ``report.html`` in the folder of a single run, or in the working
    folder. Beside the page of one sweep is a CSV file with all its figures.
    ``progress`` is called with the current step and the completed share.
    """
    extras.require("report")
    from airloom.report import grid, pivot
    from airloom.report.html import render

    runs = [RunReader(folder) for folder in folders]
    path = target or (folders[0] if len(folders) == 1 else Path.cwd()) / "report.html"
    table = beside(path) if len(runs) == 1 and runs[0].is_sweep else None
    for one, form in ((path, output.REPORT), (table, output.CSV)):
        if one is not None:
            output.refuse_others(one, form, _CURE)
    temporary = path.with_name(path.name + ".tmp")
    with writing(path, "report.unwritable", "the report", _CURE):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Opened first: an error of the target must come before the drawing, not after it.
            with temporary.open("w", encoding="utf-8") as sink:
                sink.write(render(runs, progress))
            if table is not None:
                write_atomically(table, pivot.as_csv(grid.of_sweep(runs[0])))
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    return path


def beside(page: Path) -> Path:
    """Returns the path of the CSV file beside a page."""
    return page.with_suffix(".csv")


def on_terminal(folder: Path) -> RenderableType:
    """Returns verdict and tables of a run or sweep, for the terminal."""
    from airloom.report.terminal import render

    return render(RunReader(folder))


def together_on_terminal(folders: Sequence[Path]) -> RenderableType:
    """Returns the figures of several runs, a column for each, for the terminal."""
    from airloom.report import together
    from airloom.report.terminal import rich_table

    return rich_table(together.figures([RunReader(folder) for folder in folders]))


def export(
    folder: Path,
    target: Path,
    forms: Iterable[str],
    progress: Progress = lambda what, share: None,
) -> list[Path]:
    """Writes every figure (``png``, ``svg``), table (``csv``) and test (``flent``) to a separate file."""
    from airloom.report.files import write as write_files

    wanted = _known(forms)
    with _exporting(target):
        return write_files(RunReader(folder), target, wanted, progress)


def export_together(
    folders: Sequence[Path],
    target: Path,
    forms: Iterable[str],
    progress: Progress = lambda what, share: None,
) -> list[Path]:
    """Writes the figures and the table of several runs side by side, as the page shows them.

    Those of each run are in a folder below ``target``, which has the name of the run's folder, and
    a number behind it if several have that name.
    """
    from airloom.report.files import write as write_files
    from airloom.report.files import write_together

    wanted = _known(forms)
    runs = [RunReader(folder) for folder in folders]
    with _exporting(target):
        written = write_together(runs, target, wanted, progress)
        for number, run in enumerate(runs):
            before = sum(one.name == run.name for one in runs[:number])
            own = target / (f"{run.name}-{before + 1}" if before else run.name)
            written += write_files(run, own, wanted, progress)
    return written


def _known(forms: Iterable[str]) -> list[str]:
    wanted = list(forms)
    for form in wanted:
        if form not in FORMS:
            raise ScenarioError(
                "report.form", f"{form} is not a form of export", cure=f"there are {', '.join(FORMS)}"
            )
    return wanted


def _exporting(target: Path) -> contextlib.AbstractContextManager[None]:
    extras.require("report")
    return writing(target, "report.unwritable", "the report's files", "name another folder for them")
