"""Rates and durations as other tools write them: ``100 Mbit``, ``1 gigabit``, ``50ms``, ``10 us``.

Airloom's own words are units with ``/s``; files of Shadow, tc and containerlab leave it out. Bits are
meant everywhere; octets (``MBps``, ``KiB``) are refused, because tools differ in what they mean.
"""

from __future__ import annotations

import re
from fractions import Fraction as Exact

from airloom.units.quantities import Duration, Rate
from airloom.units.reading import LONGEST, NUMBER, UnitError

_PREFIXES = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "kilo": 10**3,
    "mega": 10**6,
    "giga": 10**9,
    "tera": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "kibi": 2**10,
    "mebi": 2**20,
    "gibi": 2**30,
    "tebi": 2**40,
}
_TIMES = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("us", "usec", "usecs", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), 10**3),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 10**6),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 10**9),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * 10**9),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600 * 10**9),
}
_RATE = re.compile(rf"({NUMBER})\s*({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})bits?(?:/s|ps)?")
_TIME = re.compile(rf"({NUMBER})\s*({'|'.join(sorted(_TIMES, key=len, reverse=True))})")


def rate(text: str) -> Rate:
    """Returns a rate in bit/s; raises :class:`UnitError`."""
    found = _RATE.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        raise UnitError("unit.syntax", f"{text[:LONGEST]!r} is not a rate", "write it like 100 Mbit")
    return Rate(round(_positive(found[1], text) * _PREFIXES[found[2]]))


def duration(text: str) -> Duration:
    """Returns a duration; raises :class:`UnitError`."""
    found = _TIME.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        raise UnitError("unit.syntax", f"{text[:LONGEST]!r} is not a duration", "write it like 10 ms")
    return Duration(round(_positive(found[1], text) * _TIMES[found[2]]))


def _positive(number: str, text: str) -> Exact:
    value = Exact(number)
    if value < 0:
        raise UnitError("unit.negative", f"{text.strip()!r} is below zero")
    return value
