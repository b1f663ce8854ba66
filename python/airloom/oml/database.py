"""Tables of collected streams, with the names and columns of OML's own server.

Each domain is a SQLite file. Each schema is a table with a row for each tuple; ``oml_sender_id``
refers to ``_senders``. Times are seconds since the first sender of the domain began, which is
the row ``start_time`` of ``_experiment_metadata``. A schema that differs from the table of its
name gets a table ``NAME_2``, ``NAME_3``, ...
"""

from __future__ import annotations

import itertools
import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from airloom.errors import RunError
from airloom.oml.stream import EXPERIMENT, METADATA, Header, Schema, Tuple, Value

_KINDS = {"double": "REAL", "string": "TEXT", "blob": "BLOB", "uint64": "BLOB", "guid": "BLOB"}
"""Types of columns that are no INTEGER. A column of type BLOB keeps values as they are."""
_LARGEST = 2**63 - 1
"""SQLite's largest integer; larger ones are stored as text."""
_FIRST = (
    "oml_tuple_id INTEGER PRIMARY KEY", "oml_sender_id INTEGER", "oml_seq INTEGER", "oml_ts_client REAL",
    "oml_ts_server REAL",
)  # fmt: skip


class Database:
    """The file of one domain; threads may share it."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()
        self._tables: dict[Schema, str] = {}
        self._start = 0.0
        """Start of the domain's time in seconds since 1970; set by the first :meth:`begin`."""
        with self._writing():
            self._connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
        try:
            with self._writing(), self._connection:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS _senders (name TEXT PRIMARY KEY, id INTEGER UNIQUE)"
                )
                self._table(EXPERIMENT)
        except RunError:
            self._connection.close()
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Context manager: a failure of SQLite, such as a disk that is full, names the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(
                "oml.database", f"cannot be written: {error}", where=str(self.path),
                cure="make room there, or give another --out",
            ) from None  # fmt: skip

    def begin(self, header: Header, now: float) -> int:
        """Returns the number of a sender; the first one sets the start of the domain's time."""
        with self._lock, self._writing(), self._connection:
            name = header.sender
            self._connection.execute(
                "INSERT OR IGNORE INTO _senders VALUES (?, (SELECT COALESCE(MAX(id), 0) + 1 FROM _senders))",
                (name,),
            )
            (sender,) = self._connection.execute("SELECT id FROM _senders WHERE name = ?", (name,)).fetchone()
            stored = self._stored_start()
            if stored is None:
                stored = int(header.start if math.isfinite(header.start) and header.start > 0 else now)
                self._insert(METADATA, (sender, 0, 0.0, 0.0), (".", "start_time", str(stored)))
            self._start = float(stored)
        return int(sender)

    def add(self, sender: int, header: Header, tuples: Iterable[Tuple], now: float) -> int:
        """Stores tuples of a sender in one transaction; returns how many."""
        count = 0
        with self._lock, self._writing(), self._connection:
            for one in tuples:
                client = one.time + header.start - self._start
                place = (sender, one.sequence, client, now - self._start)
                values = [
                    str(value) if isinstance(value, int) and value > _LARGEST else value
                    for value in one.values
                ]
                self._insert(self._table(one.schema), place, values)
                count += 1
        return count

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def _stored_start(self) -> float | None:
        row = self._connection.execute(
            f"SELECT value FROM {METADATA} WHERE subject = '.' AND key = 'start_time'"
        ).fetchone()
        try:
            return None if row is None else float(row[0])
        except (TypeError, ValueError):
            raise RunError(
                "oml.database", "its start_time is no number", where=str(self.path), cure="give another --out"
            ) from None

    def _insert(self, table: str, place: tuple[int, int, float, float], values: Iterable[Value]) -> None:
        row = [None, *place, *values]
        self._connection.execute(f'INSERT INTO "{table}" VALUES ({",".join("?" * len(row))})', row)

    def _table(self, schema: Schema) -> str:
        """Returns the table of a schema, which is made if there is none. Names are checked words."""
        if schema in self._tables:
            return self._tables[schema]
        columns = [*_FIRST, *(f'"{key}" {_KINDS.get(kind, "INTEGER")}' for key, kind in schema.fields)]
        wanted = ", ".join(columns)
        for number in itertools.count(1):
            table = schema.name if number == 1 else f"{schema.name}_{number}"
            row = self._connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", (table,)
            ).fetchone()
            if row is None:
                self._connection.execute(f'CREATE TABLE "{table}" ({wanted})')
            if row is None or row[0] == f'CREATE TABLE "{table}" ({wanted})':
                break
        self._tables[schema] = table
        return table
