"""Durations, shares, counts, and what programs write, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from airloom.units.figures import readable

_DIGITS = 3
_NAMES = 3
"""How many names a message lists."""
_LINES = 5
"""How many of a program's last lines a message has room for."""
_SHOWN: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    # C1 controls, and those that turn the direction of text or end a line.
    **dict.fromkeys(
        (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
    ),
    # Octets of names that are no UTF-8.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def visible(text: str) -> str:
    """Text for a terminal: control characters are shown, not sent; line ends and tabs stay."""
    return text.translate(_SHOWN)


def seconds(ns: int | float) -> str:
    """A span of nanoseconds: ``12.5 s``, ``3 min 20 s``."""
    whole = ns / 1e9
    if whole < 120:
        return readable(whole, "s", _DIGITS)
    minutes, rest = divmod(round(whole), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def duration(ns: int | float) -> str:
    """A span of nanoseconds in the unit that fits, to three digits: ``1.23 ms``."""
    return readable(ns, "ns", _DIGITS)


def moment(ns: int | float) -> str:
    """A time of a run to a tenth of a second: ``12.0 s``."""
    return f"{ns / 1e9:.1f} s"


def percent(share: float) -> str:
    """A share from 0 to 1 in percent, as it was given: ``5 %``, ``0.1 %``."""
    return f"{100 * share:g} %"


def measured_percent(share: float) -> str:
    """A measured share in percent, to no more digits than are of use: ``37 %``, ``0.12 %``."""
    percents = 100 * share
    return f"{percents:.0f} %" if percents >= 10 else f"{percents:.2g} %"


def plural(word: str, count: int) -> str:
    """The word for so many: ``switches``, but ``switch`` for one."""
    if count == 1:
        return word
    return f"{word}{'es' if word.endswith('ch') else 's'}"


def of_nodes(names: Sequence[str]) -> str:
    """Nodes by their names, the first of many: ``node a``, ``nodes a, b, c and 7 more``."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{plural('node', len(names))} {', '.join(names[:_NAMES])}{more}"


def in_a_line(written: bytes) -> str:
    """The last lines of what a program wrote, for a message of one line."""
    lines = written.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    return "; ".join(lines) or "it says nothing"
