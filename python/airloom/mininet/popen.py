"""A program in a node with the interface of :class:`subprocess.Popen`."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT, TimeoutExpired
from typing import IO, Any, Self

from airloom.nodes.kind import Exit, NodeHandle


class NodePopen:
    """A process started by ``host.popen``, in the node's namespaces."""

    def __init__(
        self,
        handle: NodeHandle,
        args: Sequence[str],
        *,
        stdin: Any = None,
        stdout: Any = PIPE,
        stderr: Any = PIPE,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
        text: bool = False,
    ) -> None:
        """``env``: all variables; ``more``: variables beside those of the node."""
        self.args = args
        self.returncode: int | None = None
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        with contextlib.ExitStack() as theirs:
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            theirs.callback(os.close, nothing)
            ends: list[int | None] = []
            for place, wish in enumerate((stdin, stdout, stderr)):
                if wish == PIPE:
                    reading, writing = os.pipe()
                    near, far = (writing, reading) if place == 0 else (reading, writing)
                    theirs.callback(os.close, far)
                    ends.append(far)
                    setattr(self, ("stdin", "stdout", "stderr")[place], _file(near, place == 0, text))
                elif wish == STDOUT:
                    ends.append(ends[1])
                elif wish == DEVNULL or (wish is None and place == 0):
                    ends.append(nothing)
                elif wish is None:
                    ends.append(place)
                else:
                    ends.append(wish if isinstance(wish, int) else wish.fileno())
            try:
                self._process = handle.start(
                    args,
                    env=more if env is None else env,
                    bare=env is not None,
                    folder=cwd or os.getcwd(),
                    stdin=ends[0],
                    stdout=ends[1],
                    stderr=ends[2],
                )
            except BaseException:
                self._close()
                raise
        self.pid: int = self._process.pid
        """PID in the node's PID namespace."""

    def poll(self) -> int | None:
        """Returns the exit code, or minus the signal that ended it; None while it runs."""
        if self.returncode is None:
            exit = self._process.poll()
            self.returncode = None if exit is None else _code(exit)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end, at most ``timeout`` seconds."""
        try:
            self.returncode = _code(self._process.wait(timeout))
        except TimeoutError:
            raise TimeoutExpired(self.args, timeout or 0.0) from None
        return self.returncode

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Writes its input, reads all output, and waits for its end."""
        found: dict[str, Any] = {}

        def drain(name: str, stream: IO[Any]) -> None:
            found[name] = stream.read()

        readers = [
            threading.Thread(target=drain, args=(name, stream), daemon=True)
            for name, stream in (("stdout", self.stdout), ("stderr", self.stderr))
            if stream is not None
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                if input:
                    self.stdin.write(input)
                self.stdin.close()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        self._close()
        return found.get("stdout"), found.get("stderr")

    def send_signal(self, number: int) -> None:
        """Sends a signal to the program and the programs that it started."""
        self._process.signal(number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self._close()

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _file(descriptor: int, writing: bool, text: bool) -> IO[Any]:
    # Unbuffered, so that no output is read ahead of a poll on the descriptor.
    raw = io.FileIO(descriptor, "w" if writing else "r")
    if not text:
        return raw
    buffered: Any = io.BufferedWriter(raw) if writing else io.BufferedReader(raw)
    return io.TextIOWrapper(buffered, write_through=True)


def _code(exit: Exit) -> int:
    if exit.code is not None:
        return exit.code
    return -(exit.signal or signal.SIGKILL)
