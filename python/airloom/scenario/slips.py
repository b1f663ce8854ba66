"""Slips in YAML text that the parser reports in its own words, or at a later line."""

from __future__ import annotations

import re

_GLUED = re.compile(r"(\s*(?:- +)*)([A-Za-z_][\w.\[\]-]*):([^\s/:].*)")
"""A key whose colon is followed by its value without a space."""
_OF_GLUED = ("could not find expected ':'", "mapping values are not allowed", "found unexpected ':'")


def explained(
    text: str, problem: str, line: int, column: int, begun: int | None
) -> tuple[str, str, int, int] | None:
    """Explains an error of the parser at a line and column, counted from 0.

    ``begun`` is the line where what it was reading begins. Returns the message, the cure and the
    place; None if it is no slip known here.
    """
    lines = text.splitlines()
    if "cannot start any token" in problem and line < len(lines) and lines[line][column : column + 1] == "\t":
        return "a tab stands here, and YAML is indented by spaces only", "write spaces", line, column
    if not any(words in problem for words in _OF_GLUED):
        return None
    first = max(0, line - 1) if begun is None else begun
    for number in range(first, min(line + 1, len(lines))):
        found = _GLUED.fullmatch(lines[number])
        if found is not None:
            before, key, value = found.groups()
            message, cure = _missing_space(key, value)
            return message, cure, number, len(before)
    return None


def glued(text: object) -> tuple[str, str] | None:
    """Returns message and cure if a text is a key and its value without a space after the colon."""
    found = _GLUED.fullmatch(text.splitlines()[0]) if isinstance(text, str) and text else None
    return None if found is None else _missing_space(found[2], found[3])


def _missing_space(key: str, value: str) -> tuple[str, str]:
    return f"a space is missing after the colon of {key + ':'!r}", f"write {key}: {value.rstrip()}"
