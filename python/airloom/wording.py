"""Durations, numbers, links, and what programs write, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airloom.quantity import readable

_DIGITS = 3
_NAMES = 3
"""How many names a message lists."""
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


def of_nodes(names: Sequence[str]) -> str:
    """Nodes by their names, the first of many: ``node a``, ``nodes a, b, c and 7 more``."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{plural('node', len(names))} {', '.join(names[:_NAMES])}{more}"


def in_a_line(written: bytes) -> str:
    """The last lines of what a program wrote, for a message of one line."""
    lines = written.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    return "; ".join(lines) or "it says nothing"


def _is_given(value: Any) -> bool:
    return value not in (None, "none")
