"""Errors for unsupported or wrong use of Mininet's API, with the line of the script."""

from __future__ import annotations

import sys
from pathlib import Path

from airloom.errors import RunError

_OWN = str(Path(__file__).resolve().parent.parent)


class Unsupported(RunError):
    """A Mininet call that Airloom does not support; ``where`` is the line of the script."""

    def __init__(self, call: str, why: str, *, cure: str | None = None) -> None:
        super().__init__("mininet.unsupported", f"{call}: {why}", where=line_of_script(), cure=cure)


class Misused(RunError):
    """A call with invalid arguments; ``where`` is the line of the script."""

    def __init__(self, code: str, message: str, *, cure: str | None = None) -> None:
        super().__init__(f"mininet.{code}", message, where=line_of_script(), cure=cure)


def line_of_script() -> str | None:
    """Returns the nearest caller outside of Airloom, as ``script.py:12``; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if Path(name).name in ("cmd.py", "runpy.py"):
            return None  # typed at the prompt, or no script
        if not name.startswith((_OWN, "<frozen", "<string>")):
            return f"{Path(name).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


NO_FLOW_TABLES = (
    "the engine's switches learn addresses by themselves and have no flow tables; an Open vSwitch has"
)
