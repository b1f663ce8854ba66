"""Tables of measured paths: the rate, delay, loss and jitter of a link over time.

The first line names the columns, ``time`` and at least one of ``rate``, ``delay``, ``loss`` and
``jitter``, with the unit of plain numbers in brackets or behind ``_``::

    time [s], rate [Mbit/s], delay [ms], loss [%]
    0.00, 12.5, 20, 0
    0.02, 8,    31, 0.1

Values may have their own units instead. Columns are separated by commas, semicolons, tabs or blanks;
an empty value and ``-`` mean that of the row before. ``jitter`` is half the width of a uniform jitter.
Each row holds from its time on, the last one to the end of the run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from airloom.planning.network import Network
from airloom.planning.tables import TableError, lines, must_be
from airloom.scenario import formats
from airloom.scenario.model import Direction, UniformJitter
from airloom.units.quantities import Duration, Rate
from airloom.units.reading import UnitError

COLUMNS = ("time", "rate", "delay", "loss", "jitter")
MOST_ROWS = 1_000_000
"""Largest number of rows of a table."""
_SHARES = {"%": 100.0, "percent": 100.0, "": 1.0}
_UNITS = {"rate": Rate.UNITS, "delay": Duration.UNITS, "jitter": Duration.UNITS, "time": Duration.UNITS}
_HEAD = re.compile(r"([A-Za-z]+)(?:\s*[\[(]\s*([^\])]+?)\s*[\])]|_(\S+))?")
_LONGEST_HEAD = 1000
"""Characters of the first line: its expression takes the square of them."""
_CURE = "begin with the columns and their units, such as: time [s], rate [Mbit/s], delay [ms], loss [%]"


@dataclass(frozen=True, slots=True)
class Row:
    """The properties that a link has from a time (ns) on; others stay."""

    at: int
    said: Direction
    line: str
    """Place in the file."""


@lru_cache(maxsize=32)
def read(path: str) -> tuple[Row, ...]:
    """Returns the rows of a table in time order; raises :class:`TableError`."""
    must_be(path, formats.SERIES)
    found: list[Row] = []
    head: list[tuple[str, str]] = []
    comma = ""
    for place, line in lines(path):
        if not head:
            if len(line) > _LONGEST_HEAD:
                raise TableError("series.syntax", f"{place}: it is no line of columns", cure=_CURE)
            comma = next((sign for sign in ",;\t" if sign in line), "")
            head = _columns(place, line, comma)
            continue
        values = [one.strip() for one in line.split(comma)] if comma else line.split()
        if comma == "\t":
            # Empty values at the end of a line are stripped with its end.
            values += [""] * (len(head) - len(values))
        if len(values) != len(head):
            raise TableError(
                "series.syntax", f"{place}: {len(values)} values stand under {len(head)} columns", cure=_CURE
            )
        row = _row(place, dict(zip((name for name, _ in head), values, strict=True)), dict(head))
        if found and row.at <= found[-1].at:
            raise TableError("series.syntax", f"{place}: its time is not after that of the row before")
        found.append(row)
        if len(found) > MOST_ROWS:
            raise TableError("series.syntax", f"{Path(path).name} has more than {MOST_ROWS} rows")
    if not found:
        raise TableError("series.syntax", f"{Path(path).name} has no row", cure=_CURE)
    return tuple(found)


def notes(network: Network) -> list[str]:
    """Returns what holds when a table ends, for each link that follows one."""
    found: dict[str, list[str]] = {}
    for wire in network.wires:
        for file in dict.fromkeys((wire.forward.series, wire.backward.series)):
            if file is not None:
                found.setdefault(file, []).append(wire.name)
    texts = []
    for file, names in found.items():
        rows = read(file)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        last = Duration(rows[-1].at).text
        texts.append(
            f"{', '.join(names[:3])}{more}: {len(rows)} rows of {Path(file).name}, of which the last holds "
            f"from {last} on"
        )
    return texts


def _columns(place: str, line: str, comma: str) -> list[tuple[str, str]]:
    """Returns name and unit of each column."""
    words = line.split(comma) if comma else [one[0] for one in _HEAD.finditer(line)]
    found: list[tuple[str, str]] = []
    for word in words:
        match = _HEAD.fullmatch(word.strip())
        name = match[1].lower() if match is not None else ""
        if match is None or name not in COLUMNS or name in [before for before, _ in found]:
            raise TableError(
                "series.syntax", f"{place}: {word.strip()[:40]!r} is no column, or stands twice", cure=_CURE
            )
        unit = match[2] or match[3] or ""
        known = list(_SHARES) if name == "loss" else list(_UNITS[name])
        if unit and unit not in known:
            raise TableError(
                "series.unit",
                f"{place}: {unit!r} is no unit of {name}",
                cure=f"units are {' '.join(one for one in known if one)}",
            )
        found.append((name, unit))
    names = [name for name, _ in found]
    if "time" not in names or len(names) < 2:
        raise TableError("series.syntax", f"{place}: it needs the column time and one more", cure=_CURE)
    return found


def _row(place: str, values: dict[str, str], units: dict[str, str]) -> Row:
    said: dict[str, Any] = {}
    for name, value in values.items():
        if value not in ("", "-") or name == "time":
            said[name] = _value(place, name, value, units[name])
    at = said.pop("time")
    if "jitter" in said:
        width = said["jitter"]
        said["jitter"] = UniformJitter(uniform=width) if width else "none"
    if said.get("rate") == 0:
        raise TableError(
            "series.rate",
            f"{place}: a rate of 0 lets nothing through for ever",
            cure="write the lowest rate, or say when the link is down by 'visibility'",
        )
    try:
        return Row(int(at), Direction.model_validate(said), place)
    except ValidationError as error:
        raise TableError("series.syntax", f"{place}: {error.errors()[0]['msg']}") from None


def _value(place: str, name: str, text: str, unit: str) -> Any:
    if name == "loss":
        number = text.removesuffix("%").strip()
        try:
            share = float(number) / (100 if text.endswith("%") else _SHARES[unit])
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise TableError("series.syntax", f"{place}: {text[:40]!r} is no loss", cure="0 to 100 %")
        return share
    kind = Rate if name == "rate" else Duration
    plain = re.fullmatch(r"[+]?(?:\d++(?:\.\d*+)?|\.\d+)(?:[eE][+-]?\d{1,2})?", text)
    try:
        if plain is not None and unit:
            # Measured numbers have more digits than there are bits or nanoseconds.
            scaled = float(text) * float(kind.UNITS[unit])
            if scaled >= 2**63:
                raise TableError("series.range", f"{place}: {text[:40]!r} is beyond every {name}", cure=_CURE)
            return kind(round(scaled))
        return kind(text)
    except UnitError as error:
        raise TableError("series.unit", f"{place}: {error.message}", cure=_CURE) from None
