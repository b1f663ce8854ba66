"""Radio part of a report: node positions, airtime of the channels, rates and retries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from airloom.report import series
from airloom.report.plots import LINES, finish
from airloom.report.style import Drawing, Ink
from airloom.report.tables import Table, table
from airloom.results import RunReader
from airloom.results.details import RadioLink, RadioUse
from airloom.units.figures import readable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATES = ("transmitting", "receiving", "collided", "busy", "idle")
"""States of a radio's airtime, in the order of the bars."""
NAMED = 60
"""Maximum number of nodes with a name on the map."""
JOINED = 300
"""Maximum number of pairs with a line on the map; the busiest are chosen."""

_MEANING = {
    "transmitting": "sending",
    "receiving": "following a frame that arrived well",
    "collided": "following a frame that arrived broken",
    "busy": "sensing energy that it could not follow",
    "idle": "hearing nothing",
}

Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Way:
    """Trajectory of a radio in order of time; metres, one row for each time."""

    name: str
    places: Places
    channel: str

    @property
    def moved(self) -> bool:
        """True if the position changed."""
        return bool(len(self.places) > 1 and np.ptp(self.places, axis=0).max() > 0)


def drawings(run: RunReader, frame: pd.DataFrame) -> list[Drawing]:
    """Returns all drawings of a run's radios."""
    if run.is_sweep or not run.details.radios:
        return []
    found = [
        _map(ways(run, frame), run.details.radio_links),
        _airtime(run.details.radios),
        _over_time(run, frame, "rate"),
        _over_time(run, frame, "retries"),
    ]
    return [one for one in found if one is not None]


def channel_of(radio: RadioUse) -> str:
    """Returns a radio's channel as text."""
    number = f"channel {radio.channel}, " if radio.channel is not None else ""
    return f"{number}{radio.mhz} MHz"


def ways(run: RunReader, frame: pd.DataFrame) -> list[Way]:
    """Returns the trajectories of all radios with a known position."""
    by_radio: dict[str, dict[str, pd.DataFrame]] = {}
    if len(frame):
        rows = frame[(frame["measurement"] == "radio") & frame["metric"].isin(("x", "y"))]
        for (node, metric), group in rows.groupby(["node", "metric"], observed=True, sort=False):
            ordered = group.sort_values("t_ns", kind="stable")
            by_radio.setdefault(str(node), {})[str(metric)] = ordered
    found = []
    for radio in run.details.radios:
        known = by_radio.get(radio.name, {})
        if "x" in known and "y" in known:
            pair = known["x"].merge(known["y"], on="t_ns", suffixes=("_x", "_y"))
            places = pair[["value_x", "value_y"]].to_numpy(np.float64)
        elif radio.place_m is not None:
            places = np.array([radio.place_m[:2]], dtype=np.float64)
        else:
            continue
        if len(places):
            found.append(Way(radio.name, places, channel_of(radio)))
    return found


def _map(found: list[Way], links: Sequence[RadioLink]) -> Drawing | None:
    if not found:
        return None
    channels = list(dict.fromkeys(way.channel for way in found))
    moved = sum(way.moved for way in found)
    everything = np.concatenate([way.places for way in found])
    wide, high = (max(float(span), 1.0) for span in np.ptp(everything, axis=0))
    height = min(7.0, max(2.2, 9.0 * high / wide + 0.9))
    crowd = len(found) > NAMED
    last = {way.name: way.places[-1] for way in found}
    busiest = sorted((one for one in links if one.attempts), key=lambda one: -one.attempts)[:JOINED]
    joined = [one for one in busiest if one.sender in last and one.receiver in last]

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for link in joined:
            (x1, y1), (x2, y2) = last[link.sender], last[link.receiver]
            axes.plot([x1, x2], [y1, y2], color=ink.faint, linewidth=0.8, alpha=0.5, zorder=1)
        for way in found:
            colour = ink.series[channels.index(way.channel) % len(ink.series)]
            if way.moved:
                axes.plot(
                    way.places[:, 0], way.places[:, 1], color=colour, linewidth=1.2, alpha=0.5, zorder=2
                )
                x, y = way.places[0]
                axes.scatter([x], [y], s=26, facecolor=ink.paper, edgecolor=colour, linewidth=1.2, zorder=3)
        for number, channel in enumerate(channels):
            ends = np.array([way.places[-1] for way in found if way.channel == channel])
            colour = ink.series[number % len(ink.series)]
            axes.scatter(
                ends[:, 0], ends[:, 1], s=16 if crowd else 60, color=colour, edgecolor=ink.paper,
                linewidth=0.8, zorder=4, label=channel,
            )  # fmt: skip
        if not crowd:
            _names(axes, found, ink)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.08, 0.14)
        finish(axes, "east, m", "north, m", ink, len(channels) if len(channels) > 1 else 0)

    told = f"{len(found)} radios on {len(channels)} {'channel' if len(channels) == 1 else 'channels'}"
    caption = f"{told}."
    if moved:
        caption += f" {moved} moved: from the open circle along the line to the dot."
    if joined:
        caption += " Grey lines join radios that sent to each other."
    shown = "; ".join(_told(way) for way in found[:12])
    return Drawing(
        name="radio-map",
        title="Where the radios were",
        alt=f"Map: {told}. {shown}{' and more' if len(found) > 12 else ''}.",
        caption=caption,
        draw=draw,
        size=(9.8, height),
    )


def _told(way: Way) -> str:
    first, last = way.places[0], way.places[-1]
    text = f"{way.name} at {last[0]:.4g} m, {last[1]:.4g} m"
    return f"{text}, from {first[0]:.4g} m, {first[1]:.4g} m" if way.moved else text


def _names(axes: Axes, found: Sequence[Way], ink: Ink) -> None:
    nodes = [way.name.partition(":")[0] for way in found]
    for way, node in zip(found, nodes, strict=True):
        text = way.name if nodes.count(node) > 1 else node
        axes.annotate(
            text, tuple(way.places[-1]), xytext=(0, 6), textcoords="offset points", ha="center",
            va="bottom", fontsize=7.5, color=ink.text, zorder=5,
        )  # fmt: skip


def shares(radio: RadioUse) -> dict[str, float]:
    """Returns the shares of a radio's time by state."""
    total = sum(radio.airtime_ns.values())
    return {state: radio.airtime_ns.get(state, 0) / total if total else 0.0 for state in STATES}


def _airtime(radios: Sequence[RadioUse]) -> Drawing | None:
    by_channel: dict[tuple[str, str], list[dict[str, float]]] = {}
    for radio in sorted(radios, key=lambda one: one.mhz):
        if sum(radio.airtime_ns.values()):
            by_channel.setdefault((radio.medium, channel_of(radio)), []).append(shares(radio))
    if not by_channel:
        return None
    media = {medium for medium, _ in by_channel}
    labels = [channel if len(media) == 1 else f"{medium}: {channel}" for medium, channel in by_channel]
    means = {
        state: [float(np.mean([one[state] for one in group])) for group in by_channel.values()]
        for state in STATES
    }

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        colours = (ink.series[0], ink.series[2], ink.bad, ink.series[4], ink.grid)
        left = np.zeros(len(labels))
        for state, colour in zip(STATES, colours, strict=True):
            width = np.array(means[state]) * 100
            axes.barh(labels, width, left=left, color=colour, label=state, height=0.62)
            for row, (start, wide) in enumerate(zip(left, width, strict=True)):
                if wide >= 7:
                    text_colour = ink.text if state == "idle" else ink.paper
                    axes.text(
                        start + wide / 2, row, f"{wide:.0f} %", ha="center", va="center", fontsize=7.5,
                        color=text_colour,
                    )  # fmt: skip
            left += width
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.grid(axis="y", visible=False)
        finish(axes, "share of the time, %", "", ink, len(STATES))
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=len(STATES),
            borderaxespad=0.2,
            labelcolor=ink.text,
        )

    words = [
        f"{label}: " + ", ".join(f"{state} {100 * means[state][row]:.1f} %" for state in STATES)
        for row, label in enumerate(labels[:16])
    ]
    return Drawing(
        name="radio-airtime",
        title="Airtime by channel",
        alt=f"Airtime, mean over the radios of each channel. {'; '.join(words)}.",
        caption="Mean over the radios of each channel. "
        + "; ".join(f"{state}: {meaning}" for state, meaning in _MEANING.items())
        + ".",
        draw=draw,
        size=(9.8, min(9.0, 1.5 + 0.36 * len(labels))),
    )


def _over_time(run: RunReader, frame: pd.DataFrame, metric: str) -> Drawing | None:
    """Returns the rate, or the share of retries, of the busiest pairs over time."""
    if not len(frame):
        return None
    rows = frame[(frame["measurement"] == "radio-link") & (frame["metric"] == metric)]
    if not len(rows):
        return None
    attempts = {f"{one.sender}>{one.receiver}": one.attempts for one in run.details.radio_links}
    there = sorted(rows["node"].astype(str).unique(), key=lambda name: (-attempts.get(name, 0), name))
    factor, unit = (1e6, "Mbit/s") if metric == "rate" else (0.01, "%")
    lines = []
    for name in there[:LINES]:
        own = rows[rows["node"] == name].sort_values("t_ns", kind="stable")
        shape = series.envelope(own["t_ns"].to_numpy(np.int64), own["value"].to_numpy(np.float64) / factor)
        lines.append((name, shape))

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for number, (name, shape) in enumerate(lines):
            # A rate holds until the next one; a share describes the interval that ends.
            style = "steps-post" if metric == "rate" else "default"
            axes.plot(
                shape.t_s, shape.mean, color=ink.series[number], label=pair(name), linewidth=1.3,
                drawstyle=style,
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        finish(axes, "time, s", f"{metric}, {unit}", ink, len(lines))

    more = f" The {LINES} busiest of {len(there)} pairs." if len(there) > LINES else ""
    told = "; ".join(
        f"{pair(name)}: {float(np.min(shape.low)):.4g} to {float(np.max(shape.high)):.4g} {unit}"
        for name, shape in lines
    )
    title = "Rate chosen for each pair" if metric == "rate" else "Transmissions without an answer"
    return Drawing(
        name=f"radio-{metric}",
        title=title,
        alt=f"{title} over time. {told}.",
        caption=("What a sender's rate control chose." if metric == "rate" else "Share of a pair's attempts.")
        + more,
        draw=draw,
    )


def pair(name: str) -> str:
    """Returns a pair of radios in readable form."""
    return name.replace(">", " to ")


def radios(run: RunReader) -> Table:
    """Returns a table of every radio with its airtime and counts."""
    columns = ["radio", "MHz", "sending", "receiving", "collided", "busy", "sent", "no answer"]
    rows = []
    for one in run.details.radios if not run.is_sweep else ():
        part = shares(one)
        rows.append(
            [
                one.name,
                str(one.mhz),
                *(f"{100 * part[state]:.1f} %" for state in STATES[:-1]),
                f"{one.counts.get('sent', 0):,}",
                f"{one.counts.get('unanswered', 0):,}",
            ]
        )
    note = "Shares of the time; transmissions sent, repeated ones included, and those without an answer."
    numeric = tuple(range(1, len(columns)))
    return table("radios", "Radios", columns, rows, numeric=numeric, note=note if rows else "")


def links(run: RunReader) -> Table:
    """Returns a table of the frames from each radio to each other."""
    found = sorted(run.details.radio_links if not run.is_sweep else (), key=lambda one: -one.attempts)
    rows = [
        [
            one.sender,
            one.receiver,
            f"{one.attempts:,}",
            f"{one.unanswered:,}",
            f"{100 * one.unanswered / one.attempts:.1f} %" if one.attempts else "-",
            readable(float(one.rate_bit_s), "bit/s") if one.rate_bit_s is not None else "-",
        ]
        for one in found
    ]
    columns = ["from", "to", "attempts", "unanswered", "share", "rate"]
    return table("radio-links", "Radio links", columns, rows, numeric=(2, 3, 4, 5))


def channels(run: RunReader) -> Table:
    """Returns a table of channel use, over all positions of its radios."""
    details = run.details
    span = max((sum(one.airtime_ns.values()) for one in details.radios), default=0)
    rows = []
    for one in details.channels if span and not run.is_sweep else ():
        busy, overlapped = (one.airtime_ns.get(word, 0) / span for word in ("busy", "overlapped"))
        used = [f"{100 * share:.1f} %" for share in (busy, overlapped)]
        rows.append([one.medium, str(one.channel), str(one.mhz), *used, f"{one.frames:,}"])
    columns = ["medium", "channel", "MHz", "in use", "by several at once", "transmissions"]
    return table("radio-channels", "Channels", columns, rows, numeric=(1, 2, 3, 4, 5))
