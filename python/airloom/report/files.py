"""Export of every figure and every table to a separate file, of one run or of several side by side."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from airloom.host import output
from airloom.report import flent, page, tables
from airloom.report.all_tables import all_tables
from airloom.report.page import Chapter, Progress
from airloom.results import RunReader

IMAGES = frozenset({"png", "svg"})
CURE = "name another folder, or remove the file"

_FORMS = {"png": output.PNG, "svg": output.SVG}


def write(run: RunReader, target: Path, forms: Sequence[str], progress: Progress) -> list[Path]:
    """Writes the files of a run and returns their paths."""
    target.mkdir(parents=True, exist_ok=True)
    written = (
        [_csv(one, target) for one in all_tables(run) if one.name != "headlines"] if "csv" in forms else []
    )
    if "flent" in forms:
        written += flent.write(run, target)
    if set(forms) & IMAGES:
        written += _images(page.chapters(run, progress), target, forms, progress)
    progress("done", 1.0)
    return written


def write_together(
    runs: Sequence[RunReader], target: Path, forms: Sequence[str], progress: Progress
) -> list[Path]:
    """Writes the figures and the table of several runs side by side and returns their paths.

    flent's format has no form for several runs.
    """
    target.mkdir(parents=True, exist_ok=True)
    chapter = page.side_by_side(runs)
    written = [_csv(one, target) for one in chapter.tables] if "csv" in forms else []
    return written + _images([chapter], target, forms, progress)


def _images(
    chapters: Sequence[Chapter], target: Path, forms: Sequence[str], progress: Progress
) -> list[Path]:
    drawings = [one for chapter in chapters for one in chapter.drawings]
    written = []
    for number, drawing in enumerate(drawings):
        progress(f"drawing {drawing.title.lower()}", 0.25 + 0.75 * number / len(drawings))
        for form in [form for form in forms if form in IMAGES]:
            output.refuse_others(drawing.path(target, form), _FORMS[form], CURE)
            written.append(drawing.save(target, form))
    return written


def _csv(one: tables.Table, target: Path) -> Path:
    path = target / f"{one.name}.csv"
    output.refuse_others(path, output.CSV, CURE)
    with path.open("w", newline="", encoding="utf-8") as sink:
        if one.raw:
            columns = list(dict.fromkeys(name for row in one.raw for name in row))
            writer = csv.DictWriter(sink, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(one.raw)
        else:
            plain = csv.writer(sink, lineterminator="\n")
            plain.writerow(one.columns)
            plain.writerows([cell.text for cell in row] for row in one.rows)
    return path
