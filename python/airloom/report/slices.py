"""Slices in a report: their use of the channels, and violations of their grants."""

from __future__ import annotations

from airloom.report.tables import Cell, Table, table
from airloom.results import RunReader
from airloom.results.result import Violation

_WHAT = {
    "channel": "channel not granted",
    "power": "power above the grant",
    "address": "address of another radio",
    "ssid": "SSID of another slice",
    "bssid": "BSSID of another slice",
    "slot": "outside of the slots",
    "setting": "setting outside the grant, refused",
}


def airtime(run: RunReader) -> Table:
    """Returns a table of the channel use of each slice."""
    span = run.details.length_ns
    rows = [
        [one.slice, str(one.channel), str(one.mhz), f"{100 * one.sent_ns / span:.1f} %", f"{one.frames:,}"]
        for one in (run.details.slices if span and not run.is_sweep else ())
    ]
    columns = ["slice", "channel", "MHz", "airtime", "transmissions"]
    return table("slice-airtime", "Slices on the air", columns, rows, numeric=(1, 2, 3, 4))


def violations(run: RunReader) -> Table:
    """Returns a table of violations; empty if there were none."""
    rows: list[list[str | Cell]] = [
        [
            f"{one.t_ns / 1e9:.3f} s",
            one.slice,
            one.radio,
            Cell(_WHAT[one.what], "bad"),
            amount(one),
            str(one.channel),
            f"{one.frames:,}",
            ", ".join(one.concerned) or "-",
        ]
        for one in run.result.violations
    ]
    columns = ["from", "slice", "radio", "violation", "by", "channel", "transmissions", "concerns"]
    more = run.result.violations_unrecorded
    note = f"{more:,} more transmissions were not recorded" if more else ""
    title = "Violations of grants"
    return table("slice-violations", title, columns, rows, numeric=(0, 4, 5, 6), note=note)


def amount(one: Violation) -> str:
    """Returns by how much a grant was violated."""
    if not one.unit:
        return "-"
    return f"{one.amount:+g} dB" if one.unit == "dB" else f"{one.amount:g} {one.unit}"
