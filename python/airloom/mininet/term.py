"""Terminal windows of nodes: an xterm of the host around a shell in the node.

xterm runs on the host, so it finds the display like other host programs (``DISPLAY``, X
authority, ssh's forwarding); the node has no display. xterm uses an inherited pseudo-terminal and
ends with the shell; the shell ends with the window.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import termios
from collections.abc import Iterable
from typing import Any

from airloom.errors import HostError, RunError
from airloom.mininet.errors import Unsupported
from airloom.mininet.host_process import HostProcess, path_of
from airloom.mininet.shell import start_on

_TIMEOUT = 20.0
"""Timeout in seconds until a window opens."""


def makeTerm(
    node: Any, title: str = "Node", term: str = "xterm", display: str | None = None, cmd: str = "bash"
) -> list[subprocess.Popen[bytes]]:
    """Opens a window for a node; returns the xterm process in a list."""
    if term != "xterm":
        raise Unsupported(f"makeTerm({node}, term={term!r})", "windows are those of xterm")
    handle = node.handle
    program = path_of(term, f"node {node}: a window")
    display = display or os.environ.get("DISPLAY")
    if not display:
        raise HostError(
            "host.display",
            f"node {node}: there is no display for a window",
            cure="set DISPLAY, as a desktop and `ssh -X` do",
        )
    near, far = os.openpty()
    try:
        _echo(far, False)  # xterm writes its window number first
        try:
            words = [program, "-display", display, "-title", f"{title}: {node.name}"]
            window = HostProcess([*words, f"-S{os.ttyname(far)}/{near}"], [near])
        finally:
            os.close(near)
        try:
            _await(window, far, node)
            _echo(far, True)
            start_on(far, handle, shlex.split(cmd), {"TERM": "xterm"})
        except BaseException:
            window.kill()
            window.wait()
            raise
    finally:
        os.close(far)
    return [window]


def makeTerms(
    nodes: Iterable[Any], title: str = "Node", term: str = "xterm"
) -> list[subprocess.Popen[bytes]]:
    """Opens a window for each node."""
    return [window for node in nodes for window in makeTerm(node, title, term)]


def cleanUpScreens() -> None:
    """Does nothing: a window ends with its node."""


def _await(window: HostProcess, far: int, node: Any) -> None:
    """Waits until xterm has written its window number, the first line of its output."""
    poller = select.poll()
    poller.register(far, select.POLLIN)
    with contextlib.suppress(OSError):  # the window has ended
        if poller.poll(_TIMEOUT * 1000) and os.read(far, 64).endswith(b"\n"):
            return
    window.kill()
    why = window.said()
    raise RunError("mininet.window", f"node {node}: no window opens: {why}", cure="is DISPLAY right?")


def _echo(terminal: int, wanted: bool) -> None:
    attributes = termios.tcgetattr(terminal)
    attributes[3] = attributes[3] | termios.ECHO if wanted else attributes[3] & ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
