"""The console for all output of the command line.

Text comes from scenarios, nodes, files and paths, and must not act as markup or terminal control:
the console prints ``[...]`` literally, and shows control characters instead of sending them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from airloom.units.text import visible


class Console(rich.console.Console):
    """Rich's console without markup, emoji codes and automatic colours; styles are objects."""

    def __init__(self, *, stderr: bool = False, **more: Any) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, **more)

    def render_str(self, text: str, **more: Any) -> Text:
        """Returns literal text with visible control characters, before its width is measured."""
        return super().render_str(visible(text), **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Makes control characters in rendered text visible; the console's own controls stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def status(self, status: RenderableType, **more: Any) -> Status:
        """Returns a status of literal text."""
        return _Status(literal(status), console=self, **more)


class _Status(Status):
    """Rich's status, which reads text as markup, with literal text."""

    def update(self, status: RenderableType | None = None, **more: Any) -> None:
        super().update(None if status is None else literal(status), **more)


def literal(text: RenderableType) -> RenderableType:
    """Returns text that a part of rich with markup of its own shows as it is."""
    return Text(visible(text)) if isinstance(text, str) else text


def say(text: object, *, error: bool = False, file: IO[str] | None = None) -> None:
    """Prints a line of plain text."""
    print(visible(str(text)), file=file or (sys.stderr if error else sys.stdout), flush=True)
