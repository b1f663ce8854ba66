"""Durations, shares, counts, and what programs write, in words. Pure functions."""

from __future__ import annotations

from airloom.units.figures import readable

_DIGITS = 3
_LINES = 5
"""How many of a program's last lines a message has room for."""


def seconds(ns: int | float) -> str:
    """A span of nanoseconds: ``12.5 s``, ``3 min 20 s``."""
    whole = ns / 1e9
    if whole < 120:
        return readable(whole, "s", _DIGITS)
    minutes, rest = divmod(round(whole), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def percent(share: float) -> str:
    """A share from 0 to 1 in percent: ``5 %``, ``0.1 %``."""
    return f"{100 * share:g} %"


def plural(word: str, count: int) -> str:
    """The word for so many: ``switches``, but ``switch`` for one."""
    if count == 1:
        return word
    return f"{word}{'es' if word.endswith('ch') else 's'}"


def in_a_line(written: bytes) -> str:
    """The last lines of what a program wrote, for a message of one line."""
    lines = written.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    return "; ".join(lines) or "it says nothing"
