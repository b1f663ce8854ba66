"""The command as a user runs it, in a process of its own, with a mark by which its leavings are found.

Commands are forked (`helpers/forked.py`), unless another program starts them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import forked

COMMAND = [sys.executable, "-m", "airloom"]
TIMEOUT = 60.0
"""Seconds that a test waits for what must come; far more than it takes."""


class Shell:
    """Runs the command below a folder, and knows all processes that came of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
        self, *words: str, prefix: tuple[str, ...] = (), lasts: float = 0, input: str = "", **more
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end; ``lasts``: the seconds that it takes by its nature."""
        timeout = TIMEOUT + lasts
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
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A place to run the command in."""
    shell = Shell(tmp_path)
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
