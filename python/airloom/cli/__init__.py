"""The command line: ``airloom``. One file per command; each imports its dependencies when it runs.

Exit codes: 0 success; 1 failure, or ``--strict`` and not valid; 2 invalid input, nothing was
started; 3 this machine lacks a named requirement; 130 and 143 stopped by Ctrl-C and SIGTERM.

The commands are in :mod:`airloom.cli.tree`, which this module imports only when it needs one: typer takes
longer to load than to print the version.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from airloom import __version__
from airloom.errors import LabError, RunError

if TYPE_CHECKING:
    import typer

    app: typer.Typer

_COMPLETE = "_AIRLOOM_COMPLETE"
"""The variable by which the shell asks for completions."""


def __getattr__(name: str) -> Any:
    """Returns ``app``, all commands."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from airloom.cli.tree import application

    return application()


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
        if sys.argv[1:] == ["--version"]:
            print(f"airloom {__version__}")
        elif _COMPLETE in os.environ:
            from airloom.cli.completion import complete

            complete()
        else:
            from airloom.cli.tree import group_for

            group_for(sys.argv[1:])()
    except SystemExit as ended:
        return ended.code
    except LabError as error:
        for each in (error, *error.further):
            _print_error(each)
        return error.exit_code
    except ModuleNotFoundError as error:
        from airloom import extras

        missing = extras.error_of(error.name)
        if missing is None:
            raise
        _print_error(missing)
        return missing.exit_code
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
    *(errno.EMFILE, errno.ENFILE, errno.EPIPE, errno.EINVAL),
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
    from airloom.units.text import visible

    print(visible(f"airloom: {error}"), file=sys.stderr)


def _drop_output() -> None:
    """Discards buffered output, so that it cannot fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
