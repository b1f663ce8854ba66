"""A program that was run or started in a node of a live laboratory."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import RunError
from airloom.nodes.kind import Exit, Process
from airloom.rpc import Stays
from airloom.runs.programs import signal_number


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended or reached its time limit."""

    argv: tuple[str, ...]
    code: int
    """Exit code; 128 + n after signal n."""
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True if the exit code is 0."""
        return self.code == 0


def require_ok(done: Completed, node: str) -> None:
    """Raises :class:`~airloom.RunError` with the last line of output unless the exit code is 0."""
    if not done.ok:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise RunError("command.failed", f"{done.argv[0]} in {node} ended with exit code {done.code}: {last}")


def described(program: str, node: str, code: int | None) -> str:
    """Returns the short form of a program that runs in a node, or has ended with an exit code."""
    state = "runs" if code is None else f"ended with {code}"
    return f"<program {program} in {node}: {state}>"


def code_of(exit: Exit) -> int:
    """Returns the exit code: 128 + n after signal n, 255 if the node stopped."""
    if exit.code is not None:
        return exit.code
    return 128 + exit.signal if exit.signal is not None else 255


class LiveProgram(Stays):
    """A program running in a node."""

    def __init__(self, node: str, argv: Sequence[str], process: Process, log: Path) -> None:
        self.node = node
        self.argv = tuple(argv)
        self.log = log
        """The file with its output."""
        self._process = process

    def __repr__(self) -> str:
        return described(self.argv[0], self.node, self.code)

    @property
    def code(self) -> int | None:
        """Exit code; None while it runs."""
        exit = self._process.poll()
        return None if exit is None else code_of(exit)

    @property
    def output(self) -> str:
        """Output so far."""
        return self.log.read_text("utf-8", "replace")

    def wait(self, timeout: float | None = None) -> int:
        """Waits ``timeout`` seconds for the end. Returns the exit code, or raises :class:`TimeoutError`."""
        return code_of(self._process.wait(timeout))

    def signal(self, which: int | str) -> None:
        """Sends a signal: ``15``, ``"TERM"`` or ``"SIGTERM"``."""
        self._process.signal(signal_number(str(which)))

    def stop(self, grace: float = 2.0) -> int:
        """Sends SIGTERM, after ``grace`` seconds SIGKILL. Returns the exit code."""
        self._process.signal(signal.SIGTERM)
        try:
            return self.wait(grace)
        except TimeoutError:
            self._process.signal(signal.SIGKILL)
            return self.wait()


class ClientProgram:
    """A program started from another terminal."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def wait(self) -> int:
        """Waits for the end; returns the exit code as a shell does."""
        return code_of(self._process.wait())

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""
        self._process.signal(number)
