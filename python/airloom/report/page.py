"""Content of a report's page, in order; the template defines the layout."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airloom.host import files as host_files
from airloom.report import (
    control,
    figures,
    grid,
    links,
    plots,
    radio,
    series,
    slices,
    sweeps,
    tables,
    together,
    topology,
)
from airloom.report.in_force import in_force
from airloom.report.style import Drawing
from airloom.report.tables import Table
from airloom.results import Measurement, RunReader
from airloom.results.headline import BETTER

TAIL_LINES = 25
TAIL_OCTETS = 16 * 1024
LOGS = 40
"""Maximum number of program outputs on the page."""

Progress = Callable[[str, float], None]
"""Called with the current step and the completed share, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Text:
    """A collapsible text."""

    title: str
    body: str
    remark: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class Chapter:
    """A section of the page with a heading; the one without a title stands below the verdict."""

    title: str
    text: str = ""
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """True if the chapter has no content."""
        return not (self.drawings or self.tables or self.texts or self.text)


def chapters(run: RunReader, progress: Progress) -> list[Chapter]:
    """Returns the chapters of a run's page that have content."""
    progress("reading samples", 0.0)
    frame = run.samples()
    progress("preparing plots", 0.2)
    found = list(series.all_series(frame)) if not run.is_sweep else []
    over_time = plots.over_time(found, run.details.happenings)
    chain = (
        Chapter("", drawings=over_time[:1]),
        Chapter("Figures", drawings=[one.drawing() for one in figures.load(run.folder)]),
        *(_of_sweep(run) if run.is_sweep else _of_single(run)),
        Chapter("Claims", tables=_there(tables.claims(run), tables.repeated(run))),
        Chapter("Runs", tables=_there(tables.points(run), in_force(run)) if run.is_sweep else []),
        Chapter("Topology", drawings=_known(_picture(run)), text=_whose(run)),
        Chapter(
            "Radio",
            drawings=radio.drawings(run, frame),
            tables=_there(
                slices.violations(run),
                slices.airtime(run),
                radio.channels(run),
                radio.radios(run),
                radio.links(run),
            ),
        ),
        Chapter(
            "OpenFlow",
            drawings=_known(control.drawing(run, frame)),
            tables=_there(control.messages(run), control.answers(run)),
        ),
        Chapter("Links", drawings=links.drawings(run, frame)),
        Chapter("Over time", drawings=over_time[1:]),
        Chapter("Distributions", drawings=plots.distributions(found)),
        _fates(run),
        Chapter(
            "This machine",
            drawings=_known(plots.host(frame), plots.processors(run)) if not run.is_sweep else [],
            tables=_there(tables.nodes(run)),
        ),
        Chapter("Programs", tables=_there(tables.programs(run)), texts=_logs(run)),
        Chapter("All figures", tables=_there(tables.measurements(run)) if run.is_sweep else []),
        Chapter("As run", texts=_as_run(run)),
    )
    return [one for one in chain if not one.empty]


def side_by_side(runs: Sequence[RunReader]) -> Chapter:
    """Returns the figures and the table of several runs together."""
    return Chapter(
        "Side by side",
        text=together.without_common_points(runs),
        drawings=together.drawings(runs),
        tables=_there(together.figures(runs)),
    )


def _of_single(run: RunReader) -> list[Chapter]:
    found = (tables.first_figures(run), *tables.figures_and_counters(run), in_force(run))
    return [Chapter("Measurements", tables=_there(*found))]


def _of_sweep(run: RunReader) -> list[Chapter]:
    """Returns a chapter for each measured quantity of a sweep, or of repetitions."""
    whole = grid.of_sweep(run)
    found = sweeps.quantities(whole)
    parts = [
        Chapter(one.title, drawings=sweeps.drawings(whole, one), tables=_there(sweeps.table(whole, one)))
        for one in found
    ]
    rest = sweeps.undrawn(whole, found)
    return [*parts, Chapter("Other figures", text=f"{rest} They are in the last table.")] if rest else parts


def _picture(run: RunReader) -> Drawing | None:
    """Returns the drawing of nodes and links; nodes with only radios appear on the map."""
    wired = run.details.topology
    if run.details.radios and not wired.wires:
        return None
    by_radio = [
        (one.sender.partition(":")[0], one.receiver.partition(":")[0]) for one in run.details.radio_links
    ]
    return topology.picture(wired, by_radio)


def _whose(run: RunReader) -> str:
    return "Of the first run." if len(run.points) > 1 and run.details.topology.wires else ""


def headlines(run: RunReader, most: int = 6) -> list[tuple[str, str]]:
    """Returns the most important figures as (value, name), one for each measurement and kind."""
    if run.is_sweep and run.index.sweep:
        return []
    best: dict[tuple[str, str], Measurement] = {}
    there = {(one.name, one.metric) for one in run.result.measurements}
    for one in run.result.measurements:
        if (one.name, BETTER.get(one.metric)) in there:
            continue
        kind = series.kind_of(one.metric, one.unit)
        if kind not in series.ORDER or one.mean is None or one.labels:
            continue  # one of several cases is meaningless without the others
        known = best.get((one.name, kind))
        if known is None or _weight(one.metric) < _weight(known.metric):
            best[(one.name, kind)] = one
    ordered = sorted(best.items(), key=lambda item: series.rank_of(item[0][1])[0])
    return [(tables.shown_figure(one, one.mean), _label(one)) for _, one in ordered[:most]]


def _label(one: Measurement) -> str:
    metric = one.metric.replace("_", " ")
    return metric if metric.startswith(one.name) else f"{one.name}: {metric}"


def _weight(metric: str) -> int:
    for place, word in enumerate(("goodput", "throughput", "p50", "median", "mean", "avg", "loss", "jitter")):
        if metric == word or metric.endswith(f"_{word}"):
            return place
    return 99


def _fates(run: RunReader) -> Chapter:
    lost = plots.losses(run)
    late = plots.lateness(run) if not run.is_sweep else None
    if not tables.is_accounted(run):
        return Chapter("Ledger", text="Not known: the run ended before it could write its account.")
    text = "" if lost else "No frame was lost, neither by the emulated network nor by this machine."
    return Chapter(
        "Ledger",
        text=text,
        drawings=_known(lost, late),
        tables=_there(tables.ledger(run), tables.links(run)),
    )


def _logs(run: RunReader) -> list[Text]:
    if run.is_sweep:
        return []
    texts = []
    logs = run.logs()
    for name, path in list(logs.items())[:LOGS]:
        size = path.stat().st_size
        lines = _tail(path)
        # The end of a tool's JSON is of no use to readers; its figures are above.
        if lines and lines[-1] not in ("}", "]"):
            remark = f"the last {len(lines)} lines of {size:,} octets" if size > TAIL_OCTETS else ""
            texts.append(Text(name, "\n".join(lines), remark))
    if len(logs) > LOGS:
        texts.append(Text(f"{len(logs) - LOGS} more outputs", "They are in nodes/NODE/."))
    return texts


def _tail(path: Path) -> list[str]:
    try:
        with host_files.reader(path) as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - TAIL_OCTETS))
            text = source.read(TAIL_OCTETS).decode("utf-8", "replace")
    except OSError as error:
        return [f"cannot be read: {error.strerror or error}"]
    # Removes control characters, such as colour codes, which a page can't contain.
    clean = "".join(one for one in text if one in "\n\t" or one.isprintable())
    return clean.splitlines()[-TAIL_LINES:]


def _as_run(run: RunReader) -> list[Text]:
    details = run.details
    texts = []
    if run.scenario_text.strip():
        texts.append(Text("Scenario", run.scenario_text.rstrip(), open=len(run.scenario_text) < 2500))
    facts = [*details.versions.items(), *details.machine.items()]
    if facts:
        width = max(len(name) for name, _ in facts)
        body = "\n".join(f"{name:<{width}}  {value}" for name, value in facts)
        texts.append(Text("Software and machine", body))
    if details.limits:
        width = max(len(name) for name in details.limits)
        body = "\n".join(f"{name:<{width}}  {value}" for name, value in details.limits.items())
        texts.append(Text("Limits of the verdict", body))
    if details.happenings:
        body = "\n".join(f"{one.t_ns / 1e9:12.6f} s  {one.what}" for one in details.happenings)
        texts.append(Text("Events", body))
    return texts


def _there(*found: Table) -> list[Table]:
    return [one for one in found if one.rows]


def _known(*found: Drawing | None) -> list[Drawing]:
    return [one for one in found if one is not None]
