"""Asking the engine whether it takes settings, which is the one place that knows their ranges."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom._engine import EngineError


def asked(check: Callable[[ModuleType], object]) -> EngineError | None:
    """What the engine objects to; ``check`` gets its module.

    It is loaded here, so that a scenario with nothing to ask does without.
    """
    from airloom import _engine

    try:
        check(_engine)
    except _engine.EngineError as error:
        return error
    return None
