"""The command in a process forked from one that has its packages: they take a second of processor time.

Such a process has its own standard streams, environment, folder and exit code, like one that starts
anew. Three things differ: functions registered with ``atexit`` are not called, ``/proc/PID/environ``
shows the environment of the process that it was forked from, and Python's collector leaves the packages
alone, which would copy their memory.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PACKAGES = [
    "airloom.cli.display",
    "airloom.experiments.registry",
    "airloom.nodes.all_nodes",
    "airloom.results",
    "airloom.runs.batch",
    "pandas",
    "pyarrow.parquet",
    "scipy.special",
]
"""What nearly every command loads; commands load the rest themselves."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PACKAGES)


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Runs the command with these words in a folder; raises ``TimeoutExpired`` like ``subprocess.run``."""
    with tempfile.TemporaryDirectory() as written:
        out, err = Path(written, "out"), Path(written, "err")
        process = _CONTEXT.Process(
            target=_command, args=(tuple(words), str(folder), dict(environment), str(out), str(err))
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


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _command(words: tuple[str, ...], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """Gives this process what a new one would have, and becomes the command."""
    gc.freeze()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # follows TMPDIR
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, path, mode in ((0, os.devnull, os.O_RDONLY), (1, out, flags), (2, err, flags)):
        opened = os.open(path, mode, 0o600)
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
