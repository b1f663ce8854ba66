"""Every table of a run, in the order of the page."""

from __future__ import annotations

from airloom.report import radio, tables
from airloom.report.in_force import in_force
from airloom.report.tables import Table
from airloom.results import RunReader


def all_tables(run: RunReader) -> list[Table]:
    """Returns every table with rows, in the order of the page."""
    built = (
        tables.first_figures(run),
        tables.measurements(run),
        in_force(run),
        tables.guidance(run),
        tables.claims(run),
        tables.points(run),
        tables.ledger(run),
        tables.links(run),
        radio.channels(run),
        radio.radios(run),
        radio.links(run),
        tables.nodes(run),
        tables.profile(run),
        tables.programs(run),
    )
    return [one for one in built if one.rows]
