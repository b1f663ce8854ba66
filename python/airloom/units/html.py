"""Small HTML tables, as notebooks display objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: Iterable[int] = (),
) -> str:
    """Returns a table; every text is escaped. ``numeric`` are the columns that are right-aligned."""
    right = set(numeric)

    def cell(tag: str, number: int, text: object) -> str:
        side = "right" if number in right else "left"
        return f'<{tag} style="text-align: {side}">{escape(str(text))}</{tag}>'

    head = "".join(cell("th", number, name) for number, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(cell('td', number, text) for number, text in enumerate(row))}</tr>" for row in rows
    )
    said = f'<caption style="text-align: left">{escape(caption)}</caption>' if caption else ""
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def listing(texts: Iterable[str]) -> str:
    """Returns a list with an item for each text; nothing without one."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def paragraph(text: str, *, strong: str = "") -> str:
    """Returns a paragraph that begins with an emphasized text."""
    first = f"<strong>{escape(strong)}</strong> " if strong else ""
    return f"<p>{first}{escape(text)}</p>"
