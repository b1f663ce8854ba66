"""The commands of the command line, with a suggestion for a word that is none."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_ELSEWHERE = {
    "start": "up",
    "launch": "up",
    "deploy": "up",
    "create": "up",
    "ls": "examples",
    "new": "init",
    "demo": "examples",
    "validate": "check",
    "lint": "check",
    "test": "check",
    "diff": "compare",
    "ssh": "shell",
    "attach": "shell",
    "benchmark": "bench",
    "help": "--help",
    "version": "--version",
}
"""Words of other tools: the command here."""


class Commands(TyperGroup):
    """A group of commands that knows the words of other tools."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command; an unknown word ends with exit code 2 and the nearest command."""
        word = args[0] if args else ""
        if word in _ELSEWHERE and word not in self.commands and ctx.parent is None:
            ctx.fail(f"No such command {word!r}. Did you mean 'airloom {_ELSEWHERE[word]}'?")
        return super().resolve_command(ctx, args)
