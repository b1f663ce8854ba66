"""All commands of ``airloom``. The module of a command is imported when the command is made."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from airloom import __version__
from airloom.cli.commands import Commands

EPILOG = (
    "Begin with: airloom doctor; airloom init; airloom check link.yaml; airloom run link.yaml; "
    "airloom examples. "
    "Exit codes: 0 done; 1 it ran and failed; 2 bad input, nothing was started; "
    "3 this machine lacks something; 130 stopped by Ctrl-C."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is: a function of a module of this package, or a group, its ``app``."""

    module: str
    function: str = "command"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Any:
        """The function, or the group."""
        return getattr(import_module(f"airloom.cli.{self.module}"), self.function)

    @property
    def help(self) -> str:
        """Its help."""
        if self.function == "app":
            return str(self.target.info.help)
        return inspect.cleandoc(self.target.__doc__ or "")


def _group(module: str) -> Entry:
    return Entry(module, "app")


_INSIDE = {"context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False}}
_PASS_THROUGH = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
COMMANDS = {
    "init": Entry("init"),
    "check": Entry("check"),
    "run": Entry("run"),
    "up": Entry("up"),
    "apply": Entry("apply"),
    "exec": Entry("enter", "exec_command", _INSIDE),
    "shell": Entry("enter", "shell_command"),
    "node": Entry("enter", "node_command"),
    "capture": Entry("capture"),
    "radio": Entry("radio"),
    "import": Entry("importing"),
    "mn": Entry("mn", "mn_command", {"context_settings": {**_PASS_THROUGH, "help_option_names": []}}),
    "mn-run": Entry(
        "mn",
        "run_command",
        {"context_settings": _PASS_THROUGH, "options_metavar": "SCRIPT [ARGUMENT...]"},
    ),
    "compare": Entry("compare"),
    "calibrate": Entry("calibrate"),
    "recommend": Entry("recommend"),
    "replay": Entry("replay"),
    "report": Entry("report"),
    "plot": Entry("plot"),
    "bench": Entry("bench"),
    "doctor": Entry("doctor"),
    "schema": Entry("schema"),
    "experiment": _group("experiment"),
    "image": _group("image"),
    "kernel": _group("kernel"),
    "examples": _group("examples"),
    "extcap": _group("extcap"),
    "fleet": _group("fleet"),
    "grid": _group("grid"),
    "oml": _group("oml"),
}
"""The commands by name, in the order of the help."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"airloom {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Global options, before the command."""


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Returns the command line with these commands, by default all."""
    app = typer.Typer(
        name="airloom",
        cls=Commands,
        help="A network-virtualization laboratory: unmodified programs on many virtual nodes, an emulated "
        "network between them, and a verdict on every run.",
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    for name in names:
        entry = COMMANDS[name]
        if entry.function == "app":
            app.add_typer(entry.target, name=name)
        else:
            app.command(name, **entry.settings)(entry.target)
    return app


@cache
def group() -> Any:
    """Returns all commands with their options, as click has them."""
    return typer.main.get_command(application())


def group_for(words: Sequence[str]) -> Any:
    """Returns what these words of the command line need: to make all commands takes a fifth of a second."""
    if not words or words[0] not in COMMANDS:
        return group()
    return typer.main.get_command(application(words[:1]))


def names_only() -> Any:
    """Returns all commands with their help but without options, for the completion of a command's name."""
    made = typer.main.get_command(application(()))
    assert isinstance(made, Commands)
    for name, entry in COMMANDS.items():
        made.add_command(typer.core.TyperCommand(name, help=entry.help))
    return made
