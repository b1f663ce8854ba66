"""The scenario model and its reader. :mod:`airloom.planning.gate` checks and plans scenarios.

Names are imported at their first use: other modules of this package need no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airloom.scenario.model import Scenario
    from airloom.scenario.reader import read

__all__ = ["Scenario", "read"]


def __getattr__(name: str) -> Any:
    if name == "Scenario":
        from airloom.scenario.model import Scenario

        return Scenario
    if name == "read":
        from airloom.scenario.reader import read

        return read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
