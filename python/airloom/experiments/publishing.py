"""Publishes an experiment's results as a small folder: a page in Markdown, its figures, its figures' values.

The page states what a reader needs to judge the results: conclusion, verdict, extent, machine, versions, the
command that repeats them, every claim with its outcome and intervals.
"""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from airloom.compare.machines import Facts, origin, runs_of
from airloom.errors import RunError, ScenarioError
from airloom.experiments import capacity_search, conclusion, markdown, outside, published_index, record
from airloom.experiments.markdown import cell, prose
from airloom.experiments.published_index import GENERATED, OUTCOMES, PAGE, PARTIAL
from airloom.experiments.record import Record
from airloom.experiments.registry import Experiment
from airloom.host import engine_identity
from airloom.report import figures
from airloom.report.tables import with_others
from airloom.results import Claim, Result, RunReader
from airloom.results.folder import disk
from airloom.units.text import seconds as in_words
from airloom.verdict import Status, Verdict

VALUES = "measurements.csv"
LARGEST = 300_000
"""Most octets of a published file."""
_NOTES = 6
"""Notes of the verdict that the page shows, each with the number of those that are alike."""


def publish(experiment: Experiment, results: Path, target: Path, *, anyway: bool = False) -> Path:
    """Writes the page of finished results to the folder ``target`` and returns its path.

    Refuses an experiment that lacks its conclusion. Refuses results that are incomplete, not of the full
    form, ``invalid``, or of another engine than this one, unless ``anyway``: then the page begins with what
    they are, and concludes nothing. An earlier page is replaced.
    """
    reader = RunReader(results)
    made = record.read(results)
    concluded = conclusion.read(experiment)
    against = _objections(experiment, reader, made)
    if against and not anyway:
        raise ScenarioError(
            "experiment.unpublished",
            "; ".join(against),
            where=str(results),
            cure=f"airloom experiment run {experiment.name} (finished runs are kept), or --anyway",
        )
    drawings = [one.drawing() for one in figures.load(results)]
    with disk(target):
        if target.exists():
            _refuse_foreign(target)
            shutil.rmtree(target)
        target.mkdir(parents=True)
        for drawing in drawings:
            drawing.save(target, "svg")
        _values(reader.result, target / VALUES)
        images = [(one.name, one.alt) for one in drawings]
        blocks = _page(experiment, reader, made, concluded, against, images)
        page = target / PAGE
        page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    for path in sorted(target.iterdir()):
        if path.stat().st_size > LARGEST:
            raise RunError(
                "experiment.large",
                f"{path.name} has {path.stat().st_size:,} octets, and a published file at most {LARGEST:,}",
                where=str(path),
                cure="draw fewer points in this figure of the experiment",
            )
    with disk(target.parent):
        published_index.update(target.parent)
    return page


def _refuse_foreign(target: Path) -> None:
    page = target / PAGE
    if any(target.iterdir()) and not (page.exists() and GENERATED in page.read_text(encoding="utf-8")):
        raise ScenarioError(
            "experiment.foreign",
            "this folder holds something else than a published result",
            where=str(target),
            cure="name another folder with --to",
        )


def objections(experiment: Experiment, results: Path) -> list[str]:
    """Returns why finished results should not be published; empty if nothing speaks against it."""
    return _objections(experiment, RunReader(results), record.read(results))


def _objections(experiment: Experiment, reader: RunReader, made: Record | None) -> list[str]:
    """Why these results should not be published."""
    found = []
    if not reader.complete:
        found.append("these results are incomplete")
    if made is None:
        found.append("they do not say in which form the experiment was run")
    elif made.experiment != experiment.name:
        raise ScenarioError(
            "experiment.other",
            f"these are results of {made.experiment}, not of {experiment.name}",
            where=str(reader.folder),
            cure=f"airloom experiment publish {made.experiment} {reader.folder}",
        )
    elif made.extent != "full":
        found.append(f"they are of the {made.extent} form, whose claims about means are undecided")
    if reader.result.verdict.status == "invalid":
        found.append("their verdict is invalid")
    engines = origin(reader)[1].get("engine", [])
    here = engine_identity.identity()
    if not engines:
        found.append("their runs do not say which engine made them")
    elif engines != [here]:
        found.append(f"their runs were made by the engine {' / '.join(engines)}, and this one is {here}")
    return found


def _page(
    experiment: Experiment,
    reader: RunReader,
    made: Record | None,
    concluded: str | None,
    against: Sequence[str],
    images: Sequence[tuple[str, str]],
) -> list[str]:
    result = reader.result
    blocks = [f"# Results: {experiment.name}", GENERATED, prose(experiment.summary)]
    if against:
        blocks.append(prose(f"{PARTIAL} {'; '.join(against)}."))
    elif concluded is not None:
        blocks.append(concluded)
    command = made.command if made is not None else f"airloom experiment run {experiment.name}"
    blocks.append(f"    {command}")
    runs = [one.result for one in runs_of(reader)]
    blocks.append(_conditions(reader, runs))
    blocks += _verdict(result.verdict, [one.verdict for one in runs])
    told = outcomes_told(OUTCOMES[claim.outcome] for claim in result.claims)
    blocks += ["## Claims", told, markdown.table(CLAIM_COLUMNS, map(claim_cells, result.claims))]
    if images:
        blocks.append("## Figures")
        blocks += [f"![{cell(alt)}]({name}.svg)" for name, alt in images]
    blocks.append(f"All values, with the half widths of their 95 % intervals: [{VALUES}]({VALUES}).")
    return blocks


def _conditions(reader: RunReader, runs: Sequence[Result]) -> str:
    result = reader.result
    machine, versions = origin(reader)
    numbers = [one.n for one in result.repeated if one.n]
    least, most = min(numbers, default=0), max(numbers, default=0)
    often = f"{least} to {most}" if least < most else f"{most}"
    repeated = f"{len(result.repeated)} points, runs of each: {often}"
    # The experiment's own time is that of its last part, if it was stopped and resumed.
    others = outside.wall_seconds(reader.folder / capacity_search.POINTS)
    seconds = max(sum(one.wall_seconds for one in runs) + others, result.wall_seconds)
    rows = [
        ("started", min(one.started for one in runs)),
        ("took", in_words(seconds * 1e9)),
        ("kinds", ", ".join(result.kinds)),
        ("runs", repeated),
        ("machine", _listed(machine)),
        ("versions", _listed(versions)),
    ]
    return _table(("", ""), rows)


def _listed(found: Facts) -> str:
    return ", ".join(f"{name.removesuffix('_octets')} {' / '.join(one)}" for name, one in found.items())


def _verdict(verdict: Verdict, runs: Sequence[Verdict]) -> list[str]:
    """The status, how many runs have which, and each code of a reason once, with its first reason."""
    statuses = Counter(one.status for one in runs)
    told = ", ".join(f"{statuses[one]} {one}" for one in get_args(Status) if statuses[one])
    blocks = ["## Verdict", f"**{verdict.status}**; runs: {told}"]
    having = Counter(code for one in runs for code in set(one.codes))
    # A reason of the experiment itself is of no run, and counts none.
    rows = [(code, str(having[code] or ""), first) for code, (first, *_) in sorted(verdict.by_code())]
    if rows:
        blocks.append(_table(("code", "runs", "the first such reason"), rows))
    groups = verdict.notes_by_words()
    notes = [with_others(first, len(alike)) for first, *alike in groups[:_NOTES]]
    if more := sum(map(len, groups[_NOTES:])):
        notes.append(f"and {more} more notes")
    if notes:
        blocks += ["Notes:", markdown.items(notes)]
    return blocks


def outcomes_told(outcomes: Iterable[str]) -> str:
    """Returns how many claims have which outcome, given in words."""
    counts = Counter(outcomes)
    told = ", ".join(f"{counts[one]} {one}" for one in OUTCOMES.values() if counts[one])
    return prose(f"{told or 'None'}. Measured values are means with their 95 % intervals.")


CLAIM_COLUMNS = ("claim", "outcome", "statement", "measured", "holds if", "published", "why")


def claim_cells(claim: Claim) -> tuple[str, ...]:
    """Returns the cells of a claim's row."""
    texts = (
        claim.id,
        f"**{OUTCOMES[claim.outcome]}**",
        claim.statement,
        claim.measured,
        claim.expected,
        f"{claim.published} ({claim.source})" if claim.published else claim.source or "",
        claim.why,
    )
    return tuple(cell(one) for one in texts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown.table(head, ([cell(one) for one in row] for row in rows))


def _values(result: Result, path: Path) -> None:
    labels = sorted({name for one in result.measurements for name in one.labels})
    with path.open("w", newline="", encoding="utf-8") as sink:
        rows = csv.writer(sink, lineterminator="\n")
        rows.writerow(["measurement", "metric", *labels, "mean", "ci95", "n", "unit"])
        for one in result.measurements:
            values = ("" if value is None else f"{value:.8g}" for value in (one.mean, one.ci95))
            rows.writerow(
                [
                    one.name,
                    one.metric,
                    *(one.labels.get(name, "") for name in labels),
                    *values,
                    one.n,
                    one.unit,
                ]
            )
