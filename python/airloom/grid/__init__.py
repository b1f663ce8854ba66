"""The grid manager: a service that owns a testbed's radio nodes and lends them to projects.

``inventory`` holds the nodes, ``isolation`` predicts who disturbs whom, ``admission`` finds what a
request may be granted, ``storage`` keeps everything in a database, ``reservations`` decides, ``api``
serves it over HTTP with the models of ``answers``, and ``client`` asks it. :func:`run` runs a scenario in
a reservation. Needs ``pip install 'airloom[grid]'``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from airloom import extras

if TYPE_CHECKING:
    from airloom.grid.reserved_run import run

__all__ = ["require", "run"]


def require() -> None:
    """Raises :class:`~airloom.HostError` if packages of the extra are missing."""
    extras.require("grid")


def __getattr__(name: str) -> Any:
    # Imported at its first use, since all parts of the manager import this package.
    if name == "run":
        return importlib.import_module("airloom.grid.reserved_run").run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
