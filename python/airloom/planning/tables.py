"""Reads files of numbers: rate traces, delays, packets, intervals and frame error rates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from airloom.errors import ScenarioError
from airloom.host.files import content, head
from airloom.planning.links.link_settings import LARGEST_PACKET, TUNNEL_OVERHEAD, RateTrace
from airloom.scenario import formats
from airloom.units.quantities import Duration
from airloom.units.reading import UnitError

MAHIMAHI_OCTETS = LARGEST_PACKET + TUNNEL_OVERHEAD
"""Octets sent at each opportunity of a mahimahi trace: a packet of 1500 and 4 of its tunnel's header."""

LARGEST = 64 * 2**20
"""Largest file, in octets."""
_PACKET = re.compile(r"\+?([0-9]{1,19})[ \t]+\+?([0-9]{1,10})", re.ASCII)


class TableError(ScenarioError):
    """A file is unreadable or malformed."""


def text(path: str) -> str:
    """Returns the content of a text file in another format."""
    try:
        return content(path, LARGEST).decode("utf-8", "replace")
    except OSError as error:
        name = Path(path).name
        raise TableError("file.unreadable", f"{name} cannot be read: {error.strerror}") from None


def lines(path: str) -> list[tuple[str, str]]:
    """Returns the lines that are neither empty nor comments, each with its place."""
    name = Path(path).name
    try:
        rows = content(path, LARGEST).decode("ascii").split("\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not plain text"
        raise TableError("file.unreadable", f"{name} cannot be read: {reason}") from None
    plain = ((number, line.split("#")[0].strip()) for number, line in enumerate(rows, 1))
    return [(f"{name}, line {number}", line) for number, line in plain if line]


def must_be(path: str, wanted: str) -> None:
    """Refuses a file of a known format that another key reads, or none."""
    try:
        form = formats.recognise(head(path, 4096))
    except (OSError, ValueError):
        return
    if form is not None and form.reads != wanted:
        message, cure = formats.refusal(form, wanted)
        raise TableError("file.format", message, cure=cure)


def trace(path: str) -> RateTrace:
    """Reads a mahimahi trace: each line is a millisecond at which one packet may leave.

    Lines ascend; the last one is the period of repetition. Lines that begin with ``#`` are
    comments.
    """
    must_be(path, formats.RATE)
    moments: list[int] = []
    for place, line in lines(path):
        if not re.fullmatch(r"[0-9]{1,12}", line):
            raise TableError("trace.syntax", f"{place}: {line[:40]!r} is not a number of milliseconds")
        moments.append(int(line) * 1_000_000)
        if len(moments) > 1 and moments[-1] < moments[-2]:
            raise TableError("trace.syntax", f"{place}: earlier than the line before")
    if not moments or moments[-1] == 0:
        name = Path(path).name
        raise TableError(
            "trace.syntax", f"{name} has no length", cure="the last line gives the period in ms, above 0"
        )
    return RateTrace(tuple(moments), moments[-1], MAHIMAHI_OCTETS, path)


def packets(path: str, least: int, most: int) -> None:
    """Checks a packet trace for ``airloom-traffic``: lines of ``time_ns octets``, in time order."""
    last = -1
    for place, line in lines(path):
        match = _PACKET.fullmatch(line)
        if match is None or not least <= int(match[2]) <= most or int(match[1]) >= 2**62:
            raise TableError(
                "trace.syntax",
                f"{place}: {line[:40]!r} is no packet of {least} to {most} octets",
                cure="write a line `time_ns octets` for each packet, such as 1000000 1470",
            )
        if int(match[1]) < last:
            raise TableError("trace.syntax", f"{place}: earlier than the line before")
        last = int(match[1])
    if last < 0:
        raise TableError("trace.syntax", f"{Path(path).name} has no packet")


def delays(path: str) -> list[int]:
    """Returns deviations from a link's delay in ns, ascending; one duration a line, of either sign."""
    values: list[int] = []
    for place, line in lines(path):
        sign = -1 if line.startswith("-") else 1
        try:
            values.append(sign * Duration(line.removeprefix("-")))
        except UnitError as error:
            raise TableError("table.syntax", f"{place}: {error.message}", cure=error.cure) from None
    if len(values) < 2:
        raise TableError("table.syntax", f"{Path(path).name} has fewer than two values")
    return sorted(values)


def intervals(path: str) -> list[tuple[Duration, Duration]]:
    """Reads intervals of time: lines of ``START, END``, each with its unit."""
    found: list[tuple[Duration, Duration]] = []
    for place, line in lines(path):
        start, _, end = line.partition(",")
        try:
            found.append((Duration(start), Duration(end)))
        except UnitError as error:
            cure = "write a line `START, END` for each interval, such as 0 s, 90 s"
            raise TableError("trace.syntax", f"{place}: {error.message}", cure=cure) from None
    if not found:
        raise TableError("trace.syntax", f"{Path(path).name} has no interval")
    return found


def frame_errors(path: str) -> list[dict[str, Any]]:
    """Reads measured frame error rates: lines of ``phy, Mbit/s, octets, dB, frame error rate``.

    Lines with the same first three values form one curve, in ascending order of the ratio in dB.
    """
    curves: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for place, line in lines(path):
        words = [word.strip() for word in line.split(",")]
        try:
            phy, rate, octets, ratio, lost = words
            key = (phy, round(float(rate) * 1e6), int(octets))
            point = (float(ratio), float(lost))
        except (ValueError, OverflowError):
            raise TableError(
                "table.syntax",
                f"{place}: {line[:60]!r} is no point of a curve",
                cure="write it like 802.11a, 54, 1500, 22.5, 0.1",
            ) from None
        curves.setdefault(key, []).append(point)
    return [
        {"phy": phy, "rate": rate, "octets": octets, "points": sorted(points)}
        for (phy, rate, octets), points in curves.items()
    ]
