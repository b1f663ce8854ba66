"""Generates the manual page ``airloom(1)`` in roff from the help of all commands.

``python -m airloom.cli.manual`` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_EXIT_CODES = (
    ("0", "Done."),
    ("1", "It ran and failed; or the verdict is not valid and --strict was given."),
    ("2", "Bad input: nothing was started."),
    ("3", "This machine lacks something; the message names it."),
    ("130, 143", "Stopped by Ctrl-C or by SIGTERM."),
)


def page() -> str:
    """Returns the whole page."""
    from airloom import __version__
    from airloom.cli import tree

    group = tree.group()
    context = group.context_class(group, info_name="airloom", **group.context_settings)
    summary, _, _ = group.help.partition(":")
    lines = [
        f'.TH AIRLOOM 1 "" "airloom {__version__}" "User Commands"',
        ".SH NAME",
        f"airloom \\- {_text(summary[0].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        r"\fBairloom\fR [\fIoptions\fR] \fIcommand\fR [\fIarguments\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(group.help),
        ".SH OPTIONS",
        *_parameters(group, context),
        ".SH COMMANDS",
        *_commands(group, context),
        ".SH EXIT STATUS",
    ]
    for code, meaning in _EXIT_CODES:
        lines += [".TP", f".B {code}", _text(meaning)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any) -> Iterator[str]:
    """Yields a subsection for each command, including those of groups, in alphabetical order."""
    for name, command in sorted(group.commands.items()):
        below = command.context_class(command, parent=context, info_name=name, **command.context_settings)
        if hasattr(command, "commands"):
            yield from _commands(command, below)
            continue
        arguments = [one for one in command.get_params(below) if one.param_type_name == "argument"]
        words = [below.command_path, "[options]", *(_metavar(one) for one in arguments)]
        yield f'.SS "{_text(" ".join(words))}"'
        yield from _paragraphs(command.help or "")
        yield from _parameters(command, below)


def _parameters(command: Any, context: Any) -> Iterator[str]:
    """Yields arguments and options of one command with their help."""
    for one in command.get_params(context):
        if one.param_type_name == "argument":
            yield from (".TP", f"\\fI{_text(_metavar(one))}\\fR", _text(one.help or ""))
        elif (record := one.get_help_record(context)) is not None:
            names, said = record
            yield from (".TP", f"\\fB{_text(names)}\\fR", _text(said))


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield ".PP"
        yield _text(paragraph)


def _text(words: str) -> str:
    """Returns one line as roff, with escaped control characters and bold code."""
    line = " ".join(words.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    line = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", line)
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    print(page(), end="")
