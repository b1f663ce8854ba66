"""Every table of a run, in the order of the page."""

from __future__ import annotations

from airloom.report import control, grid, radio, slices, sweeps, tables
from airloom.report.in_force import in_force
from airloom.report.tables import Table
from airloom.results import RunReader


def all_tables(run: RunReader) -> list[Table]:
    """Returns every table with rows, in the order of the page."""
    built = (
        *(_of_sweep(run) if run.is_sweep else (tables.first_figures(run),)),
        tables.measurements(run),
        in_force(run),
        tables.guidance(run),
        tables.claims(run),
        tables.repeated(run),
        tables.points(run),
        tables.ledger(run),
        tables.links(run),
        slices.violations(run),
        slices.airtime(run),
        radio.channels(run),
        radio.radios(run),
        radio.links(run),
        control.messages(run),
        control.answers(run),
        tables.nodes(run),
        tables.profile(run),
        tables.programs(run),
    )
    return [one for one in built if one.rows]


def _of_sweep(run: RunReader) -> list[Table]:
    """Returns the pivot table of each measured quantity."""
    whole = grid.of_sweep(run)
    return [sweeps.table(whole, one) for one in sweeps.quantities(whole)]
