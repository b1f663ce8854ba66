"""A host's shell: one bash for the host's lifetime, on its own pseudo-terminal.

The prompt is one octet that no output contains, so it marks the end of a command without a further
command. The terminal neither echoes nor edits; ^C interrupts the foreground program.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
import time
from collections.abc import Iterator, Mapping, Sequence

from airloom.errors import RunError
from airloom.nodes.kind import NodeHandle, Process

SENTINEL = "\x7f"
END_OF_INPUT = "\x04"
"""^D."""
_TIMEOUT = 30.0
"""Timeout in seconds until a shell is ready."""
_PIECE = 1 << 16
BASH = ("bash", "--noprofile", "--norc", "--noediting", "-i")


class Shell:
    """bash in a node, with our end of its pseudo-terminal."""

    def __init__(
        self,
        name: str,
        handle: NodeHandle,
        env: Mapping[str, str],
        folder: str,
        shells: Sequence[Sequence[str]] = (BASH,),
    ) -> None:
        """``shells``: commands that start one; the first that the node has is taken."""
        self._name = name
        near, far = os.openpty()
        self.descriptor = near
        try:
            _plain(far)
            self.process = start_first(
                far,
                handle,
                shells,
                folder,
                {**env, "PS1": SENTINEL, "PS2": "", "PROMPT_COMMAND": "", "HISTFILE": "", "TERM": "dumb"},
            )
        except BaseException:
            os.close(near)
            raise
        finally:
            os.close(far)
        self._until_ready()
        # Without job control, reports on background jobs do not mix with the output of commands.
        # A ^D that comes after the end of its program does not end the shell.
        self.write("unset HISTFILE PROMPT_COMMAND; set +m -o ignoreeof; set +o history 2>/dev/null\n")
        self._until_ready()

    @property
    def pid(self) -> int:
        """Its PID in the node's PID namespace."""
        return self.process.pid

    def poll(self) -> int | None:
        """Returns None while it runs, otherwise its exit code."""
        exit = self.process.poll()
        return None if exit is None else exit.code or 0

    def write(self, text: str) -> None:
        """Writes to the reader of the terminal: the shell or its foreground program."""
        octets = text.encode()
        while octets:
            octets = octets[os.write(self.descriptor, octets) :]

    def read(self) -> str:
        """Returns the available output; waits for some; empty after the end of the shell."""
        try:
            return os.read(self.descriptor, _PIECE).decode("utf-8", "replace")
        except OSError:
            return ""

    def readable(self, timeout: float | None) -> bool:
        """True if output is available within ``timeout`` seconds."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        return bool(poller.poll(None if timeout is None else timeout * 1000))

    @contextlib.contextmanager
    def canonical(self) -> Iterator[None]:
        """Turns the terminal's canonical mode on meanwhile: ^D ends the input of a program."""
        before = termios.tcgetattr(self.descriptor)
        edited = [*before[:3], before[3] | termios.ICANON, *before[4:6], [*before[6]]]
        edited[6][termios.VEOF], edited[6][termios.VEOL] = END_OF_INPUT.encode(), b"\0"
        termios.tcsetattr(self.descriptor, termios.TCSANOW, edited)
        try:
            yield
        finally:
            termios.tcsetattr(self.descriptor, termios.TCSANOW, before)

    def close(self) -> None:
        """Closes the terminal, which ends the shell."""
        os.close(self.descriptor)

    def _until_ready(self) -> None:
        seen = ""
        until = time.monotonic() + _TIMEOUT
        while not seen.endswith(SENTINEL):
            if not self.readable(max(0.0, until - time.monotonic())):
                raise RunError(
                    "mininet.shell", f"node {self._name}: its shell is not ready in {_TIMEOUT:g} s"
                )
            piece = self.read()
            if not piece:
                raise RunError(
                    "mininet.shell",
                    f"node {self._name}: its shell has ended: {seen.strip()}",
                    cure="sudo apt-get install bash",
                )
            seen += piece


def start_first(
    terminal: int,
    handle: NodeHandle,
    commands: Sequence[Sequence[str]],
    folder: str,
    env: Mapping[str, str],
) -> Process:
    """Starts the first of some programs that the node has."""
    for words in commands[:-1]:
        with contextlib.suppress(RunError):
            return start_on(terminal, handle, words, env, folder)
    if len(commands) > 1:
        # The shell of busybox edits lines, with sequences of its own around the prompt, unless the
        # terminal has whole lines without echo.
        attributes = termios.tcgetattr(terminal)
        attributes[3] |= termios.ICANON
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    return start_on(terminal, handle, commands[-1], env, folder)


def start_on(
    terminal: int, handle: NodeHandle, words: Sequence[str], env: Mapping[str, str], folder: str | None = None
) -> Process:
    """Starts a node's program on its own pseudo-terminal, by default in the script's folder."""
    return handle.start(
        words,
        env=env,
        folder=folder or os.getcwd(),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        tty=True,
    )


def _plain(terminal: int) -> None:
    """Sets the terminal to no echo, no line editing, no newline translation; ^C works."""
    attributes = termios.tcgetattr(terminal)
    attributes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
