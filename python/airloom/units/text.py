"""Formats durations, shares, counts and the output of programs as text. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from airloom.units.figures import readable

_DIGITS = 3
_NAMES = 3
"""Most names in a message."""
_LINES = 5
"""Most last lines of a program's output in a message."""
_SHOWN: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    # C1 controls, and characters that change the text direction or end a line.
    **dict.fromkeys(
        (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
    ),
    # Octets of names that are not UTF-8.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def visible(text: str) -> str:
    """Escapes control characters in text for a terminal; keeps line ends and tabs."""
    return text.translate(_SHOWN)


def seconds(ns: int | float) -> str:
    """Formats nanoseconds as ``12.5 s`` or ``3 min 20 s``."""
    whole = ns / 1e9
    if whole < 120:
        return readable(whole, "s", _DIGITS)
    minutes, rest = divmod(round(whole), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def duration(ns: int | float) -> str:
    """Formats nanoseconds in a suitable unit with three digits: ``1.23 ms``."""
    return readable(ns, "ns", _DIGITS)


def moment(ns: int | float) -> str:
    """Formats a time of a run in seconds with one decimal: ``12.0 s``."""
    return f"{ns / 1e9:.1f} s"


def virtual_speed(ns: int | float, speed: float) -> str:
    """Returns the virtual time, and how fast it passes, in seconds a second of wall time."""
    return f"{ns / 1e9:.3f} s, {speed:.3g} virtual seconds a second"


def percent(share: float) -> str:
    """Formats a share from 0 to 1 in percent, as it was given: ``5 %``, ``0.1 %``."""
    return f"{100 * share:g} %"


def measured_percent(share: float) -> str:
    """Formats a measured share in percent with few digits: ``37 %``, ``0.12 %``."""
    percents = 100 * share
    return f"{percents:.0f} %" if percents >= 10 else f"{percents:.2g} %"


def plural(word: str, count: int) -> str:
    """Returns the plural of a word, ``switches``, or ``switch`` if ``count`` is one."""
    if count == 1:
        return word
    return f"{word}{'es' if word.endswith('ch') else 's'}"


def of_nodes(names: Sequence[str]) -> str:
    """Lists the first names of nodes: ``node a``, ``nodes a, b, c and 7 more``."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{plural('node', len(names))} {', '.join(names[:_NAMES])}{more}"


def in_a_line(written: bytes) -> str:
    """Returns the last lines of a program's output as one line for a message."""
    lines = written.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    return "; ".join(lines) or "it says nothing"
