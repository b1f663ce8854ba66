"""Result tables at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.cli.console import Console
    from airloom.planning.capture import Capture
    from airloom.planning.plan import Plan
    from airloom.results import Result


def show_result(console: Console, folder: Path) -> Result | None:
    """Prints a folder of results; returns its ``result.json`` if it is readable."""
    from rich.text import Text

    from airloom.errors import RunError
    from airloom.report.terminal import render
    from airloom.results import RunReader
    from airloom.units.figures import readable

    try:
        run = RunReader(folder)
    except RunError:
        return None
    console.print(render(run))
    captured = run.details.captured
    if captured is not None:
        size = readable(captured.octets, "octets", 3)
        console.print(f"captured {captured.frames:,} frames, {size}", soft_wrap=True)
    console.print(Text.assemble("results in ", (str(folder), "bold")), soft_wrap=True)
    return run.result


def tell_capture(
    console: Console, capture: Capture, plans: Sequence[Plan], folder: Path, *, quiet: bool
) -> None:
    """Prints how large the captures of all runs become at most, and whether the disk has that space."""
    import shutil

    from airloom.units.figures import readable

    octets = sum(capture.octets(plan) for plan in plans)
    if quiet or not octets:
        return
    free = shutil.disk_usage(next(path for path in folder.resolve().parents if path.exists())).free
    room = f"; the disk has {readable(free, 'octets', 3)}" if octets > free else ""
    radios = ", without frames of radios" if any(plan.media for plan in plans) else ""
    said = f"captures of measurements: at most about {readable(octets, 'octets', 3)}{radios}{room}"
    console.print(said, soft_wrap=True)
