"""Regular expressions that are matched against what nodes write, in time that grows with the text alone.

A node's output is not trusted, and an expression such as ``(a+)+$`` takes Python's own matcher time that
doubles with each letter. So these are RE2's (https://github.com/google/re2/wiki/Syntax), as Arrow has it:
without backreferences and look-around, and matched in linear time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST = 1000
"""Characters of an expression."""
_LINES = "(?m)"
"""Lets ^ and $ match at each line."""


class PatternError(ValueError):
    """A text that is no regular expression."""


def checked(text: str) -> None:
    """Refuses what is no regular expression; :class:`PatternError`."""
    if len(text) > LONGEST:
        raise PatternError(f"longer than {LONGEST} characters")
    found(text, "")


def found(pattern: str, text: str) -> bool:
    """Whether the pattern is somewhere in the text; ``^`` and ``$`` match at every line's begin and end."""
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
    # It is slow to load, and few scenarios have expressions.
    import pyarrow.compute

    return pyarrow.compute, pyarrow.compute.MatchSubstringOptions(_LINES + pattern)
