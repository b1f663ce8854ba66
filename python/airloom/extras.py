"""Extras: packages of Python that only some parts need, as in ``pip install 'airloom[report]'``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from airloom.errors import HostError

Extra = Literal["grid", "report", "web"]
PACKAGES: dict[Extra, tuple[str, ...]] = {
    "grid": ("alembic", "fastapi", "httpx2", "ortools", "psycopg", "sqlalchemy", "uvicorn"),
    "report": ("jinja2", "matplotlib", "networkx", "pandas"),
    "web": ("networkx", "starlette", "uvicorn", "websockets"),
}
"""Modules of each extra."""
SERVES: dict[Extra, str] = {
    "grid": "the grid manager",
    "report": "reports, plots, tables of pandas, templates and files of graphs",
    "web": "the live page",
}
"""What each extra is for."""


def require(extra: Extra) -> None:
    """Raises :class:`HostError` if packages of the extra are missing."""
    missing = [name for name in PACKAGES[extra] if find_spec(name) is None]
    if missing:
        raise _missing(extra, missing)


def error_of(module: str | None) -> HostError | None:
    """Returns the error for a module that could not be imported; None if it is of no extra."""
    package = (module or "").partition(".")[0]
    for extra, packages in PACKAGES.items():
        if package in packages:
            return _missing(extra, [package])
    return None


def _missing(extra: Extra, packages: list[str]) -> HostError:
    return HostError(
        "host.packages",
        f"Python packages are missing for {SERVES[extra]}: {', '.join(packages)}",
        cure=f"pip install 'airloom[{extra}]'",
    )
