"""Times and lengths on the command line, as calls write them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, TypeVar

from airloom.errors import ScenarioError
from airloom.grid.inventory import SECOND
from airloom.grid.lengths import WindowLength
from airloom.grid.messages import stamp, written
from airloom.units.reading import UnitError

Quantity = TypeVar("Quantity")


def now() -> str:
    """Returns the time."""
    return written(int(time.time()))


def moment(text: str, where: str) -> str:
    """Returns a time with a time zone; without one it is this machine's."""
    try:
        return written(stamp(datetime.fromisoformat(text).astimezone()))
    except (ValueError, OverflowError):
        cure = "write it like 2026-12-01T09:00 or 2026-12-01T09:00+01:00"
        raise ScenarioError("time.syntax", f"{text[:40]!r} is not a time", where=where, cure=cure) from None


def window(start: str | None, duration: str) -> tuple[str | None, str]:
    """Returns start, None for now, and end of a window of a given length."""
    length = int(quantity(WindowLength, duration, "--for")) // SECOND
    if length < 1:
        raise ScenarioError("window.empty", f"{duration!r} is less than a second", where="--for")
    begin = None if start is None else moment(start, "--start")
    first = time.time() if begin is None else stamp(datetime.fromisoformat(begin))
    return begin, written(int(first) + length)


def shown(text: str) -> str:
    """Returns a time of the manager in this machine's zone, with UTC in a second line where they differ."""
    when = datetime.fromisoformat(text)
    utc = f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    local = when.astimezone()
    if not local.utcoffset():
        return utc
    name = f"{local:%Z}"
    zone = name if name.isalpha() else f"UTC{local.isoformat()[-6:]}"
    return f"{local:%Y-%m-%d %H:%M:%S} {zone}\n{utc}"


def span(start: str, end: str) -> str:
    """Returns start and end to the minute in a narrow column: in this machine's zone, then UTC."""

    def minute(line: str) -> str:
        date, clock, zone = line.split(" ")
        return f"{date} {clock[:5]} {zone}"

    pairs = zip(shown(start).splitlines(), shown(end).splitlines(), strict=True)
    return "\n".join(f"{minute(a).rpartition(' ')[0]} to\n{minute(b)}" for a, b in pairs)


def quantity(kind: type[Quantity], text: str, where: str) -> Quantity:
    """Returns a quantity with its unit."""
    try:
        make: Any = kind
        made: Quantity = make(text)
        return made
    except UnitError as error:
        raise ScenarioError(error.code, error.message, where=where, cure=error.cure) from None


def corners(text: str) -> list[float]:
    """Returns least x and y and largest x and y of ``X,Y,X,Y``, in metres."""
    try:
        one, two, three, four = (float(part) for part in text.split(","))
    except ValueError:
        cure = "write it like 0,0,5,5"
        raise ScenarioError("area.syntax", f"{text[:40]!r} is no area", where="--area", cure=cure) from None
    return [min(one, three), min(two, four), max(one, three), max(two, four)]
