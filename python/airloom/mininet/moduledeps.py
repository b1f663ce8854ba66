"""Checks of host programs and kernel modules that Mininet scripts call first."""

from __future__ import annotations

from typing import Any

from airloom.errors import HostError
from airloom.host import programs
from airloom.mininet.errors import Unsupported


def pathCheck(*args: str, **kwargs: Any) -> None:
    """Raises an error if one of the programs is not installed."""
    for program in args:
        if programs.find(program) is None:
            what = kwargs.get("moduleName", "it")
            raise HostError("host.program.missing", f"there is no program {program}", cure=f"install {what}")


def moduleDeps(subtract: Any = None, add: Any = None) -> None:
    """Not supported: Airloom leaves the host's kernel unchanged."""
    if subtract or add:
        raise Unsupported(
            f"moduleDeps(subtract={subtract!r}, add={add!r})", "the machine's kernel is left as it is"
        )
