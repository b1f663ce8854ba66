"""The command line: ``airloom``. One file per command; each imports its dependencies when it runs.

Exit codes: 0 success; 1 failure, or ``--strict`` and not valid; 2 invalid input, nothing was
started; 3 this machine lacks a named requirement; 130 and 143 stopped by Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from airloom import __version__
from airloom.cli import (
    bench,
    calibrate,
    check,
    compare,
    doctor,
    enter,
    experiment,
    grid,
    image,
    mn,
    oml,
    packs,
    radio,
    recommend,
    report,
    run,
    schema,
    up,
)
from airloom.errors import LabError, RunError
from airloom.units.text import visible

EPILOG = (
    "Begin with: airloom doctor; airloom check examples/chain.yaml; airloom run examples/chain.yaml. "
    "Exit codes: 0 done; 1 it ran and failed; 2 bad input, nothing was started; "
    "3 this machine lacks something; 130 stopped by Ctrl-C."
)

app = typer.Typer(
    name="airloom",
    help="A network-virtualization laboratory: unmodified programs on many virtual nodes, an emulated "
    "network between them, and a verdict on every run.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"airloom {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Global options, before the command."""


app.command("check")(check.command)
app.command("run")(run.command)
app.command("up")(up.command)
app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
    enter.exec_command
)
app.command("shell")(enter.shell_command)
app.command("node")(enter.node_command)
app.command("radio")(radio.command)
_PASS_THROUGH = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
app.command("mn", context_settings={**_PASS_THROUGH, "help_option_names": []})(mn.mn_command)
app.command("mn-run", context_settings=_PASS_THROUGH, options_metavar="SCRIPT [ARGUMENT...]")(mn.run_command)
app.command("compare")(compare.command)
app.command("calibrate")(calibrate.command)
app.command("recommend")(recommend.command)
app.command("report")(report.command)
app.command("bench")(bench.command)
experiment.app.command("pack")(packs.pack_command)
experiment.app.command("unpack")(packs.unpack_command)
experiment.app.command("rerun")(packs.rerun_command)
app.add_typer(experiment.app, name="experiment")
app.add_typer(image.app, name="image")
app.add_typer(grid.app, name="grid")
app.add_typer(oml.app, name="oml")
app.command("doctor")(doctor.command)
app.command("schema")(schema.command)


@cache
def group() -> Any:
    """Returns all commands with their options, as click has them."""
    return typer.main.get_command(app)


def group_for(words: Sequence[str]) -> Any:
    """Returns what these words of the command line need: to make all commands takes a tenth of a second."""
    name = words[0] if words else ""
    commands = [one for one in app.registered_commands if one.name == name]
    groups = [one for one in app.registered_groups if one.name == name]
    if not commands and not groups:
        return group()
    one = copy(app)
    one.registered_commands, one.registered_groups = commands, groups
    return typer.main.get_command(one)


def _terminated(number: int, _: Any) -> None:
    """Ends a command on SIGTERM like an error, with cleanup; a second SIGTERM exits at once."""
    signal.signal(number, lambda number, _: os._exit(128 + number))
    sys.exit(128 + number)


def main() -> None:
    """Entry point: prints every error as one line on standard error; exits with its code."""
    signal.signal(signal.SIGTERM, _terminated)
    code = _ended()
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _refused(error)
        _drop_output()
    sys.exit(code)


def _ended() -> int | str | None:
    """Runs the command; returns the exit code."""
    try:
        group_for(sys.argv[1:])()
    except SystemExit as ended:
        return ended.code
    except LabError as error:
        for each in (error, *error.further):
            _print_error(each)
        return error.exit_code
    except KeyboardInterrupt:
        print("airloom: stopped", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        return _refused(error)
    return 0


_REFUSALS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG, errno.EEXIST, errno.ETXTBSY),
    *(errno.EMFILE, errno.ENFILE, errno.EPIPE),
}
"""Errors of user-chosen paths and outputs; any other OSError is a bug of Airloom."""


def _refused(error: OSError) -> int:
    """Reports a system error for which the command has no message of its own; returns 1."""
    if error.errno == errno.EPIPE:  # the reader of the output has closed the pipe
        return 1
    if error.filename is None:
        cure = "free space there, or write to another place"
        _print_error(
            RunError("output.unwritable", f"the output cannot be written: {error.strerror}", cure=cure)
        )
    else:
        cure = "name a place that can be written, or allow it"
        _print_error(RunError("file.refused", str(error.strerror), where=str(error.filename), cure=cure))
    return 1


def _print_error(error: LabError) -> None:
    print(visible(f"airloom: {error}"), file=sys.stderr)


def _drop_output() -> None:
    """Discards buffered output, so that it cannot fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
