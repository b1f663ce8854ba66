"""A text view of the radio media of a live laboratory: map, channels and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airloom.units.figures import readable

COLUMNS, ROWS = 64, 16
"""Size of the map in characters."""
BAR = 40
"""Length of a channel's bar in characters."""
NAMED = 40
"""Most radios with names on the map."""
MOST = 20
"""Most pairs in the list: the busiest."""


@dataclass(frozen=True, slots=True)
class Look:
    """Radios and channels at one moment, as ``Engine.radios`` and ``Engine.channels`` return them."""

    at: int
    """Engine time in nanoseconds."""
    radios: Sequence[Mapping[str, Any]]
    channels: Sequence[Mapping[str, Any]]


def view(looks: Sequence[Look]) -> list[str]:
    """Returns the lines of a view of the last look.

    The map shows paths since the first look; channels and pairs show changes since the previous
    one.
    """
    return [*_map(looks), "", *_channels(*looks[-2:]), "", *_pairs(*looks[-2:])]


def _map(looks: Sequence[Look]) -> list[str]:
    places = [[tuple(radio["position"][:2]) for radio in look.radios] for look in looks]
    every = [place for row in places for place in row]
    low = [min(place[axis] for place in every) for axis in (0, 1)]
    high = [max(place[axis] for place in every) for axis in (0, 1)]
    field = [[" "] * COLUMNS for _ in range(ROWS)]

    def cell(place: tuple[float, ...]) -> tuple[int, int]:
        share = [
            (place[axis] - low[axis]) / (high[axis] - low[axis]) if high[axis] > low[axis] else 0.5
            for axis in (0, 1)
        ]
        return round((1 - share[1]) * (ROWS - 1)), round(share[0] * (COLUMNS - 1))

    for place in (place for row in places[:-1] for place in row):
        line, column = cell(place)
        field[line][column] = "."
    last = looks[-1].radios
    for radio, place in zip(last, places[-1], strict=True):
        line, column = cell(place)
        name = radio["port"].partition(":")[0] if len(last) <= NAMED else "o"
        start = min(column, COLUMNS - len(name))
        for letter, at in zip(name, range(max(start, 0), COLUMNS), strict=False):
            field[line][at] = letter
    east, north = (f"{low[axis]:.4g} to {high[axis]:.4g} m" for axis in (0, 1))
    lines = ["|" + "".join(line) + "|" for line in field]
    return [f"at {looks[-1].at / 1e9:.1f} s; {east} east, {north} north", *lines]


def _channels(before: Look, now: Look) -> list[str]:
    span = max(1, now.at - before.at)
    old = {(one["medium"], one["mhz"]): one for one in before.channels}
    lines = []
    for one in now.channels:
        was = old.get((one["medium"], one["mhz"]), {"busy": 0, "overlapped": 0, "frames": 0})
        busy, overlapped = ((one[key] - was[key]) / span for key in ("busy", "overlapped"))
        crossed = round(min(1.0, overlapped) * BAR)
        filled = max(crossed, round(min(1.0, busy) * BAR))
        bar = ("#" * (filled - crossed) + "x" * crossed).ljust(BAR, ".")
        frames = (one["frames"] - was["frames"]) * 1e9 / span
        lines.append(
            f"{one['medium']} channel {one['channel']:<3} [{bar}] busy {100 * busy:.0f} %, "
            f"overlapping {100 * overlapped:.0f} %, {frames:.0f} frames/s"
        )
    return lines or ["no channel was used"]


def _pairs(before: Look, now: Look) -> list[str]:
    span = max(1, now.at - before.at)
    old = {radio["port"]: radio["peers"] for radio in before.radios}
    found = []
    for radio in now.radios:
        for other, peer in radio["peers"].items():
            was = old.get(radio["port"], {}).get(other, {"attempts": 0, "unanswered": 0})
            attempts = peer["attempts"] - was["attempts"]
            if attempts:
                # A frame on the air now is acknowledged, or not, after this look.
                retries = min(1.0, (peer["unanswered"] - was["unanswered"]) / attempts)
                found.append((attempts * 1e9 / span, retries, peer["rate"], radio["port"], other))
    found.sort(key=lambda pair: -pair[0])
    lines = [
        f"{sender} > {receiver}: {readable(rate, 'bit/s')}, {frames:.0f} frames/s, "
        f"retries {100 * retries:.0f} %"
        for frames, retries, rate, sender, receiver in found[:MOST]
    ]
    if len(found) > MOST:
        lines.append(f"and {len(found) - MOST} more pairs")
    return lines or ["no unicast frames"]
