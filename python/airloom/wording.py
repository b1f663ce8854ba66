"""Figures in words: durations, rates, links, metrics. Pure functions."""

from __future__ import annotations

from typing import Any

_SMALL = ((1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def si(value: float, unit: str = "") -> str:
    """Three digits and a prefix: ``95.3 Mbit/s``, ``12 k``."""
    size = abs(value)
    for factor, prefix in _LARGE:
        if size >= factor:
            return f"{value / factor:.3g} {prefix}{unit}".rstrip()
    if size == 0 or size >= 1:
        return f"{value:.3g} {unit}".rstrip()
    for factor, prefix in _SMALL:
        if size >= factor:
            return f"{value / factor:.3g} {prefix}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()


def seconds(ns: int | float) -> str:
    """A span of nanoseconds: ``12.5 s``, ``3 min 20 s``."""
    whole = ns / 1e9
    if whole < 120:
        return si(whole, "s")
    minutes, rest = divmod(round(whole), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def link_text(settings: dict[str, Any]) -> str:
    """One direction of a link: ``100 Mbit/s, 1 ms``."""
    parts = []
    rate = settings.get("rate", "unlimited")
    if isinstance(rate, dict) and "bits-per-second" in rate:
        parts.append(si(rate["bits-per-second"], "bit/s"))
    else:
        parts.append("a trace" if isinstance(rate, dict) else "unlimited")
    if settings.get("delay_ns"):
        parts.append(si(settings["delay_ns"] / 1e9, "s"))
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


def _is_given(value: Any) -> bool:
    return value not in (None, "none")
