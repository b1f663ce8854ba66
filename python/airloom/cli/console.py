"""The terminal: what everything that the command line prints passes through.

Text comes from scenarios, nodes, files and paths, and none of it is markup or a terminal's control: the
console takes ``[...]`` as it stands, and shows control characters instead of sending them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from airloom.units.text import visible


class Console(rich.console.Console):
    """Rich's console without markup, emoji codes and guessed colours; styles are given by objects."""

    def __init__(self, *, stderr: bool = False, **more: Any) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, **more)

    def render_str(self, text: str, **more: Any) -> Text:
        """Text as it stands, control characters shown: before its width is reckoned with."""
        return super().render_str(visible(text), **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is drawn; the console's own controls are segments of another kind."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def say(text: object, *, error: bool = False, file: IO[str] | None = None) -> None:
    """Prints a line of plain text."""
    print(visible(str(text)), file=file or (sys.stderr if error else sys.stdout), flush=True)
