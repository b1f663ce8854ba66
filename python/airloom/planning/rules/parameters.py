"""Parameters of a model, such as a law of propagation or a movement: which it takes and needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_


def takes(
    part: Any, allowed: dict[str, tuple[str, ...]], needed: dict[str, tuple[str, ...]], path: Path_
) -> Iterator[Problem]:
    """Yields parameters that a model does not take, and those that it lacks."""
    takes = allowed[part.model]
    cure = f"it takes {' and '.join(takes)}" if takes else "it takes none"
    for key in type(part).model_fields:
        given = getattr(part, key) is not None
        if key != "model" and given and key not in takes:
            yield Problem("model.parameter", f"{part.model!r} takes no {key!r}", (*path, key), cure, key=True)
        if not given and key in needed.get(part.model, ()):
            yield Problem("model.parameter", f"{part.model!r} needs {key!r}", path, cure)
