"""The live page of a running laboratory: ``airloom up --web`` and ``airloom run --web``.

``page`` listens to a run, ``state`` reads its nodes and engine, ``access`` admits callers, ``console``
runs shells in nodes, ``app`` has the routes and ``server`` serves them in a thread of this process.
Needs ``pip install 'airloom[web]'``.
"""

from __future__ import annotations

from importlib.util import find_spec

from airloom.errors import HostError

PACKAGES = ("starlette", "uvicorn", "websockets")
"""Modules of the extra ``web``."""


def require() -> None:
    """Raises :class:`HostError` if packages of the extra are missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise HostError(
            "host.packages",
            f"the live page needs Python packages that are missing: {', '.join(missing)}",
            cure="pip install 'airloom[web]'",
        )
