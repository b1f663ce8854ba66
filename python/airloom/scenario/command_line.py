"""Command lines of a scenario: which need a shell, and the words of those that do not."""

from __future__ import annotations

import shlex

_SHELL_SIGNS = "|&;<>()$`*?\n"


def words_of(run: str | list[str] | None) -> list[str]:
    """The words of a command line; one that needs a shell gets ``/bin/sh``."""
    if not isinstance(run, str):
        return run or []
    return ["/bin/sh", "-c", run] if needs_shell(run) else shlex.split(run)


def needs_shell(line: str) -> bool:
    """Whether a command line means something to a shell beyond words and quotes."""
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
