"""Judges the claims of a published page anew from its values, after claims have changed: no run is made.

A page has the mean of each figure, its interval and the number of runs. Claims are judged on values that
have just these; what a claim needs beyond them, such as single runs, is not there. So a claim whose
condition is the page's keeps what was measured and judged then, except for outcomes that there are no
reasons for any more: ``implausible in source`` without arithmetic, ``holds in shape`` without a weaker form.
"""

from __future__ import annotations

import csv
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.experiments import campaign, conclusion, markdown, published_index
from airloom.experiments.extent import Extent
from airloom.experiments.found import Found
from airloom.experiments.published_index import OUTCOMES, PAGE
from airloom.experiments.publishing import CLAIM_COLUMNS, VALUES, claim_cells, outcomes_told
from airloom.experiments.registry import Experiment
from airloom.report import figures
from airloom.report.figures import Figure
from airloom.results import Claim
from airloom.results.folder import disk
from airloom.stats import spread_of

_OWN = ("measurement", "metric", "mean", "ci95", "n", "unit")
_MIXED = (
    "the page's values do not tell its valid runs from its invalid ones: run the experiment to judge this"
)
NOTE = (
    "The claims were judged anew after the runs: those that had changed, on the means and intervals of this "
    "page's values."
)
_SECTION = re.compile(r"## Claims\n\n.*?(?=\n\n(?:## Figures|All values))", re.DOTALL)


def rejudge(experiment: Experiment, folder: Path) -> list[str]:
    """Writes claims and conclusion of the page in ``folder`` anew; returns the IDs of changed claims."""
    page = folder / PAGE
    try:
        text = page.read_text(encoding="utf-8")
        values = (folder / VALUES).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ScenarioError(
            "experiment.page", "there is no published page with its values", where=str(error.filename),
            cure=f"airloom experiment publish {experiment.name}",
        ) from None  # fmt: skip
    section = _SECTION.search(text)
    if section is None or published_index.GENERATED not in text:
        raise ScenarioError("experiment.page", "this is no published page with claims", where=str(page))
    # What is no full and valid result concludes nothing.
    concluded = None if published_index.PARTIAL in text else conclusion.read(experiment)
    old = _rows(section.group())
    claims, drawn = _replayed(experiment, found(experiment.name, values), _kinds(experiment, text))
    mixed = re.search(r"^\*\*\w+\*\*; runs: .*\d invalid", text, re.MULTILINE) is not None
    rows = [_row(one, old.get(one.id), mixed) for one in claims]
    table = markdown.table(CLAIM_COLUMNS, rows)
    told = outcomes_told([row[1].strip("*") for row in rows])
    changed = [row[0] for row in rows if old.get(row[0]) != row] + [id for id in old if id not in _ids(rows)]
    blocks = ["## Claims", told, *([markdown.prose(NOTE)] if changed or NOTE[:40] in text else []), table]
    text = text[: section.start()] + "\n\n".join(blocks) + text[section.end() :]
    with disk(folder):
        for figure in drawn:
            text = _drawn_anew(text, figure, folder)
        page.write_text(conclusion.put(text, concluded), encoding="utf-8")
        published_index.update(folder.parent)
    return changed


def found(name: str, values: str) -> Found:
    """Returns figures with the means, intervals and numbers of the values of a page.

    Of n values all but two are the mean m, and two are m + d and m - d: with the standard deviation s that
    the interval says, d = s sqrt((n - 1) / 2).
    """
    there = Found()
    for row in csv.DictReader(values.splitlines()):
        metric = row["metric"] if row["measurement"] == name else f"{row['measurement']}.{row['metric']}"
        labels = {key: value for key, value in row.items() if key not in _OWN and value}
        mean, n = float(row["mean"]), int(row["n"])
        apart = 0.0
        if n > 1:
            apart = spread_of(float(row["ci95"]), n) * math.sqrt((n - 1) / 2)
        for value in (mean + apart, mean - apart, *[mean] * (n - 2))[:n] if n > 1 else (mean,):
            there.add(labels, {metric: (value, row["unit"])})
    return there


def _kinds(experiment: Experiment, page: str) -> dict[str, tuple[str, ...]]:
    """Returns the kinds that the page's command names, or those that a search for usable ones found."""
    named = re.findall(r"--kind (\S+)", page.partition("|")[0])
    listed = re.search(r"^\| kinds \| (.*) \|$", page, re.MULTILINE)
    if not named and listed is not None and experiment.name in _OF_ALL_KINDS:
        named = listed.group(1).split(", ")
    return {"kinds": tuple(named)} if named else {}


_OF_ALL_KINDS = ("net-kinds-wired", "net-kinds-wireless", "orbit-kinds")
"""Experiments that find out which kinds work on a machine unless kinds are named."""


def _replayed(
    experiment: Experiment, values: Found, kinds: Mapping[str, tuple[str, ...]]
) -> tuple[Sequence[Claim], list[Figure]]:
    with tempfile.TemporaryDirectory() as place, campaign.on(values):
        folder = Path(place) / "out"
        result = experiment.load()(folder, extent=Extent.FULL, progress=lambda _: None, **kinds)
        return result.claims, figures.load(folder)


def _rows(section: str) -> dict[str, list[str]]:
    """Returns the cells of each claim's row, by its ID."""
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    return {row[0]: row for row in rows}


def _ids(rows: Sequence[Sequence[str]]) -> set[str]:
    return {row[0] for row in rows}


def _row(one: Claim, old: Sequence[str] | None, mixed: bool) -> list[str]:
    """Returns the row of a claim; ``old``: its row on the page."""
    new = list(claim_cells(one))
    if not one.expected:
        return new  # a statement without a claim
    if mixed and old is not None and _bare(old[2]) == _bare(new[2]):
        # Its limits may follow from the chains that have a valid run, so that they differ.
        new[4] = old[4]
    if old is None or old[4] != new[4]:
        if mixed:
            return [new[0], f"**{OUTCOMES['undecided']}**", _bare(new[2]), "", *new[4:6], _MIXED]
        return new
    gone = {f"**{OUTCOMES['implausible-in-source']}**", f"**{OUTCOMES['holds-in-shape']}**"}
    if old[1] in gone and old[1] != new[1] and one.outcome == "fails":
        return [*new[:3], old[3], *new[4:6], _plain(old[6])]
    statement = _bare(new[2])
    if old[1] == f"**{OUTCOMES['holds-in-shape']}**":
        statement = f"Not as stated, only {old[6].rpartition('; but ')[2]}: {statement}"
    return [new[0], old[1], statement, old[3], *new[4:6], old[6]]


def _bare(statement: str) -> str:
    """Returns a statement without the weaker form before it."""
    return re.sub(r"^Not as stated, only .*?: (?=[A-Za-z])", "", statement)


def _plain(why: str) -> str:
    """Returns a reason without the remark before it and the weaker form after it."""
    return re.sub(r"^[PD]-\d+.*?; (?=-?\d)", "", why).partition("; but ")[0]


def _drawn_anew(page: str, figure: Figure, folder: Path) -> str:
    """Draws a figure of categories again, and returns the page with its text.

    Other figures stay: they may show single runs, which the values do not have.
    """
    drawing = figure.drawing()
    here = re.compile(rf"!\[([^\]]*)\]\({re.escape(drawing.name)}\.svg\)")
    if figure.categories and here.search(page):
        drawing.save(folder, "svg")
        return here.sub(lambda _: f"![{markdown.cell(drawing.alt)}]({drawing.name}.svg)", page)
    if figure.unit == "1":
        return here.sub(lambda match: re.sub(r"(?<=\d) 1 at ", " at ", match[0]), page)
    return page
