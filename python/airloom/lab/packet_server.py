"""A server of JSON messages in packets on a Unix socket, with descriptors beside them.

The messages and their errors are those of :mod:`airloom.lab.messages`. The server of a running
laboratory for other terminals and the shared laboratory of a testbed are both such a server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from airloom.errors import LabError, RunError
from airloom.lab.messages import error_of, send
from airloom.lab.running import TIMEOUT

Serve = Callable[[socket.socket], None]
"""Serves one client to its end. An error that it raises is sent to the client."""


class PacketServer:
    """Accepts clients until closed. Each has a thread; an exception in it ends only that connection."""

    def __init__(self, listening: socket.socket, serve: Serve, *, most: int) -> None:
        """Does not listen yet; ``most``: the most clients at a time, more are disconnected."""
        self._socket = listening
        self._serve = serve
        self._most = most
        self._clients: set[socket.socket] = set()
        self._lock = threading.RLock()  # `close` is called by signal handlers too
        self._closing = False

    def accept(self) -> list[threading.Thread]:
        """Accepts clients until :meth:`close`; returns the threads of those that are still served."""
        threads: list[threading.Thread] = []
        while not self._closing:
            try:
                client, _ = self._socket.accept()
            except OSError:
                break
            threads = [thread for thread in threads if thread.is_alive()]
            with self._lock:
                admitted = not self._closing and len(self._clients) < self._most
                if admitted:
                    self._clients.add(client)
            if not admitted:
                client.close()
                continue
            threads.append(threading.Thread(target=self._connection, args=(client,), daemon=True))
            threads[-1].start()
        self.close()
        return threads

    def close(self) -> None:
        """Ends :meth:`accept` and disconnects all clients. Callable from any thread."""
        with self._lock:
            self._closing = True
            clients = list(self._clients)
        for one in (self._socket, *clients):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _connection(self, client: socket.socket) -> None:
        try:
            client.settimeout(TIMEOUT)
            try:
                self._serve(client)
            except LabError as error:
                send(client, error_of(error))
            except OSError:
                raise
            except Exception as error:
                message = f"the laboratory cannot do that: {type(error).__name__}: {error}"
                send(client, error_of(RunError("live.failed", message)))
        except OSError:
            pass  # the client disconnected
        finally:
            with self._lock:
                self._clients.discard(client)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # wakes another thread that receives from it
            client.close()
