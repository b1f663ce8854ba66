"""Answers of ``airloom`` to the shell that asks for completions, at every Tab.

Only what the typed words need is imported. :mod:`airloom.cli.completing` has the words that are offered.
"""

from __future__ import annotations

import os
from typing import Any


def typed() -> list[str]:
    """Returns the words of the command line after ``airloom``, the last one unfinished or empty."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()[1:]
    return words if words and not line[-1].isspace() else [*words, ""]


def complete() -> None:
    """Prints the completions of the words that the shell gives in the environment."""
    from airloom.cli import tree

    words = typed()
    # The shell may ask for the first of several words.
    first = len(words) < 2 or os.environ.get("COMP_CWORD") == "1"
    made = tree.names_only() if first or words[0] not in tree.COMMANDS else tree.group_for(words)
    _as_written()
    made(prog_name="airloom")


def _as_written() -> None:
    """Makes all parameters of this process return their words unconverted.

    typer converts them by pydantic, and shows help by rich. Loading these takes longer than everything
    else, and completion needs neither. These names are internal ones of typer: a release without them
    completes the same, only slower.
    """
    import typer._completion_classes as classes
    from typer.core import TyperArgument, TyperOption

    if hasattr(classes, "_sanitize_help_text"):
        setattr(classes, "_sanitize_help_text", str)  # noqa: B010
    for parameter in (TyperArgument, TyperOption):
        if hasattr(parameter, "get_runtime_param"):
            setattr(parameter, "get_runtime_param", _Unconverted)  # noqa: B010


class _Unconverted:
    def __init__(self, parameter: Any) -> None:
        pass

    def coerce(self, value: Any, **_: Any) -> Any:
        return value
