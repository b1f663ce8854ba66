"""Several runs side by side: figures with all of them, and a table with a column for each."""

from __future__ import annotations

from collections.abc import Sequence

from airloom.report import curves, grid, sweeps
from airloom.report.style import Drawing
from airloom.report.tables import Cell, Table, interval, labels_of, shown_figure, table
from airloom.results import Measurement, RunReader
from airloom.units.figures import PLAIN, UNITS, Scale, number


def names_of(runs: Sequence[RunReader]) -> list[str]:
    """Returns a name for each run: that of its folder; the whole path if two are alike."""
    short = [run.name for run in runs]
    return short if len(set(short)) == len(short) else [str(run.folder) for run in runs]


def drawings(runs: Sequence[RunReader]) -> list[Drawing]:
    """Returns the figures of the quantities that the runs measured."""
    whole = grid.of_runs(runs, names_of(runs))
    found: list[Drawing] = []
    for one in sweeps.quantities(whole):
        over = whole.repetitions > 1 or whole.main != whole.axes[0]
        if over:
            found += curves.of_family(whole, one.headline, one.title, one.slug)
        found += sweeps.samples(whole, one)
    return found


def figures(runs: Sequence[RunReader]) -> Table:
    """Returns every figure of the runs, a column for each run."""
    names = names_of(runs)
    found: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Measurement]] = {}
    for name, run in zip(names, runs, strict=True):
        for one in run.figures:
            key = (one.name, one.metric, tuple(sorted(one.labels.items())))
            found.setdefault(key, {})[name] = one
    labels = list(dict.fromkeys(label for _, _, pairs in found for label, _ in pairs))
    shorter: dict[str, str] = {}
    for run in runs:
        shorter |= labels_of(run)
    rows: list[list[str | Cell]] = []
    raw = []
    for (measurement, metric, pairs), seen in found.items():
        values = dict(pairs)
        shown = [_shown(seen.get(name)) for name in names]
        rows.append([measurement, *(values.get(one, "") for one in labels), metric.replace("_", " "), *shown])
        unit = next(iter(seen.values())).unit
        means = {name: seen[name].mean if name in seen else None for name in names}
        raw.append({"measurement": measurement, **values, "metric": metric, "unit": unit, **means})
    columns = ["measurement", *(shorter.get(one, one) for one in labels), "metric", *names]
    return table(
        "together",
        "Side by side",
        columns,
        rows,
        numeric=range(len(labels) + 2, len(columns)),
        raw=raw,
    )


def _shown(one: Measurement | None) -> str:
    """Returns a mean with its interval in one unit."""
    if one is None:
        return "-"
    if one.mean is None or one.ci95 is None:
        return shown_figure(one, one.mean)
    factor, dimension = UNITS.get(one.unit, (1.0, PLAIN))
    if dimension == PLAIN:
        return f"{shown_figure(one, one.mean)} {interval(one)}"
    scale = Scale.for_values([one.mean * factor], dimension)
    mean, half = (value * factor / scale.factor for value in (one.mean, one.ci95))
    return f"{number(mean)} ± {number(half, 2)} {scale.unit}"


def without_common_points(runs: Sequence[RunReader]) -> str:
    """Returns why there are no figures of all runs, if they were swept over different paths."""
    whole = grid.of_runs(runs, names_of(runs))
    return "" if whole.cases else "The runs were swept over different paths: there are no common figures."
