"""The verdict of each network as a file, for programs that run scripts and read no logs."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from airloom.errors import writing
from airloom.verdict import Verdict

FOLDER = "AIRLOOM_VERDICTS"
"""Environment variable that names the folder; nothing is written without it."""

_NUMBERS = itertools.count(1)


def write(verdict: Verdict) -> None:
    """Writes ``verdict-PID-N.json`` for the N-th network of this process.

    The file has ``status``, ``reasons``, ``codes`` and ``notes``, as ``verdict`` of a ``result.json``.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    path = Path(folder) / f"verdict-{os.getpid()}-{next(_NUMBERS)}.json"
    with writing(path, "mininet.verdicts", "the verdict", f"set {FOLDER} to a folder that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(verdict.model_dump_json(indent=2) + "\n")
