"""Runs a program in a node on this terminal: input, output, size and exit code as if run here."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence

from airloom.lab.client import Client, passing_signals

_PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def attach(client: Client, node: str, argv: Sequence[str], *, terminal: bool, keyboard: bool = True) -> int:
    """Runs a program in a node on our standard descriptors; returns its exit code.

    Without ``keyboard`` its input is empty.

    With ``terminal``, and if we have one, the program gets a pseudoterminal that is relayed to our
    terminal; job control and full-screen programs work.
    """
    env = {name: os.environ[name] for name in ("TERM", "LANG", "COLORTERM") if name in os.environ}
    if terminal and os.isatty(0) and os.isatty(1):
        return _relay(client, node, argv, env)
    with open(os.devnull, "rb") as nothing, passing_signals(client.signal, _PASSED):
        sys.stdout.flush()
        client.start(node, argv, env, [0 if keyboard else nothing.fileno(), 1, 2], tty=False)
        return client.wait()


def shells() -> list[str]:
    """Returns the shells to try in a node, the user's own first: a container may lack it."""
    return list(dict.fromkeys((os.environ.get("SHELL", "/bin/sh"), "/bin/sh")))


def _relay(client: Client, node: str, argv: Sequence[str], env: Mapping[str, str]) -> int:
    near, far = os.openpty()
    try:
        _copy_size(near)
        try:
            client.start(node, argv, env, [far, far, far], tty=True)
        finally:
            os.close(far)
        previous = signal.signal(signal.SIGWINCH, lambda *_: _copy_size(near))
        try:
            with _raw(0), passing_signals(client.signal, (signal.SIGTERM, signal.SIGHUP)):
                _pump(client, near)
        finally:
            signal.signal(signal.SIGWINCH, previous)
        return client.wait()
    finally:
        os.close(near)


def _pump(client: Client, near: int) -> None:
    """Relays octets both ways until the program has ended and all its output is read."""
    keyboard = True
    while True:
        inputs = [near, client.fileno(), *([0] if keyboard else [])]
        ready, _, _ = select.select(inputs, [], [])
        if near in ready:
            try:
                octets = os.read(near, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return  # no process has the slave side open any more
            _write(1, octets)
        elif client.fileno() in ready:
            return  # the program has ended and all its output was read
        if 0 in ready:
            octets = os.read(0, 65536)
            keyboard = bool(octets)
            _write(near, octets or b"\x04")


def _write(descriptor: int, octets: bytes) -> None:
    while octets:
        octets = octets[os.write(descriptor, octets) :]


def _copy_size(near: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(near, termios.TIOCSWINSZ, size)


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        sys.stdout.flush()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
