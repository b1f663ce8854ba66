"""A collection server: OML clients connect by TCP, and each domain becomes a SQLite file."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Any, Self

from airloom.errors import HostError, RunError, writing
from airloom.oml.database import Database
from airloom.oml.stream import Parser, StreamError, Tuple

PORT = 3003
"""The port of OML's own server."""
MOST_CONNECTIONS = 500
_PIECE = 65536
_LOOK_S = 0.3
"""How often a silent connection looks whether the server closes."""

Note = Callable[[str], None]


class Collector:
    """Serves until it is closed. ``note`` gets a line for each stream that ends or breaks a rule."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int = PORT, note: Note = lambda _: None):
        self.folder = folder
        self._note = note
        self._lock = threading.Lock()
        self._domains: dict[str, Database] = {}
        self._closing = threading.Event()
        with writing(folder, "oml.folder", "the folder", "give another --out"):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            self._server = _Server((host, port), self)
        except (OSError, OverflowError) as error:
            raise HostError(
                "oml.listen", f"cannot listen there: {error}", where=f"{host}:{port}",
                cure="give another --listen HOST:PORT",
            ) from None  # fmt: skip
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def uri(self) -> str:
        """What a client needs as ``OML_COLLECT``."""
        host, port = self._server.server_address[:2]
        return f"tcp:{host!s}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Takes no more clients, stores what was sent, and closes the files."""
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for database in self._domains.values():
            database.close()

    def serve(self, connection: socket) -> None:
        """Stores the stream of one client."""
        self._note(store(self._pieces(connection), self._domain))

    def _pieces(self, connection: socket) -> Iterator[bytes]:
        """Yields what a client sends, until it or the server closes the connection."""
        connection.settimeout(_LOOK_S)
        while True:
            try:
                piece = connection.recv(_PIECE)
            except TimeoutError:
                if self._closing.is_set():
                    return
                continue
            if not piece:
                return
            yield piece

    def _domain(self, name: str) -> Database:
        with self._lock:
            if name not in self._domains:
                self._domains[name] = Database(self.folder / f"{name}.sq3")
            return self._domains[name]


def store(pieces: Iterable[bytes], domain: Callable[[str], Database]) -> str:
    """Stores one stream, up to a line that breaks the protocol; returns a line about it.

    ``domain`` returns the database of a domain.
    """
    parser, sender, count, broken = Parser(), 0, 0, ""
    database: Database | None = None
    for piece in pieces:
        tuples: list[Tuple] = []
        try:
            for one in parser.feed(piece):
                tuples.append(one)
        except StreamError as error:
            broken = f", refused: {error}"
        if parser.begun and database is None:
            database = domain(parser.header.domain)
            sender = database.begin(parser.header, time.time())
        if database is not None:
            count += database.add(sender, parser.header, tuples, time.time())
        if broken:
            break
    said = parser.header
    return f"{said.domain or '?'}: {said.sender or '?'} {said.application}: {count} tuples{broken}"


def store_file(path: Path, folder: Path) -> str:
    """Stores a stream that a client wrote into a file; returns a line about it."""
    opened: list[Database] = []

    def domain(name: str) -> Database:
        opened.append(Database(folder / f"{name}.sq3"))
        return opened[0]

    with writing(folder, "oml.folder", "the folder", "give another --out"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("rb") as source:
            return store(iter(lambda: source.read(_PIECE), b""), domain)
    except OSError as error:
        raise RunError("oml.file", f"cannot be read: {error.strerror}", where=str(path)) from None
    finally:
        for database in opened:
            database.close()


class _Server(socketserver.ThreadingTCPServer):
    """One thread a client."""

    allow_reuse_address = True
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], collector: Collector):
        self.collector = collector
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__(address, socketserver.BaseRequestHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            with suppress(ConnectionError):
                self.collector.serve(request)
        finally:
            self._free.release()
