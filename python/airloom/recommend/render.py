"""A recommendation on the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from airloom.recommend.trials import Answer, Corrected, Recommendation
from airloom.units.figures import of_metric, readable

_TONES = {"harmless": "green", "correctable": "yellow", "unusable": "red"}
_STATUS = {"valid": "green", "degraded": "yellow", "invalid": "red"}


def render(found: Recommendation) -> RenderableType:
    """Returns the kinds side by side, the figures with their corrections, and the choice."""
    parts: list[RenderableType] = []
    if found.answers:
        parts += [_kinds(found), Text(), _reasons(found), Text()]
        figures = [(answer, one) for answer in found.answers for one in answer.figures]
        if figures:
            parts += [_figures(figures), Text()]
    parts += [Text(f"not tried: {kind}: {why}", style="dim") for kind, why in found.left_out.items()]
    choice = Text.assemble(("recommended: ", "bold"), (found.kind or "no kind", "bold"), f": {found.why}")
    return Group(*parts, choice)


def _kinds(found: Recommendation) -> RichTable:
    drawn = _drawn(f"Kinds of nodes for {found.scenario}", "", *(one.kind for one in found.answers))
    drawn.add_row("trial", *(Text(one.status, style=_STATUS[one.status]) for one in found.answers))
    drawn.add_row("calibration", *(one.calibration for one in found.answers))
    drawn.add_row("nodes carried", *(_carried(one) for one in found.answers))
    drawn.add_row("latency bound, harmless from", *(_bound(one, 0) for one in found.answers))
    drawn.add_row("  with subtraction from", *(_bound(one, 1) for one in found.answers))
    for judgement in found.answers[0].classes:
        name = judgement.experiment
        verdicts = [one.verdict(name) for one in found.answers]
        mark = " *" if name in found.relevant else ""
        drawn.add_row(name + mark, *(Text(one, style=_TONES[one]) for one in verdicts))
    drawn.caption = "* classes of this scenario's measurements"
    drawn.caption_justify = "left"
    return drawn


def _carried(one: Answer) -> str:
    return f"{one.carried.nodes:,} ({one.carried.limit})"


def _bound(one: Answer, which: int) -> str:
    return "unknown" if one.latency_ns is None else readable(one.latency_ns[which], "ns")


def _reasons(found: Recommendation) -> RenderableType:
    drawn = _drawn("Why", "kind", "class", "reason, and formula of a correction")
    for answer in found.answers:
        for reason in answer.reasons:
            drawn.add_row(answer.kind, "trial", reason)
        for one in answer.classes:
            formula = f"; {one.formula}" if one.formula else ""
            drawn.add_row(answer.kind, one.experiment, f"{one.why}{formula}")
    return drawn


def _figures(found: list[tuple[Answer, Corrected]]) -> RichTable:
    drawn = _drawn("Figures of the trials", "kind", "figure", "measured", "verdict", "corrected", "native")
    for answer, one in found:
        said = one.advice

        def shown(value: float, metric: str = said.metric, unit: str = said.unit) -> str:
            return of_metric(metric, value, unit)

        drawn.add_row(
            answer.kind,
            f"{said.measurement} {said.metric.replace('_', ' ')}",
            shown(said.value),
            Text(said.verdict, style=_TONES[said.verdict]),
            "" if said.corrected is None
            else f"{shown(said.corrected)} +- {shown(said.half_width or 0.0)}",
            "" if one.native is None else shown(one.native),
        )  # fmt: skip
    return drawn


def _drawn(title: str, *columns: str) -> RichTable:
    drawn = RichTable(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn
