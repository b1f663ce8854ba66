"""A collection server: OML clients connect by TCP, and each domain becomes a SQLite file."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import SHUT_RDWR, socket
from types import TracebackType
from typing import Any, Self

from airloom.errors import HostError, LabError, RunError, writing
from airloom.host import files
from airloom.oml.database import Database
from airloom.oml.stream import Parser, StreamError, Tuple

PORT = 3003
"""The port of OML's own server."""
MOST_CONNECTIONS = 500
"""Streams at a time. One more ends the stream that has been silent longest, of the address with the most."""
MOST_DOMAINS = 64
"""Domains that are open at a time: each has a file and its log."""
MOST_FILES = 1000
"""Domains that a collector makes: files in its folder."""
HEAD_S = 10.0
"""Seconds for the headers of a stream."""
_LAST_S = 1.0
"""How long the server takes in what has been sent, when it ends."""
_PIECE = 65536
_LOOK_S = 0.3
"""How often a silent connection looks whether the server closes."""

Note = Callable[[str], None]


@dataclass(slots=True)
class _Domain:
    """The file of a domain and the number of its streams."""

    streams: int = 0
    database: Database | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Collector:
    """Serves until it is closed. ``note`` gets a line for each stream that ends or breaks a rule."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int = PORT, note: Note = lambda _: None):
        self.folder = folder
        self._note = note
        self._lock = threading.Lock()
        self._domains: dict[str, _Domain] = {}
        self._made: set[str] = set()
        self._closing = threading.Event()
        self._end = 0.0
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
        self._end = time.monotonic() + _LAST_S
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self, connection: socket, heard: Callable[[], None]) -> None:
        """Stores the stream of one client; ``heard`` is called whenever it says something."""
        stream = Stream(self._opened, self._released)
        with contextlib.closing(stream):
            for piece in self._pieces(connection, stream):
                heard()
                if not stream.take(piece):
                    break
        self._note(stream.said())

    def failed(self, error: LabError) -> None:
        """Tells of a stream that could not be stored."""
        self._note(str(error))

    def _pieces(self, connection: socket, stream: Stream) -> Iterator[bytes]:
        """Yields what a client sends, until it or the server closes the connection."""
        connection.settimeout(_LOOK_S)
        head = time.monotonic() + HEAD_S
        while not self._closing.is_set() or time.monotonic() < self._end:
            if not stream.begun and time.monotonic() > head:
                return
            try:
                piece = connection.recv(_PIECE)
            except TimeoutError:
                if self._closing.is_set():
                    return
                continue
            if not piece:
                return
            yield piece

    def _opened(self, name: str) -> Database:
        """Returns the database of a domain, which is open until it is released as often."""
        with self._lock:
            domain = self._domains.get(name)
            if domain is None:
                there = name in self._made or (self.folder / f"{name}.sq3").exists()
                if len(self._domains) >= MOST_DOMAINS or (not there and len(self._made) >= MOST_FILES):
                    raise RunError(
                        "oml.domains", f"too many domains: {MOST_DOMAINS} at a time, {MOST_FILES} in all",
                        where=name, cure="end streams of others, or start a collector with another --out",
                    )  # fmt: skip
                domain = self._domains[name] = _Domain()
                self._made.add(name)
            domain.streams += 1
        try:
            with domain.lock:
                if domain.database is None:
                    domain.database = Database(self.folder / f"{name}.sq3")
                return domain.database
        except LabError:
            self._released(name)
            raise

    def _released(self, name: str) -> None:
        with self._lock:
            domain = self._domains[name]
            domain.streams -= 1
            if domain.streams == 0:
                del self._domains[name]
                if domain.database is not None:
                    domain.database.close()


class Stream:
    """Stores one stream, up to a line that breaks the protocol."""

    def __init__(self, opened: Callable[[str], Database], released: Callable[[str], None]) -> None:
        """``opened`` returns the database of a domain, and ``released`` gives it back."""
        self._parser = Parser()
        self._opened = opened
        self._released = released
        self._database: Database | None = None
        self._sender = 0
        self._count = 0
        self._broken = ""

    @property
    def begun(self) -> bool:
        """Whether the headers are complete."""
        return self._parser.begun

    def take(self, piece: bytes) -> bool:
        """Stores what is complete; False if the stream ends here. Raises what a database raises."""
        parser, tuples = self._parser, list[Tuple]()
        try:
            for one in parser.feed(piece):
                tuples.append(one)
        except StreamError as error:
            self._broken = f", refused: {error}"
        if parser.begun and self._database is None:
            self._database = self._opened(parser.header.domain)
            self._sender = self._database.begin(parser.header, time.time())
        if self._database is not None:
            self._count += self._database.add(self._sender, parser.header, tuples, time.time())
        return not self._broken

    def said(self) -> str:
        """Returns a line about it."""
        said = self._parser.header
        what = f"{said.domain or '?'}: {said.sender or '?'} {said.application}"
        return f"{what}: {self._count} tuples{self._broken}"

    def close(self) -> None:
        """Gives the database back."""
        if self._database is not None:
            self._database = None
            self._released(self._parser.header.domain)


def store_file(path: Path, folder: Path) -> str:
    """Stores a stream that a client wrote into a file; returns a line about it."""
    opened: list[Database] = []

    def open_domain(name: str) -> Database:
        opened.append(Database(folder / f"{name}.sq3"))
        return opened[0]

    with writing(folder, "oml.folder", "the folder", "give another --out"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        stream = Stream(open_domain, lambda _: opened[0].close())
        with contextlib.closing(stream), files.reader(path) as source:
            while (piece := source.read(_PIECE)) and stream.take(piece):
                pass
            return stream.said()
    except OSError as error:
        raise RunError("oml.file", f"cannot be read: {error.strerror}", where=str(path)) from None


class _Server(socketserver.ThreadingTCPServer):
    """One thread a client."""

    allow_reuse_address = True
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], collector: Collector):
        self.collector = collector
        self._heard: dict[str, dict[socket, None]] = {}
        """Connections by address, the one that has been silent longest first."""
        self._lock = threading.Lock()
        super().__init__(address, socketserver.BaseRequestHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._hear(request, client_address[0])
        with self._lock:
            while sum(map(len, self._heard.values())) > MOST_CONNECTIONS:
                self._drop(max(self._heard, key=lambda address: len(self._heard[address])))
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        address = client_address[0]
        try:
            with suppress(OSError):
                self.collector.serve(request, lambda: self._hear(request, address))
        except LabError as error:
            self.collector.failed(error)
        finally:
            with self._lock:
                self._forget(request, address)

    def _hear(self, request: socket, address: str) -> None:
        with self._lock:
            self._forget(request, address)
            self._heard.setdefault(address, {})[request] = None

    def _drop(self, address: str) -> None:
        """Ends the connection of an address that has been silent longest."""
        silent = next(iter(self._heard[address]))
        self._forget(silent, address)
        with suppress(OSError):
            silent.shutdown(SHUT_RDWR)

    def _forget(self, request: socket, address: str) -> None:
        here = self._heard.get(address, {})
        here.pop(request, None)
        if not here:
            self._heard.pop(address, None)
