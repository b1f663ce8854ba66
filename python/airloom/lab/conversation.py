"""A conversation with a live laboratory: by the prompt of its time, with a history."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from airloom.lab.repl import Prompt
from airloom.lab.virtual_prompt import VirtualPrompt

if TYPE_CHECKING:
    from airloom.lab.lab import Lab

HISTORY = 1000


def converse(lab: Lab, stdin: IO[str]) -> bool:
    """Executes commands until the end of input; returns True if all succeeded.

    A terminal has line editing, completion and a persistent history; other input is a script.
    """
    kind = VirtualPrompt if lab.plan.virtual else Prompt
    interactive = stdin.isatty()
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(errors="replace")  # invalid UTF-8 must not end the laboratory
    prompt = kind(lab, interactive=interactive)
    if not interactive:
        for line in stdin:
            if prompt.onecmd(line):
                break
        return not prompt.failed
    with History():
        while True:
            try:
                prompt.cmdloop()
                return True
            except KeyboardInterrupt:
                prompt.intro = ""
                prompt.say("^C")


class History(contextlib.ExitStack):
    """Keeps the history of commands in the user's state folder, if it is writable."""

    def __enter__(self) -> History:
        with contextlib.suppress(ImportError, OSError):
            import readline

            base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
            path = Path(base) / "airloom" / "history"
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                readline.read_history_file(path)
            readline.set_history_length(HISTORY)
            readline.set_completer_delims(" \t\n=")
            self.callback(_write_history, readline.write_history_file, path)
        return self


def _write_history(write: Callable[[Any], None], path: Path) -> None:
    with contextlib.suppress(OSError):
        write(path)
