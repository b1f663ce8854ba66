"""The command in a process forked from one that has its packages: they take a second of processor time.

`preloaded.py` has what that process loads.

Such a process has its own standard streams, environment, folder and exit code, like one that starts
anew. Two things differ: its parent is that process, and Python's collector leaves the packages alone, which
would copy their memory.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import multiprocessing
import multiprocessing.forkserver
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import reduction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["helpers.preloaded"])


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the command with these words in a folder, and a text on its standard input.

    Raises ``TimeoutExpired`` like ``subprocess.run``.
    """
    with Started(words, folder, environment, stdin=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)


class Started:
    """The command while it runs; what ``subprocess.Popen`` with ``text`` has, and tests use."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
    ) -> None:
        _server()
        self.args = tuple(words)
        self.returncode: int | None = None
        ends = [_ends(number, asked) for number, asked in enumerate((stdin, stdout, stderr))]
        own, theirs = zip(*ends, strict=True)
        self.stdin, self.stdout, self.stderr = own
        streams = tuple(map(_Sent, theirs))
        self._process = _CONTEXT.Process(
            target=_command, args=(self.args, str(folder), dict(environment), streams)
        )
        try:
            self._process.start()
        finally:
            for one in theirs:
                os.close(one)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.wait()

    def poll(self) -> int | None:
        """Returns the exit code; None while it runs."""
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end; raises ``TimeoutExpired``."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def communicate(self, input: str = "", timeout: float = 60.0) -> tuple[str, str]:
        """Writes to its standard input, and reads its output to the end; raises ``TimeoutExpired``.

        The input has to find room in a pipe. What was read from a stream before is not in its output.
        """
        until = time.monotonic() + timeout
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # it ended, or reads no more
                self.stdin.write(input)
                self.stdin.close()
        said = {one: b"" for one in (self.stdout, self.stderr) if one is not None and not one.closed}
        with selectors.DefaultSelector() as selector:
            for stream in said:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(until - time.monotonic())
                if not ready:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                for key, _ in ready:
                    octets = os.read(key.fd, 65536)
                    said[key.fileobj] += octets
                    if not octets:
                        selector.unregister(key.fileobj)
        self._close()
        self.wait(max(0.0, until - time.monotonic()))
        return said.get(self.stdout, b"").decode(), said.get(self.stderr, b"").decode()

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ends it by SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self._process.kill()

    def _close(self) -> None:
        for one in (self.stdin, self.stdout, self.stderr):
            if one is not None:
                with contextlib.suppress(BrokenPipeError):
                    one.close()


def _ends(number: int, asked: Any) -> tuple[Any, int]:
    """Returns the own end of a standard stream, if it has one, and the descriptor of the command's."""
    if asked == subprocess.PIPE:
        reading, writing = os.pipe()
        if number == 0:
            return os.fdopen(writing, "w", encoding="utf-8"), reading
        return os.fdopen(reading, encoding="utf-8"), writing
    if asked == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    return None, os.dup(asked.fileno())


class _Sent:
    """A file descriptor that a process gets with its arguments, where it is a number again."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._number),)


def _received(sent: Any) -> int:
    return int(sent.detach())


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


def _command(
    words: tuple[str, ...], folder: str, environment: dict[str, str], streams: tuple[int, int, int]
) -> None:
    """Gives this process what a new one would have, and becomes the command."""
    gc.freeze()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _show(environment)
    tempfile.tempdir = None  # follows TMPDIR
    for number, opened in enumerate(streams):
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
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which a forked process does not call by itself


def _show(environment: Mapping[str, str]) -> None:
    """Writes an environment where ``/proc/PID/environ`` shows it, as far as that of the server was long.

    What the server does not have comes first: tests find processes by such a mark. The environment that
    programs use lies elsewhere since the first change of it.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[47]), int(fields[48])
    before = set(Path("/proc/self/environ").read_bytes().split(b"\0"))
    entries = [os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items()]
    entries.sort(key=lambda entry: entry[:-1] in before)
    shown = b"".join(entries)[: end - begin].ljust(end - begin, b"\0")
    ctypes.memmove(begin, shown, len(shown))
