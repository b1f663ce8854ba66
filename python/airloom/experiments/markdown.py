"""Markdown of the pages of published results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100
"""Columns at which prose wraps."""


def prose(text: str) -> str:
    """Returns a paragraph, wrapped."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def items(texts: Iterable[str]) -> str:
    """Returns a list, each item wrapped."""
    return "\n".join(
        textwrap.fill(
            f"- {one}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for one in texts
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of Markdown; :func:`cell` makes one of any text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Returns text without what would end a cell, a link's text, or begin an element."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "(").replace("]", ")")
