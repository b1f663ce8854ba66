"""Calibrations as a table."""

from __future__ import annotations

from collections.abc import Callable

from airloom.calibration.model import PAIRS, Calibration, Figure
from airloom.report.tables import Cell, Table, table


def overview(made: list[Calibration]) -> Table:
    """Returns calibrations side by side: a row for each figure, a column for each kind."""

    def shown(figure: Figure, scale: float = 1.0) -> str:
        digits = 0 if scale == 1 else 1
        text = f"{figure.value / scale:,.{digits}f}"
        return text if figure.half_width is None else f"{text} +- {figure.half_width / scale:,.{digits}f}"

    def row(name: str, figure: Callable[[Calibration], str]) -> list[str | Cell]:
        return [name, *map(figure, made)]

    rows = [
        row("ceiling of one pair, packets/s", lambda one: shown(one.ceilings[1])),
        row("  of the native ceiling", lambda one: f"{one.ceilings[1].value / one.native_ceiling.value:.2f}"),
        row(f"{PAIRS[-1]} pairs at once, each", lambda one: shown(one.ceilings[PAIRS[-1]])),
        row("added to the mean delay, us", lambda one: shown(one.delay_ns, 1e3)),
        row("added to the mean jitter, us", lambda one: shown(one.jitter_ns, 1e3)),
        row("standard deviation of the delay, us", lambda one: shown(one.spread_ns, 1e3)),
        row("cost of a packet, us of a processor", lambda one: shown(one.cost_ns, 1e3)),
    ]
    return table(
        "calibration",
        "What kinds of nodes do to packets on this machine",
        ["", *(one.kind for one in made)],
        rows,
        numeric=range(1, len(made) + 1),
        note="Frames of 64 octets, at most 1 % lost. +- is half of the 95 % interval over the rounds.",
    )
