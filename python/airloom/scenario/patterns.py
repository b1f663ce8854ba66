"""Regular expressions for untrusted output of nodes, matched in linear time.

Python's matcher needs exponential time for an expression such as ``(a+)+$``. These expressions have
RE2 syntax (https://github.com/google/re2/wiki/Syntax) and are matched by Arrow, without
backreferences and look-around.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST = 1000
"""Longest expression in characters."""
_LINES = "(?m)"
"""Makes ^ and $ match at each line."""


class PatternError(ValueError):
    """A text is not a valid regular expression."""


def checked(text: str) -> None:
    """Raises :class:`PatternError` if the text is not a valid regular expression."""
    if len(text) > LONGEST:
        raise PatternError(f"longer than {LONGEST} characters")
    found(text, "")


def found(pattern: str, text: str) -> bool:
    """True if the pattern matches in the text; ``^`` and ``$`` match at the ends of every line."""
    import pyarrow

    compute, options = _matcher(pattern)
    try:
        match = compute.call_function("match_substring_regex", [pyarrow.array([text])], options)
    except pyarrow.ArrowInvalid as error:
        why = str(error).removeprefix("Invalid regular expression: ")
        raise PatternError(why.replace(_LINES, "", 1)) from None
    return bool(match[0].as_py())


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> tuple[Any, Any]:
    # Imported here: loading takes long, and few scenarios have expressions.
    import pyarrow.compute

    return pyarrow.compute, pyarrow.compute.MatchSubstringOptions(_LINES + pattern)
