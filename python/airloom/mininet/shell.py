"""A host's shell: one bash for its whole life, on a terminal of its own.

The prompt is one octet that no output has, so the end of a command is seen without a further
command. The terminal neither echoes nor edits; ^C interrupts what runs in front.
"""

from __future__ import annotations

import os
import select
import termios
import time
from collections.abc import Mapping, Sequence

from airloom.errors import RunError
from airloom.nodes.kind import NodeHandle, Process

SENTINEL = "\x7f"
_PATIENCE = 30.0
"""Seconds that a shell may take to be ready."""
_PIECE = 1 << 16


class Shell:
    """bash in a node, and our end of its terminal."""

    def __init__(self, name: str, handle: NodeHandle) -> None:
        self._name = name
        near, far = os.openpty()
        self.descriptor = near
        try:
            _plain(far)
            self.process = start_on(
                far,
                handle,
                ["bash", "--noprofile", "--norc", "--noediting", "-i"],
                {"PS1": SENTINEL, "PS2": "", "PROMPT_COMMAND": "", "HISTFILE": "", "TERM": "dumb"},
            )
        except BaseException:
            os.close(near)
            raise
        finally:
            os.close(far)
        self._until_ready()
        # Without job control the ends of background jobs do not mix with the output of commands.
        self.write("unset HISTFILE PROMPT_COMMAND; set +m +o history\n")
        self._until_ready()

    @property
    def pid(self) -> int:
        """Its process, in the node's own numbering."""
        return self.process.pid

    def poll(self) -> int | None:
        """None while it runs, otherwise its exit code."""
        exit = self.process.poll()
        return None if exit is None else exit.code or 0

    def write(self, text: str) -> None:
        """Sends octets to whatever reads the terminal: the shell, or the program in front."""
        octets = text.encode()
        while octets:
            octets = octets[os.write(self.descriptor, octets) :]

    def read(self) -> str:
        """What is there now; waits if there is nothing, and gives nothing when the shell has ended."""
        try:
            return os.read(self.descriptor, _PIECE).decode("utf-8", "replace")
        except OSError:
            return ""

    def readable(self, timeout: float | None) -> bool:
        """Whether there is something to read within so many seconds."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        return bool(poller.poll(None if timeout is None else timeout * 1000))

    def close(self) -> None:
        """Lets go of the terminal, which ends the shell."""
        os.close(self.descriptor)

    def _until_ready(self) -> None:
        seen = ""
        until = time.monotonic() + _PATIENCE
        while not seen.endswith(SENTINEL):
            if not self.readable(max(0.0, until - time.monotonic())):
                raise RunError(
                    "mininet.shell", f"node {self._name}: its shell is not ready in {_PATIENCE:g} s"
                )
            piece = self.read()
            if not piece:
                raise RunError(
                    "mininet.shell",
                    f"node {self._name}: its shell has ended: {seen.strip()}",
                    cure="sudo apt-get install bash",
                )
            seen += piece


def start_on(terminal: int, handle: NodeHandle, words: Sequence[str], env: Mapping[str, str]) -> Process:
    """Starts a program of a node in the script's folder, on a terminal of its own."""
    return handle.start(
        words,
        env=env,
        folder=os.getcwd(),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        tty=True,
    )


def _plain(terminal: int) -> None:
    """No echo, no editing of lines (whose length is limited), no change of line ends; ^C works."""
    attributes = termios.tcgetattr(terminal)
    attributes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
