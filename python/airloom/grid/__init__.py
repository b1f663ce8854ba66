"""The grid manager: a service that owns a testbed's radio nodes and lends them to projects.

``inventory`` holds the nodes, ``isolation`` predicts who disturbs whom, ``admission`` finds what a
request may be granted, ``storage`` keeps everything in a database, ``office`` decides, ``api`` serves
it over HTTP, and ``client`` asks it. Needs ``pip install 'airloom[grid]'``.
"""

from __future__ import annotations

from importlib.util import find_spec

from airloom.errors import HostError

PACKAGES = ("alembic", "fastapi", "httpx2", "ortools", "psycopg", "sqlalchemy", "uvicorn")
"""Modules of the extra ``grid``."""


def require() -> None:
    """Raises :class:`HostError` if packages of the extra are missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise HostError(
            "host.packages",
            f"the grid manager needs Python packages that are missing: {', '.join(missing)}",
            cure="pip install 'airloom[grid]'",
        )
