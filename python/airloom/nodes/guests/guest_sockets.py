"""Sockets between the engine and guests' machines: listening sockets without a path on disk.

A guest's machine connects through the path of an inherited descriptor. The socket file can
therefore be deleted at once, and nothing remains however the run ends.
"""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GuestSocket:
    """A listening socket, and the descriptor through which a guest's machine connects to it."""

    listener: socket.socket
    path: int
    """A descriptor of the socket's file (``O_PATH``): connect to ``/proc/self/fd/N``."""

    @classmethod
    def open(cls) -> GuestSocket:
        """Creates a socket that no other process can reach by path."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with tempfile.TemporaryDirectory(prefix="airloom-") as folder:
            file = Path(folder, "guest")
            listener.bind(str(file))
            # The machine runs as another user. No other process can reach the file: its folder is
            # private.
            file.chmod(0o666)
            listener.listen(1)
            return cls(listener, os.open(file, os.O_PATH | os.O_CLOEXEC))

    def close(self) -> None:
        """Closes the socket; no more connections are possible."""
        self.listener.close()
        os.close(self.path)
