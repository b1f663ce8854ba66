"""The second half of ``airloom run --verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.cli.console import Console
    from airloom.planning.capture import Capture
    from airloom.planning.gate import Experiment


def verified(
    console: Console,
    experiment: Experiment,
    folder: Path,
    *,
    capture: bool | Capture,
    tries: int,
    quiet: bool,
) -> None:
    """Runs an experiment once more on a disturbed machine, and compares it with its run in ``folder``.

    Raises :class:`~airloom.compare.identical.DifferentError` if anything differs.
    """
    from airloom.cli.display import Display
    from airloom.compare.identical import DifferentError, compare
    from airloom.runs.batch import execute
    from airloom.runs.disturbance import disturbed

    second = folder.with_name(f"{folder.name}-verified")
    with Display(console, quiet=quiet) as display, disturbed():
        display.phase("once more, on a disturbed machine")
        execute(experiment, second, capture=capture, resume=False, tries=tries, watcher=display)
    found = compare(folder, second)
    if found.differences:
        raise DifferentError(found, (folder, second))
    console.print(f"identical: {found.files} files, {found.frames:,} frames", soft_wrap=True)
