"""Errors for unsupported or wrong use of Mininet's API, with the line of the script."""

from __future__ import annotations

import sys
from pathlib import Path

from airloom.errors import RunError, ScenarioError

_OWN = str(Path(__file__).resolve().parent.parent)


class Unsupported(RunError):
    """A Mininet call that Airloom does not support; ``where`` is the line of the script."""

    def __init__(self, call: str, why: str, *, cure: str | None = None) -> None:
        super().__init__("mininet.unsupported", f"{call}: {why}", where=line_of_script(), cure=cure)


class OtherTool(ScenarioError):
    """A script is for an extension of Mininet; nothing was started."""

    def __init__(self, what: str, tool: str) -> None:
        words, section = OTHER_TOOLS[tool]
        super().__init__(
            "mininet.other-tool",
            f"{what} is of {tool}, which extends Mininet: {words}",
            where=line_of_script(),
            cure=f"the documentation says what is carried over: docs/guide/coming-from.md#{section}",
        )


OTHER_TOOLS = {
    "Mininet-WiFi": (
        "sensors and other radios than 802.11 have no counterpart here",
        "mininet-wifi",
    ),
    "Containernet": (
        "fogs and virtual machines of libvirt have no counterpart here",
        "containernet",
    ),
    "IPMininet": ("routers with FRR are nodes with 'routing: ospf' of a scenario", "ipmininet"),
}
"""Extensions of Mininet by name: what has their words here, and the section of the documentation."""


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
