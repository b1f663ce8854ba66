"""Lets the engine validate settings; their ranges are defined only there."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from airloom.planning import tables

if TYPE_CHECKING:
    from airloom._engine import EngineError


def asked(check: Callable[[ModuleType], object]) -> EngineError | None:
    """Returns the engine's error, or None; ``check`` is called with the extension module.

    The module is imported here, so a scenario with nothing to check does not load it.
    """
    from airloom import _engine

    try:
        check(_engine)
    except _engine.EngineError as error:
        return error
    return None


def refusal(check: Callable[[ModuleType], object]) -> tuple[str, str] | None:
    """Returns the code and message of the engine, or of the reader of a file; None if accepted."""
    try:
        error = asked(check)
    except tables.TableError as unreadable:
        return unreadable.code, unreadable.message
    return None if error is None else (str(error.args[0]), str(error.args[1]))
