"""The command in a process forked from one that has its packages: they take a second of processor time.

`preloaded.py` has what that process loads.

Such a process has its own standard streams, environment, folder and exit code, like one that starts
anew. Three things differ: functions registered with ``atexit`` are not called, ``/proc/PID/environ``
shows the environment of the process that it was forked from, and Python's collector leaves the packages
alone, which would copy their memory.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import multiprocessing.forkserver
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["helpers.preloaded"])


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the command with these words in a folder, and a text on its standard input.

    Raises ``TimeoutExpired`` like ``subprocess.run``.
    """
    _server()
    with tempfile.TemporaryDirectory() as written:
        given, out, err = (Path(written, name) for name in ("in", "out", "err"))
        given.write_text(input, encoding="utf-8")
        streams = (str(given), str(out), str(err))
        process = _CONTEXT.Process(
            target=_command, args=(tuple(words), str(folder), dict(environment), streams)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout, _text(out), _text(err))
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(words, code, _text(out), _text(err))


@cache
def _server() -> None:
    """Starts the process that forks commands. Python 3.11 does not tell it where modules are."""
    variable = "PYTHONPATH"
    before = os.environ.get(variable)
    os.environ[variable] = os.pathsep.join(sys.path)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _command(
    words: tuple[str, ...], folder: str, environment: dict[str, str], streams: tuple[str, str, str]
) -> None:
    """Gives this process what a new one would have, and becomes the command."""
    gc.freeze()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # follows TMPDIR
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True
    )
    from airloom import __main__ as program
    from airloom.cli import main

    sys.modules["__main__"] = program  # by which the command calls itself in its usage
    sys.argv = [str(program.__file__), *words]
    main()
