"""Export of every figure and every table to a separate file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from airloom.report import flent, page, tables
from airloom.report.all_tables import all_tables
from airloom.report.page import Progress
from airloom.results import RunReader


def write(run: RunReader, target: Path, forms: Sequence[str], progress: Progress) -> list[Path]:
    """Writes the files and returns their paths."""
    target.mkdir(parents=True, exist_ok=True)
    written = (
        [_csv(one, target) for one in all_tables(run) if one.name != "headlines"] if "csv" in forms else []
    )
    if "flent" in forms:
        written += flent.write(run, target)
    images = [form for form in forms if form not in ("csv", "flent")]
    if images:
        drawings = [one for chapter in page.chapters(run, progress) for one in chapter.drawings]
        for number, drawing in enumerate(drawings):
            progress(f"drawing {drawing.title.lower()}", 0.25 + 0.75 * number / len(drawings))
            written += [drawing.save(target, form) for form in images]
    progress("done", 1.0)
    return written


def _csv(one: tables.Table, target: Path) -> Path:
    path = target / f"{one.name}.csv"
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
