"""Opens the file of a scenario, or of a laboratory of another tool."""

from __future__ import annotations

from pathlib import Path

from airloom.errors import ScenarioError
from airloom.host.files import content
from airloom.scenario.source import LARGEST_FILE, Source


def source_of(path: Path) -> Source:
    """Returns the values and marks of a file.

    A laboratory of another tool is read if nothing of it is lost.
    """
    return _of_another_tool(path) or Source.of_file(path)


def _of_another_tool(path: Path) -> Source | None:
    # Imported here: a scenario needs none of it.
    from airloom.scenario import imports

    try:
        form = imports.foreign(path, content(path, LARGEST_FILE))
    except (OSError, ValueError):
        return None
    if form is None:
        return None
    draft = imports.convert(path)
    if draft.lost:
        rest = f"; and {len(draft.lost) - 3} more" if len(draft.lost) > 3 else ""
        raise ScenarioError(
            "import.lossy",
            f"the file is {form.name}, and not all of it can be carried over: "
            f"{'; '.join(draft.lost[:3])}{rest}",
            where=str(path),
            cure=f"'airloom import {path.name} --out scenario.yaml' writes a scenario without that",
        )
    return Source(draft.data, str(path), path.parent)
