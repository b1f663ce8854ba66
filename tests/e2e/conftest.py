"""The command as a user runs it, in a process of its own, with a mark by which its leavings are found.

Commands are forked (`helpers/forked.py`), unless another program starts them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import forked
from helpers.order import limit_of

COMMAND = [sys.executable, "-m", "airloom"]
TIMEOUT = 60.0
"""Seconds that a test waits for what must come; far more than it takes."""
RESERVE = 10.0
"""Seconds of a test's time limit that are kept to say which command did not end, and to clean up."""


class Shell:
    """Runs the command below a folder, and knows all processes that came of it."""

    def __init__(self, folder: Path, limit: float) -> None:
        """``limit``: the time limit in seconds of the test."""
        self.folder = folder
        self.until = time.monotonic() + limit - RESERVE
        self.mark = f"AIRLOOM_TEST_MARK={uuid.uuid4().hex}"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        name, _, value = self.mark.partition("=")
        self.env = {
            **os.environ,
            name: value,
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }

    def run(
        self, *words: str, prefix: tuple[str, ...] = (), input: str = "", **more
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end, within the time limit of the test."""
        timeout = self.until - time.monotonic()
        if not prefix and not more:
            return forked.run(words, self.folder, self.env, timeout, input)
        return subprocess.run(
            [*prefix, *COMMAND, *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            input=input,
            **more,
        )

    @contextlib.contextmanager
    def up(self, path: str, *nodes: str) -> Iterator[forked.Started]:
        """A laboratory with these nodes that is up, talked to through its standard input."""
        process = self.start("up", path, "--out", "results", stdin=subprocess.PIPE)
        process.stdin.write("nodes\n")
        process.stdin.flush()
        assert process.stdout.readline().split() == ["nodes:", *nodes]
        yield process
        if process.poll() is None:
            process.stdin.write("exit\n")
            process.stdin.flush()
        process.communicate(timeout=60)
        self.gone()

    def start(self, *words: str, **streams) -> forked.Started:
        """Starts the command, for a test that talks to it, or ends it."""
        return forked.Started(words, self.folder, self.env, **streams)

    def leftovers(self) -> dict[int, str]:
        """Processes that bear the mark: process id, command."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has just ended
        return found

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"never: {what}")
            time.sleep(0.02)

    def gone(self) -> None:
        """Asserts that nothing is left; the kernel may take a moment to end what it was told to."""
        self.wait_until(lambda: not self.leftovers(), f"everything ended; left: {self.leftovers()}")
        assert list(self.temporary.iterdir()) == []


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A place to run the command in."""
    shell = Shell(tmp_path, limit_of(request.node))
    yield shell
    for pid in shell.leftovers():
        os.kill(pid, 9)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], str]:
    """Writes a scenario; its path."""

    def write(text: str) -> str:
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        return str(path)

    return write
