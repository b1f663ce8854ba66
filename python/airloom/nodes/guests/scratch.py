"""The folder for the memory and the sockets of guests without namespaces.

Guests with namespaces have an empty ``/dev/shm`` each.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from airloom.errors import HostError
from airloom.planning.plan import NodePlan


def folder_for(nodes: Iterable[NodePlan]) -> Path:
    """A path for a new folder, in the first file system in which the guests of these nodes can run.

    A guest maps its memory from there, also as code, so that the file system must have room for all of
    them and must not be mounted with ``noexec``. Raises :class:`~airloom.errors.HostError` if none is
    like that.
    """
    needed = sum({node.guest.shared or node.name: node.guest.memory for node in nodes if node.guest}.values())
    refused = []
    for place in dict.fromkeys(("/dev/shm", tempfile.gettempdir(), "/var/tmp")):
        why = _unfit(place, needed)
        if why is None:
            return Path(place, f"airloom-{os.getpid()}-{secrets.token_hex(4)}")
        refused.append(f"{place} {why}")
    raise HostError(
        "host.scratch",
        f"guests without namespaces need {needed >> 20} MiB for their memory: {', '.join(refused)}",
        cure="set TMPDIR to a folder with room that is not mounted with noexec",
    )


def _unfit(place: str, needed: int) -> str | None:
    """Why guests cannot have their memory there; None if they can."""
    try:
        about = os.statvfs(place)
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if not os.access(place, os.W_OK | os.X_OK):
        return "is closed to this user"
    if about.f_flag & os.ST_NOEXEC:
        return "is mounted with noexec"
    room = about.f_bavail * about.f_frsize
    return None if room >= needed else f"has {room >> 20} MiB"
