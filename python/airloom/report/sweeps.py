"""Chapters of a grid of runs: one for each measured quantity, with its figures and its pivot table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from airloom.report import curves, pivot, series, spread
from airloom.report.grid import Figure, Grid
from airloom.report.style import Drawing
from airloom.report.tables import Table
from airloom.results import fairness
from airloom.results.headline import BETTER
from airloom.units.figures import PLAIN, RATE, TIME

FEW = 8
"""Most families of a grid without common quantities, such as throughput, that are all shown."""

COUNTED = ("retransmits", fairness.METRIC)
"""Metrics with a chapter besides those of common quantities."""

HEADLINES = ("", "mean", "avg", "p50", "p95", "p99")
"""Statistics in figures over several measurements or axes; of one line, all are shown."""

CROWD = 8
"""Number of measurements from which only the mean of each is drawn."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured quantity of a tool, such as ping's round-trip time, and all of its figures."""

    family: str
    tool: str
    title: str
    figures: tuple[Figure, ...]
    drawn: tuple[Figure, ...]
    """The figures that are drawn; the table has all."""

    @property
    def slug(self) -> str:
        """Name in file names."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.family} {self.tool}".lower()).strip("-")

    @property
    def headline(self) -> tuple[Figure, ...]:
        """The mean of each measurement, or its only statistic."""
        best: dict[str, Figure] = {}
        for one in self.figures:
            known = best.get(one.name)
            if known is None or _weight(one) < _weight(known):
                best[one.name] = one
        return tuple(best.values())


def quantities(whole: Grid) -> list[Quantity]:
    """Returns the quantities that have a chapter, in the order of the page."""
    families: dict[tuple[str, str], list[Figure]] = {}
    for one in whole.figures:
        families.setdefault((one.family, one.tool), []).append(one)
    kinds = {key: _kind(group[0]) for key, group in families.items()}
    chosen = {
        key
        for key in families
        if key[0] in COUNTED or (kinds[key] in series.ORDER and _leads(key, kinds, set(families)))
    }
    if not chosen and len(families) <= FEW:
        chosen = set(families)
    several = [key[0] for key in chosen]
    found = []
    for key in sorted(chosen, key=lambda key: (series.rank_of(kinds[key]), key)):
        family, tool = key
        title = series.title_of(kinds[key] if kinds[key] == family else family)
        named = f"{title} ({tool})" if several.count(family) > 1 and tool else title
        group = tuple(families[key])
        found.append(Quantity(family, tool, named, group, _drawn(whole, group)))
    return found


def _leads(key: tuple[str, str], kinds: dict[tuple[str, str], str], there: set[tuple[str, str]]) -> bool:
    """True if no other family of the tool is named as the quantity itself, or stands for it: ``goodput`` for
    ``throughput``.
    """
    family, tool = key
    if (BETTER.get(kinds[key]), tool) in there:
        return False
    return family == kinds[key] or (kinds[key], tool) not in there


def _kind(one: Figure) -> str:
    unit = {RATE: "bit/s", TIME: "s", PLAIN: "1"}.get(one.dimension, "")
    return series.kind_of(one.metric, unit)


def _drawn(whole: Grid, group: tuple[Figure, ...]) -> tuple[Figure, ...]:
    names = {one.name for one in group}
    axes = [axis for axis in whole.axes if len(axis.values) > 1]
    if len(names) == 1 and len(axes) < 2:
        return tuple(one for one in group if one.statistic in (*HEADLINES, "min", "max"))
    if len(names) > CROWD:
        return Quantity("", "", "", group, ()).headline
    return tuple(one for one in group if one.statistic in HEADLINES) or group


def _weight(one: Figure) -> int:
    order = ("mean", "avg", "", "p50")
    return order.index(one.statistic) if one.statistic in order else len(order)


def is_sampled(one: Quantity) -> bool:
    """True if the samples of the quantity are drawn too."""
    return _kind(one.headline[0]) in series.ORDER


def drawings(whole: Grid, one: Quantity) -> list[Drawing]:
    """Returns the figures of a quantity: curves, repetitions, distribution, time series."""
    found = [
        *curves.of_family(whole, one.drawn, one.title, one.slug),
        *spread.boxes(whole, one.headline, one.title, one.slug),
    ]
    return [*found, *samples(whole, one)]


def samples(whole: Grid, one: Quantity) -> list[Drawing]:
    """Returns the figures of a quantity's samples, if they are drawn: distribution and time series."""
    if not is_sampled(one):
        return []
    names = tuple(dict.fromkeys(each.name for each in one.figures))
    like, metric = one.headline[0], series.sampled(one.family)
    title = one.title if metric == one.family else series.title_of(metric)
    slug = one.slug.replace(one.family, metric, 1)
    return [
        *spread.distributions(whole, names, metric, like, title, slug),
        *spread.over_time(whole, names, metric, like, title, slug),
    ]


def table(whole: Grid, one: Quantity) -> Table:
    """Returns the pivot table of a quantity."""
    return pivot.of_family(whole, one.drawn, one.title, one.slug)


def undrawn(whole: Grid, found: Sequence[Quantity]) -> str:
    """Returns which metrics have no figure."""
    drawn = {(each.tool, each.metric) for one in found for each in one.drawn}
    rest = dict.fromkeys(
        one.metric.replace("_", " ") for one in whole.figures if (one.tool, one.metric) not in drawn
    )
    return f"Without a figure above: {', '.join(rest)}." if rest else ""
