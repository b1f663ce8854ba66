"""Spans of engine time in ns, such as those in which a slice has a radio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int | None]
"""From when to when; None: to the end of the run."""

WHOLE: tuple[Span, ...] = ((0, None),)
"""The whole run."""


def within(spans: Iterable[Span], at: int) -> bool:
    """Whether one of the spans contains a time; its end does not belong to it."""
    return any(since <= at and (until is None or at < until) for since, until in spans)


def meet(some: Iterable[Span], others: Sequence[Span]) -> bool:
    """Whether two lists of spans have a time in common."""
    return any(
        (end is None or since < end) and (until is None or begin < until)
        for since, until in some
        for begin, end in others
    )


def at_time(at: int) -> str:
    """Returns ``at 5 s ``, the beginning of a message, or nothing for the start."""
    return f"at {at / 1e9:g} s " if at else ""
