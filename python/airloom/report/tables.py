"""Tables for the terminal, the HTML page and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from airloom.results import Ledger, Measurement, RunReader, Verdict
from airloom.results.headline import HEADLINES, headlines
from airloom.results.writer import label_of
from airloom.units import html
from airloom.units.figures import of_metric

Tone = Literal["", "good", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a cell; ``tone`` colours it, but carries no information of its own."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a name for files, a title for readers, and numeric or text columns."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()
    note: str = ""
    raw: tuple[dict[str, Any], ...] = field(default=())
    """The rows with unrounded figures and units, for CSV; empty if the cells contain them."""
    folded: bool = False
    """Whether a page shows its title only, until the reader opens it."""

    def _repr_html_(self) -> str:
        rows = [[cell.text for cell in row] for row in self.rows]
        return html.table(self.columns, rows, caption=self.title, numeric=self.numeric)


def table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    numeric: Sequence[int] = (),
    note: str = "",
    raw: Sequence[dict[str, Any]] = (),
) -> Table:
    """Returns a table of plain texts and cells."""
    cells = tuple(tuple(one if isinstance(one, Cell) else Cell(one) for one in row) for row in rows)
    return Table(name, title, tuple(columns), cells, frozenset(numeric), note, tuple(raw))


MANY = 40
"""Number of figures above which a separate table lists the most important ones."""


def first_figures(run: RunReader) -> Table:
    """Returns the most important figures; empty if all of them fit one table."""
    found = run.figures
    if len(found) <= MANY:
        return table("headlines", "Measurements", [], [])
    shown = headlines(found)
    more = len(found) - len(shown)
    note = f"{more} more figures are in result.json." if more else ""
    return _measurements("headlines", "Measurements", shown, note, {})


_N = "n is the number of observations behind a figure. With two or more it has an interval."


def measurements(run: RunReader) -> Table:
    """Returns all figures of a run."""
    few = len(run.figures) <= MANY
    title = "Measurements" if few else "All figures"
    return _measurements("measurements", title, run.figures, _N, labels_of(run))


_COUNTS = ("frames", "packets", "count", "octets", "bit")


def is_counter(one: Measurement) -> bool:
    """Whether a figure only counts what a tool did, such as packets sent: rates and shares follow from it."""
    if one.metric in HEADLINES:
        return False
    return one.unit in _COUNTS or one.metric.partition(".")[0].startswith("cpu")


def figures_and_counters(run: RunReader) -> tuple[Table, ...]:
    """Returns the figures of a single run, and folded its counters."""
    few = len(run.figures) <= MANY
    counters = [one for one in run.figures if is_counter(one)]
    others = [one for one in run.figures if not is_counter(one)]
    if not counters or not others or not few:
        return (replace(measurements(run), folded=not few),)
    return (
        _measurements("measurements", "Measurements", others, _N, {}),
        replace(_measurements("counters", "Counters", counters, "", {}), folded=True),
    )


def labels_of(run: RunReader) -> dict[str, str]:
    """Returns the labels of swept paths that the scenario gives."""
    return run.index.labels if run.is_sweep else {}


def _measurements(
    name: str, title: str, found: Sequence[Measurement], note: str, shorter: Mapping[str, str]
) -> Table:
    swept = list(dict.fromkeys(label for one in found for label in one.labels))
    # Columns equal in every row are left out: an only name, missing intervals of single runs.
    names = ["measurement"] if len({one.name for one in found}) > 1 or not swept else []
    intervals = ["95 % interval"] if any(one.ci95 is not None for one in found) else []
    observed = ["n"] if any(one.n != 1 for one in found) else []
    rows: list[list[str | Cell]] = []
    shown = ""
    for one in found:
        first = [one.name if one.name != shown or swept else ""] if names else []
        shown = one.name
        figure = Cell(shown_figure(one, one.mean), "" if one.mean is not None else "bad")
        labels = [one.labels.get(label, "") for label in swept]
        spread = [interval(one)] if intervals else []
        number = [f"{one.n:,}"] if observed else []
        rows.append([*first, *labels, one.metric.replace("_", " "), figure, *spread, *number])
    mean = "mean" if observed else "value"
    columns = [*names, *(shorter.get(path, path) for path in swept), "metric", mean, *intervals, *observed]
    return table(
        name,
        title,
        columns,
        rows,
        numeric=tuple(range(len(names) + len(swept) + 1, len(columns))),
        note=note if observed or note != _N else "",
        raw=[one.model_dump(exclude={"labels"}) | one.labels for one in found],
    )


def interval(one: Measurement) -> str:
    """Returns a confidence interval in readable form."""
    if one.mean is None or one.ci95 is None:
        return "-"
    return f"± {shown_figure(one, one.ci95)}"


def shown_figure(one: Measurement, value: float | None, digits: int = 4) -> str:
    """Returns a figure in readable form; a share of losses or of a processor in percent."""
    return of_metric(one.metric, value, one.unit, digits)


OUTCOME_TONES: dict[str, Tone] = {
    "holds": "good",
    "holds-in-shape": "warn",
    "undecided": "warn",
    "fails": "bad",
    "implausible-in-source": "warn",
}


def claims(run: RunReader) -> Table:
    """Returns every claim with the measured values."""
    rows: list[list[str | Cell]] = [
        [
            one.id,
            Cell(one.outcome.replace("-", " "), OUTCOME_TONES[one.outcome]),
            f"{one.statement} ({one.source})" if one.source else one.statement,
            one.published,
            one.expected,
            one.measured,
            one.why,
        ]
        for one in run.result.claims
    ]
    return table(
        "claims",
        "Claims",
        ["claim", "outcome", "statement", "published", "expected", "measured", "why"],
        rows,
    )


def repeated(run: RunReader) -> Table:
    """Returns the points of an experiment: repetitions, interval, and why there were no more."""
    rows: list[list[str | Cell]] = [
        [
            ", ".join(f"{key}={value}" for key, value in one.labels.items()),
            one.metric,
            of_metric(one.metric, one.mean, one.unit),
            "-" if one.ci95 is None else f"± {of_metric(one.metric, one.ci95, one.unit)}",
            str(one.n),
            one.stopped,
        ]
        for one in run.result.repeated
    ]
    return table(
        "repeated", "Repetitions", ["point", "figure", "mean", "95 %", "runs", "stopped because"], rows
    )


STATUS_TONES: dict[str, Tone] = {"valid": "good", "degraded": "warn", "invalid": "bad"}


def points(run: RunReader) -> Table:
    """Returns every run of a sweep with its verdict."""
    rows: list[list[str | Cell]] = []
    raw: list[dict[str, Any]] = []
    paths = list(run.index.sweep) if run.is_sweep else []
    repeated = run.is_sweep and run.index.repetitions > 1
    for point, one in run.begun:
        verdict = one.result.verdict
        values = {path: label_of(point.values[path]) for path in paths}
        rows.append(
            [
                *values.values(),
                *([str(point.repetition + 1)] if repeated else []),
                Cell(verdict.status, STATUS_TONES[verdict.status]),
                f"{one.result.wall_seconds:.1f} s",
                ", ".join(verdict.codes),
            ]
        )
        raw.append(
            values
            | {
                "repetition": point.repetition + 1,
                "verdict": verdict.status,
                "took_s": one.result.wall_seconds,
                "seed": one.result.seed,
                "why": " ".join(verdict.codes),
                "folder": point.folder,
            }
        )
    first = len(paths)
    shorter = labels_of(run)
    return table(
        "points",
        "Runs of this sweep" if paths else "Repetitions",
        [
            *(shorter.get(path, path) for path in paths),
            *(["run"] if repeated else []),
            "verdict",
            "took",
            "why",
        ],
        rows,
        numeric=(*([first] if repeated else []), first + 2 if repeated else first + 1),
        note="points.csv and the result.json of each run have its seed." if rows else "",
        raw=raw,
    )


def ledger(run: RunReader) -> Table:
    """Returns the number of frames by outcome; emulated loss apart from host loss."""
    result: Ledger = run.result.ledger
    engine = run.details.engine if not run.is_sweep else {}
    # Frames that a port dropped before the engine (missed) were offered by a node too.
    offered = int(engine.get("offered", 0)) + int(engine.get("missed", 0))
    rows: list[list[str | Cell]] = []

    def row(fate: str, cause: str, frames: int, tone: Tone = "") -> None:
        rows.append([fate, cause, Cell(f"{frames:,}", tone)])

    if not is_accounted(run):
        return table("ledger", "Where every frame went", ["fate", "cause", "frames"], [])
    if "offered" in engine:
        row("offered", "by the nodes", offered)
    if engine.get("copies"):
        row("copied", "by switches and links", int(engine["copies"]))
    row("delivered", "to the nodes", result.delivered)
    for reason, frames in sorted(result.dropped.items()):
        row("emulated loss", cause_of(reason), frames)
    by_reason = run.details.host_lost if not run.is_sweep else {}
    if by_reason and sum(by_reason.values()) == result.host_lost and result.host_lost:
        for reason, frames in sorted(by_reason.items()):
            row("host loss", reason.replace("-", " "), frames, "bad" if frames else "")
    else:
        row("host loss", "this machine", result.host_lost, "bad" if result.host_lost else "good")
    if "in_flight" in engine:
        row("in flight", "when the run ended", int(engine["in_flight"]))
    note = "Frames; the segments of a super-frame count one by one."
    if "offered" in engine:
        left = offered + int(engine.get("copies", 0))
        right = (
            result.delivered
            + sum(result.dropped.values())
            + result.host_lost
            + int(engine.get("in_flight", 0))
        )
        note += (
            f" Offered + copied = delivered + lost + in flight: {left:,} = {right:,}."
            if left == right
            else f" THE ACCOUNT IS NOT CLOSED: {left:,} frames entered and {right:,} are accounted for."
        )
    return table(
        "ledger", "Where every frame went", ["fate", "cause", "frames"], rows, numeric=(2,), note=note
    )


_IN_WORDS = {
    "collision": "a broadcast that no radio received because of another transmission",
    "noise": "a broadcast too weak or too noisy for all in reach",
    "out-of-range": "no addressed radio was in range",
    "retry-limit": "no acknowledgment after the last permitted transmission",
    "radio-queue-full": "no buffer in the radio's driver, or its queue too long",
    "radio-off": "the radio was off, or its slice did not have it",
    "outside-band": "the node's 802.11 stack sent where its radio has no channel",
    "node-kernel": "the node's own kernel had no network to send it to",
    "outside-grant": "the transmission would have violated the grant of its slice",
    "not-associated": "no access point, or no such station",
    "not-up": "the guest behind the port had not come up yet",
}
"""Readable reasons of media and guests; those of links are readable as they are."""


def cause_of(reason: str) -> str:
    """Returns a reason of emulated loss in readable form."""
    words = reason.replace("-", " ")
    return f"{words}: {_IN_WORDS[reason]}" if reason in _IN_WORDS else words


def is_accounted(run: RunReader) -> bool:
    """True if the run wrote its ledger."""
    return run.finished or bool(run.result.ledger.delivered)


def links(run: RunReader) -> Table:
    """Returns the engine's counters of each link direction that carried or lost frames."""
    found = run.details.engine.get("links", {}) if not run.is_sweep else {}
    rows: list[list[str | Cell]] = []
    for name, directions in found.items():
        for direction, account in directions.items():
            if not isinstance(account, dict):
                continue
            dropped: dict[str, int] = {k: v for k, v in (account.get("dropped") or {}).items() if v}
            delivered = int(account.get("left") or 0)
            if delivered or dropped:
                lost = ", ".join(
                    f"{frames:,} {reason.replace('-', ' ')}" for reason, frames in dropped.items()
                )
                queue = account.get("queue_highest")
                longest = "-" if queue is None else f"{int(queue):,}"
                rows.append([name, direction, f"{delivered:,}", longest, lost or "0", _changed(account)])
    columns = ["link", "direction", "carried", "longest queue", "lost by emulation", "changed"]
    return table("links", "Links", columns, rows, numeric=(2, 3), note="In frames." if rows else "")


def _changed(account: dict[str, Any]) -> str:
    """Returns how a link changed frames."""
    kinds = ("duplicated", "corrupted", "reordered", "marked")
    return ", ".join(f"{account[kind]:,} {kind}" for kind in kinds if account.get(kind))


def guidance(run: RunReader) -> Table:
    """Returns the effects of the node kinds on the figures, where kinds were calibrated."""
    rows: list[list[str | Cell]] = []
    tones: dict[str, Tone] = {"harmless": "", "correctable": "warn", "unusable": "bad"}
    for one in run.details.guidance if not run.is_sweep else ():
        as_figure = Measurement(name=one.measurement, metric=one.metric, unit=one.unit, mean=None)
        corrected = shown_figure(as_figure, one.corrected)
        if one.half_width is not None:
            corrected += f" +- {shown_figure(as_figure, one.half_width)}"
        rows.append(
            [
                one.measurement,
                one.metric.replace("_", " "),
                shown_figure(as_figure, one.value),
                Cell(one.verdict, tones.get(one.verdict, "")),
                "" if one.corrected is None else corrected,
                one.why,
            ]
        )
    return table(
        "guidance",
        "What virtualization did to the figures",
        ["measurement", "metric", "measured", "it is", "corrected", "why"],
        rows,
        numeric=(2, 4),
        note="From the calibrations of the nodes' kinds on this machine (airloom calibrate).",
    )


def nodes(run: RunReader) -> Table:
    """Returns the processor time of each node's programs."""
    seconds = max(run.result.wall_seconds, 1e-9)
    used = sorted(run.details.nodes, key=lambda one: -(one.user_s + one.system_s)) if not run.is_sweep else []
    rows: list[list[str | Cell]] = [
        [
            one.node,
            f"{one.user_s:.3f} s",
            f"{one.system_s:.3f} s",
            f"{one.wait_s:.3f} s",
            f"{100 * (one.user_s + one.system_s) / seconds:.1f} %",
        ]
        for one in used
    ]
    columns = ["node", "user", "system", "waited", "of one processor"]
    if any(one.switches is not None for one in used):
        columns.append("context switches")
        for row, one in zip(rows, used, strict=True):
            row.append("" if one.switches is None else f"{one.switches:,}")
    return table("nodes", "Processor time by node", columns, rows, numeric=tuple(range(1, len(columns))))


def profile(run: RunReader) -> Table:
    """Returns where each component spent its time, by samples."""
    rows: list[list[str | Cell]] = [
        ["" if one.place else one.component.replace("_", " "), one.place or "all of it", f"{one.share:.1%}"]
        for one in run.details.profile
    ]
    return table(
        "profile",
        "Where the processors' time went",
        ["component", "place", "of all samples"],
        rows,
        numeric=(2,),
        note="Samples of the processor clock: the whole of each component, then its busiest places.",
    )


def programs(run: RunReader) -> Table:
    """Returns how each program ended."""
    rows: list[list[str | Cell]] = []
    for one in run.details.programs if not run.is_sweep else ():
        end = f"signal {one.signal}" if one.signal else "-" if one.exit is None else f"exit {one.exit}"
        rows.append([one.node, one.name, Cell(end, "" if one.expected else "bad"), one.command])
    return table("programs", "Programs", ["node", "program", "end", "command"], rows)


_LABELS = {
    "host.lost": "lost by the host",
    "host.cpu-pressure": "short of processors",
    "host.pressure-hidden": "pressure not known",
    "host.steal": "processor time stolen",
    "host.memory-pressure": "short of memory",
    "host.memory-low": "short of memory",
    "delivery.late": "late deliveries",
    "delivery.stall": "late deliveries",
    "ingress.late": "late intake",
    "ingress.stall": "late intake",
    "link.paused": "links stood still",
    "engine.busy": "engine without reserve",
    "engine.starved": "engine waited",
    "node.starved": "nodes waited",
    "node.share": "share not held",
    "kind.ceiling": "above a kind's ceiling",
    "traffic.pacing": "source behind its schedule",
    "measure.stopped": "a program was stopped",
    "claim.undecided": "claim undecided",
    "run.unfinished": "not finished",
    "run.cut-short": "cut short",
}


def reason_labels(verdict: Verdict) -> list[str]:
    """Returns the reasons of a verdict in a few words each, the gravest first."""
    return list(dict.fromkeys(_LABELS.get(code, code) for code in verdict.codes if code))


REASONS = 4
"""Maximum number of verdict reasons shown at once; a long sweep may have hundreds."""
CELLS = 3000
"""Maximum number of cells of a table on the page, by which its rows are limited."""
NOTES = 2
"""Maximum number of notes shown at once."""


def reasons(verdict: Verdict) -> tuple[list[str], list[str]]:
    """Returns the reasons of a verdict to show at once, of many the first of each code, and the others."""
    return _some(verdict.reasons, [alike for _, alike in verdict.by_code()], REASONS)


def notes(verdict: Verdict) -> tuple[list[str], list[str]]:
    """Returns the notes of a verdict to show at once, of many the first of those alike, and the others."""
    return _some(verdict.notes, verdict.notes_by_words(), NOTES)


def _some(texts: Sequence[str], groups: Sequence[Sequence[str]], most: int) -> tuple[list[str], list[str]]:
    """Returns all texts if there are at most ``most``, else the first of as many groups, and the others."""
    if len(texts) <= most:
        return list(texts), []
    shown: list[str] = []
    others: list[str] = []
    for first, *alike in groups:
        if len(shown) < most:
            shown.append(with_others(first, len(alike)))
        else:
            others.append(first)
        others += alike
    return shown, others


def with_others(text: str, others: int) -> str:
    """Returns the first of several texts that are alike, with the number of others."""
    return f"{text} (and {others} more like it)" if others else text
