"""The command on a terminal of the test's own."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path


def talk(shell, words: list[str], lines: list[tuple[str, str]]) -> tuple[int, str]:
    """Runs the command on a terminal; after each expected text the next line is typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.folder)
        env = {**shell.env, "TERM": "dumb", "SHELL": "/bin/sh"}
        os.execve(sys.executable, [sys.executable, "-m", "airloom", *words], env)
    heard, seen = "", 0
    for expected, typed in [*lines, ("\0", "")]:
        while expected not in heard[seen:]:
            ready, _, _ = select.select([terminal], [], [], 60)
            assert ready, heard
            try:
                octets = os.read(terminal, 65536)
            except OSError:
                octets = b""
            if not octets:
                assert expected == "\0", heard
                break
            heard += octets.decode(errors="replace")
        seen = heard.find(expected, seen) + len(expected)
        if typed == "\x03":
            _await_sleep(pid)
        if typed:
            os.write(terminal, typed.encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), heard


def _await_sleep(pid: int) -> None:
    """Waits until a process sleeps on: a signal before the line editor waits shows at the next key only."""
    until = time.monotonic() + 60
    slept = None
    while time.monotonic() < until:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        sleeps = status["voluntary_ctxt_switches"] if status["State"].split()[0] == "S" else None
        if sleeps is not None and sleeps == slept:
            return
        slept = sleeps
        time.sleep(0.1)
    raise AssertionError("the command never waits for a key")
