"""The live page of a running laboratory: ``airloom up --web`` and ``airloom run --web``.

``page`` listens to a run, ``state`` reads its nodes and engine, ``access`` admits callers, ``console``
runs shells in nodes, ``app`` has the routes and ``server`` serves them in a thread of this process.
Needs ``pip install 'airloom[web]'``.
"""

from __future__ import annotations

from airloom import extras


def require() -> None:
    """Raises :class:`~airloom.HostError` if packages of the extra are missing."""
    extras.require("web")
