"""Values that may be left out."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def given(value: T | None, default: T) -> T:
    """Returns a value that was given, 0 too; else the default."""
    return default if value is None else value
