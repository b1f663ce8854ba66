"""Doors between the engine and guests: listening sockets that are on no disk.

A guest's machine reaches one by the path of a descriptor that it was given, so the file itself can go
as soon as it is there, and nothing of it is left however the run ends.
"""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Door:
    """A listening socket, and what a guest's machine is given to connect to it."""

    listener: socket.socket
    knocker: int
    """A descriptor of the socket's file (``O_PATH``): connect to ``/proc/self/fd/N``."""

    @classmethod
    def open(cls) -> Door:
        """A new one, which nobody else can find."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with tempfile.TemporaryDirectory(prefix="airloom-") as folder:
            path = Path(folder, "door")
            listener.bind(str(path))
            # The machine runs as another user. Nobody else can reach the file: its folder is closed.
            path.chmod(0o666)
            listener.listen(1)
            return cls(listener, os.open(path, os.O_PATH | os.O_CLOEXEC))

    def close(self) -> None:
        """Nobody can connect any more."""
        self.listener.close()
        os.close(self.knocker)
