"""The page as self-contained HTML, without external resources."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from airloom.report import facts, page, tables
from airloom.report.page import Progress
from airloom.report.tables import Cell, Table
from airloom.results import RunReader

_WIDE = 6.0
"""Width in inches from which a figure takes the full row."""
_FIRST = (9.0, 2.9)
"""Size of the figure below the verdict, in inches."""


def render(runs: Sequence[RunReader], progress: Progress) -> str:
    """Returns the HTML page about these runs."""
    import airloom

    parts = []
    together = _chapters([page.side_by_side(runs)], "all", progress) if len(runs) > 1 else []
    for number, run in enumerate(runs):
        before, after = number / len(runs), (number + 1) / len(runs)

        def nested(what: str, share: float, before: float = before, after: float = after) -> None:
            progress(what, before + share * (after - before))

        parts.append(_run(run, f"r{number}", nested))
    title = runs[0].result.scenario if len(runs) == 1 else f"{len(runs)} runs"
    return (
        str(
            _template().render(
                title=title,
                runs=parts,
                overview=_overview(runs),
                together=together,
                css=files("airloom.report").joinpath("page.css").read_text(encoding="utf-8").strip(),
                airloom=airloom.__version__,
                most_cells=tables.CELLS,
            )
        )
        + "\n"
    )


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("airloom.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html.j2")


def _chapters(chapters: Sequence[page.Chapter], prefix: str, progress: Progress) -> list[dict[str, Any]]:
    """Returns chapters with their figures drawn; ``prefix`` makes the figures' IDs unique."""
    from markupsafe import Markup

    total = sum(len(chapter.drawings) for chapter in chapters) or 1
    drawn = 0
    shown = []
    for chapter in chapters:
        figures = []
        for drawing in chapter.drawings:
            progress(f"drawing {drawing.title.lower()}", 0.25 + 0.75 * drawn / total)
            first = not chapter.title
            shaped = dataclasses.replace(drawing, size=_FIRST) if first else drawing
            figures.append(
                {
                    "title": drawing.title,
                    # Markup is safe: the drawing is our own, and its texts were escaped when set.
                    "svg": Markup(shaped.svg(f"{prefix}f{drawn}")),
                    # The letters of a wide drawing cannot be read on a telephone.
                    "narrow": Markup(drawing.svg(f"{prefix}n{drawn}")) if first else None,
                    "caption": drawing.caption,
                    "wide": shaped.size[0] >= _WIDE,
                }
            )
            drawn += 1
        shown.append(
            {
                "title": chapter.title,
                "text": chapter.text,
                "figures": figures,
                "tables": chapter.tables,
                "texts": chapter.texts,
            }
        )
    return shown


def _run(run: RunReader, prefix: str, progress: Progress) -> dict[str, Any]:
    shown = _chapters(page.chapters(run, progress), prefix, progress)
    first = shown.pop(0)["figures"] if shown and not shown[0]["title"] else []
    narrow = [{**one, "svg": one["narrow"]} for one in first]
    progress("writing", 1.0)
    description = run.scenario.get("description")
    verdict = run.result.verdict
    reasons, other_reasons = (_labelled(run, some) for some in tables.reasons(verdict))
    notes, other_notes = tables.notes(verdict)
    return {
        "folder": run.name,
        "scenario": run.result.scenario,
        "description": description if isinstance(description, str) else "",
        "verdict": verdict,
        "labels": tables.reason_labels(verdict),
        "reasons": reasons,
        "other_reasons": other_reasons,
        "notes": notes,
        "other_notes": other_notes,
        "lost": run.notes,
        "facts": facts.of_run(run)[1:],
        "tiles": [{"figure": figure, "label": label} for figure, label in page.headlines(run)],
        "first": first,
        "narrow": narrow,
        "chapters": shown,
    }


def _labelled(run: RunReader, reasons: list[str]) -> list[str]:
    """Returns reasons of the verdict with the labels of swept paths instead of the paths."""
    for path, label in tables.labels_of(run).items():
        reasons = [reason.replace(f"{path}=", f"{label}=") for reason in reasons]
    return reasons


def _overview(runs: Sequence[RunReader]) -> Table:
    rows: list[list[str | Cell]] = []
    for run in runs:
        verdict = run.result.verdict
        headline = ", ".join(f"{label} {figure}" for figure, label in page.headlines(run, 3))
        rows.append(
            [
                run.name,
                run.result.scenario,
                ", ".join(run.result.kinds),
                str(run.result.seed),
                Cell(verdict.status, tables.STATUS_TONES[verdict.status]),
                headline,
            ]
        )
    columns = ["folder", "scenario", "kinds", "seed", "verdict", "figures"]
    return tables.table("overview", "Overview", columns, rows, numeric=(3,))
