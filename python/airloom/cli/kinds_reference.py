"""The table of kinds in docs/guide/kinds.md, written from what the kinds declare.

``python -m airloom.cli.kinds_reference docs/guide/kinds.md`` renews it; the words around it are the page's own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from airloom.nodes.all_nodes import KINDS

BEGIN, END = "<!-- from the kinds themselves -->", "<!-- end -->"
_NATURE = ("taxonomy", "backend", "start", "memory", "porting", "isolation", "transparency", "flexibility")
_PROPERTIES = {
    "own_kernel": "kernel of its own",
    "engine": "interfaces are the engine's ports",
    "cpu_share": "processor share",
    "pause": "pause",
    "virtual_time": "virtual time",
}


def tables() -> str:
    """What each kind is and can do, as Markdown."""
    lines = []
    for name, kind in KINDS.items():
        lines += [f"### `{name}`", "", "| | |", "| --- | --- |"]
        lines += [f"| {word} | {getattr(kind.nature, word)} |" for word in _NATURE]
        lines += [
            f"| writes to the host's files | {'no' if kind.nature.own_files else 'as its user may'} |",
            "",
        ]
    head = ["kind", *_PROPERTIES.values()]
    lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name, kind in KINDS.items():
        can = ["yes" if getattr(kind.properties, word) else "no" for word in _PROPERTIES]
        lines.append(f"| `{name}` | {' | '.join(can)} |")
    return "\n".join(lines)


def renewed(page: str) -> str:
    """A page with the tables between their marks written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text()))
