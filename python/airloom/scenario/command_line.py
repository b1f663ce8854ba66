"""Splits command lines of a scenario; recognises those that need a shell."""

from __future__ import annotations

import shlex

_SHELL_SIGNS = "|&;<>()$`*?\n"


def words_of(run: str | list[str] | None) -> list[str]:
    """Returns the arguments of a command line; with shell syntax, those of ``/bin/sh -c``."""
    if not isinstance(run, str):
        return run or []
    return ["/bin/sh", "-c", run] if needs_shell(run) else shlex.split(run)


def needs_shell(line: str) -> bool:
    """True if a command line has shell syntax other than words and quotes."""
    quote = ""
    escaped = False
    for sign in line:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        elif (not quote and sign in _SHELL_SIGNS) or (quote == '"' and sign in "$`"):
            return True
    return "=" in line.split(" ", 1)[0]
