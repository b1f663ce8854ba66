"""Durations, numbers, links, and what programs write, in words. Pure functions."""

from __future__ import annotations

from typing import Any

from airloom.units.figures import readable

_DIGITS = 3
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


def link_text(settings: dict[str, Any]) -> str:
    """One direction of a link: ``100 Mbit/s, 1 ms``."""
    parts = []
    rate = settings.get("rate", "unlimited")
    if isinstance(rate, dict) and "bits-per-second" in rate:
        parts.append(readable(rate["bits-per-second"], "bit/s", _DIGITS))
    else:
        parts.append("a trace" if isinstance(rate, dict) else "unlimited")
    if settings.get("delay_ns"):
        parts.append(readable(settings["delay_ns"], "ns", _DIGITS))
    if _is_given(settings.get("jitter")):
        parts.append(f"jitter {next(iter(settings['jitter']))}")
    loss = settings.get("loss")
    if isinstance(loss, dict) and "bernoulli" in loss:
        parts.append(f"loss {100 * loss['bernoulli']['probability']:g} %")
    elif _is_given(loss):
        parts.append("bursty loss")
    for key in ("duplicate", "corrupt", "reorder"):
        if settings.get(key):
            parts.append(f"{key} {100 * settings[key]:g} %")
    return ", ".join(parts)


def plural(word: str, count: int) -> str:
    """The word for so many: ``switches``, but ``switch`` for one."""
    if count == 1:
        return word
    return f"{word}{'es' if word.endswith('ch') else 's'}"


def in_a_line(written: bytes) -> str:
    """The last lines of what a program wrote, for a message of one line."""
    lines = written.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    return "; ".join(lines) or "it says nothing"


def _is_given(value: Any) -> bool:
    return value not in (None, "none")
