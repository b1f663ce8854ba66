"""Control channels in a report: their OpenFlow messages, and the time to answers of controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airloom.report.plots import LINES, finish
from airloom.report.style import Drawing, Ink
from airloom.report.tables import Cell, Table, table
from airloom.results import RunReader
from airloom.units.figures import readable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SWITCHES = 6
"""Maximum number of switches in the plot."""


def messages(run: RunReader) -> Table:
    """Returns a table of all messages by switch, direction and type; errors by name."""
    rows: list[list[str | Cell]] = [
        [
            one.switch,
            one.controller,
            one.sender,
            Cell(f"{one.message}: {one.error}", "bad") if one.error else one.message,
            one.version,
            f"{one.count:,}",
            f"{one.octets:,}",
            f"{one.first_ns / 1e9:.3f} s",
            f"{one.last_ns / 1e9:.3f} s",
        ]
        for one in (() if run.is_sweep else run.details.control)
    ]
    columns = ["switch", "controller", "from", "message", "OpenFlow", "count", "octets", "first", "last"]
    note = "Times before 0 s: while the laboratory came up."
    return table("openflow", "OpenFlow messages", columns, rows, numeric=(5, 6, 7, 8), note=note)


def answers(run: RunReader) -> Table:
    """Returns a table of the time from PACKET_IN to the answers."""
    rows: list[list[str | Cell]] = [
        [
            one.switch,
            one.controller,
            f"{one.asked:,}",
            "-" if one.asked_per_s is None else f"{one.asked_per_s:.4g} /s",
            one.answer,
            f"{one.answered:,}",
            *("-" if at is None else readable(at, "ns") for at in (one.median_ns, one.p99_ns, one.max_ns)),
            ", ".join(one.found_by) or "-",
        ]
        for one in (() if run.is_sweep else run.details.control_answers)
    ]
    columns = [
        *("switch", "controller", "PACKET_IN", "rate", "answer", "answered"),
        *("median", "99 %", "largest", "found by"),
    ]
    note = (
        "Time at the switch from PACKET_IN to its answer. An answer is found by the buffer, by the same "
        "frame, or by addresses in the match that are the frame's; the last gives a lower bound."
    )
    numeric = (2, 3, 5, 6, 7, 8)
    return table("openflow-answers", "Answers of controllers", columns, rows, numeric=numeric, note=note)


def drawing(run: RunReader, frame: pd.DataFrame) -> Drawing | None:
    """Returns the rate of the messages over time, one part for each of the busiest switches."""
    if run.is_sweep or not len(frame):
        return None
    rows = frame[frame["measurement"] == "control"]
    if not len(rows):
        return None
    total = {(one.switch, one.message): 0 for one in run.details.control}
    for one in run.details.control:
        total[(one.switch, one.message)] += one.count
    by_switch: dict[str, int] = {}
    for (switch, _), count in total.items():
        by_switch[switch] = by_switch.get(switch, 0) + count
    shown = sorted(by_switch, key=lambda name: (-by_switch[name], name))[:SWITCHES]
    present = set(rows["metric"].astype(str))
    busiest = sorted(present, key=lambda name: -sum(n for (_, one), n in total.items() if one == name))
    types = busiest[:LINES]

    def part(axes: Axes, switch: str, ink: Ink, legend: bool) -> None:
        own = rows[rows["node"] == switch]
        base = np.zeros(1)
        for number, name in enumerate(types):
            line = own[own["metric"] == name].sort_values("t_ns", kind="stable")
            # All series of a switch have the same intervals, each named by its end.
            rate = line["value"].to_numpy(np.float64) if len(line) else np.zeros(1)
            ends = line["t_ns"].to_numpy(np.float64) / 1e9 if len(line) else np.zeros(1)
            top = base + rate
            axes.fill_between(
                ends, np.broadcast_to(base, top.shape), top, step="pre", color=ink.series[number],
                linewidth=0, label=name,
            )  # fmt: skip
            base = top if len(line) else base
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        last = switch == shown[-1]
        finish(axes, "time, s" if last else "", f"{switch}, /s", ink, len(types) if legend else 0)

    def draw(figure: Figure, ink: Ink) -> None:
        parts = figure.subplots(len(shown), 1, sharex=True, squeeze=False)
        for axes, switch in zip(parts[:, 0], shown, strict=True):
            part(axes, switch, ink, legend=switch == shown[0])

    told = "; ".join(f"{switch}: {by_switch[switch]:,} messages" for switch in shown)
    more = len(by_switch) - len(shown)
    return Drawing(
        name="openflow",
        title="OpenFlow messages over time",
        alt=f"Rate of the OpenFlow messages over time. {told}.",
        caption="Messages of all controllers of a switch, stacked by type."
        + (f" The {SWITCHES} busiest of {len(by_switch)} switches." if more else ""),
        draw=draw,
        size=(9.8, 1.2 + 1.9 * len(shown)),
    )
