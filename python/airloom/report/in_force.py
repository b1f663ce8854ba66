"""Table of the congestion controls, queues and traces in force."""

from __future__ import annotations

import re

from airloom.report.tables import Cell, Table, table
from airloom.results import RunReader

_PATH = re.compile(
    r"(?P<part>measurements|links)\[(?P<name>.*)\]\.(?:(?P<way>forward|backward)\.)?(?P<word>\w+)"
)
_WORDS = {"congestion": "congestion control"}
NAMES = 4
"""Maximum number of names in a row."""


def in_force(run: RunReader) -> Table:
    """Returns the settings that ``result.json`` names, one row for equal ones."""
    alike: dict[tuple[str, str], list[str]] = {}
    for path, value in run.result.in_force.items():
        found = _PATH.fullmatch(path)
        if found is None:
            alike.setdefault((path, value), []).append("")
            continue
        way = f" {found['way']}" if found["way"] else ""
        word = _WORDS.get(found["word"], found["word"])
        alike.setdefault((word, value), []).append(f"{found['name']}{way}")
    rows: list[list[str | Cell]] = []
    for (word, value), names in alike.items():
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        rows.append([word, value, ", ".join(names[:NAMES]) + more])
    return table("in-force", "In force", ["setting", "value", "of"], rows)
