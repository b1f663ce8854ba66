"""What the processes of a test do when it reaches its time limit.

The report of such a test has a section with each thread below the test's process (state, kernel function in
which it waits, system call, processor time) and the end of each guest's console: a hang that appears once
in many runs of the suite must explain itself, because nobody can repeat it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from airloom.host.descendants import processes_below

CONSOLE_LINES = 15
"""Lines of each guest's console in the report."""


class Stalls:
    """Describes a test's processes before its time limit ends it, and so them."""

    @pytest.hookimpl(wrapper=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> Generator[None, Any, Any]:
        done = yield
        ended = signal.getsignal(signal.SIGALRM)
        if not callable(ended):  # pytest-timeout has a thread instead where signals cannot be used
            return done

        def described(number: int, frame: FrameType | None) -> None:
            folder = getattr(item, "funcargs", {}).get("tmp_path")
            item.add_report_section("call", "processes at the time limit", "\n".join(describe(folder)))
            ended(number, frame)

        signal.signal(signal.SIGALRM, described)
        return done


def describe(folder: Path | None) -> Iterator[str]:
    """Yields a line for each thread below this process, and the ends of consoles in a folder of results."""
    for pid in sorted(processes_below(os.getpid())[1:]):
        with contextlib.suppress(OSError):  # it may end meanwhile
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield f"{pid} {words[:160]}"
            for thread in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
                yield f"    {thread.name} {_thread(thread)}"
    for path in sorted(folder.rglob("console.log")) if folder is not None else ():
        yield f"{path}:"
        yield from path.read_text(errors="replace").splitlines()[-CONSOLE_LINES:]


def _thread(folder: Path) -> str:
    """Returns a thread's name, state, kernel function, system call and processor time."""
    name, _, rest = (folder / "stat").read_text().rpartition(")")
    fields = rest.split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    said = f"{name.partition('(')[2]}: state {fields[0]}, {seconds:.2f} s of processor time"
    for file, what in (("wchan", "waits in"), ("syscall", "system call")):
        with contextlib.suppress(OSError):
            said += f", {what} {(folder / file).read_text().strip()}"
    return said
