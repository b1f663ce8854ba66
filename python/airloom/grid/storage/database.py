"""Opens the database, and changes it in transactions that follow one another.

A change locks the calendar's row first (SQLite: the database), so changes are serial whatever the
isolation level, also of several processes. It is on the disk before the caller hears of it: SQLite
runs with a write-ahead log and ``synchronous=FULL``; PostgreSQL with its own defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session

from airloom.errors import HostError, RunError, ScenarioError
from airloom.grid.storage.tables import Calendar

BUSY_S = 30
"""How long a change waits for the one before it."""
CONNECTIONS = 20
_ONE_AT_A_TIME = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(20120806)"}
"""Statement at the start of migrations that keeps other processes from migrating at the same time."""


class Database:
    """The grid manager's database."""

    def __init__(self, url: str):
        self.url = _url(url)
        self.engine = _engine(self.url)

    def upgrade(self) -> None:
        """Creates the tables, or brings them to this version; raises an error if they are newer."""
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            with self.engine.connect() as connection:
                connection.exec_driver_sql(_ONE_AT_A_TIME[self.engine.dialect.name])
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
                connection.commit()
        except CommandError as error:
            head = ScriptDirectory.from_config(config).get_current_head()
            raise RunError(
                "grid.database",
                f"the database is of a newer version than this program, which knows {head}: {error}",
                cure="serve it with the version of Airloom that wrote it",
            ) from None
        except DBAPIError as error:
            raise _failed(error, self.url) from None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that reads."""
        with Session(self.engine) as session:
            yield session

    @contextmanager
    def changing(self) -> Iterator[Session]:
        """A transaction that changes; it is committed at the end, and not at all after an error."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            if self.engine.dialect.name == "sqlite":
                session.connection().exec_driver_sql("BEGIN IMMEDIATE")
            calendar = session.scalars(select(Calendar).with_for_update()).one()
            session.info["calendar"] = calendar
            yield session

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


def touch(session: Session) -> int:
    """Counts a change of what is held or waits; returns the calendar's new version."""
    calendar: Calendar = session.info["calendar"]
    calendar.version += 1
    return calendar.version


def version(session: Session) -> int:
    """Returns the calendar's version."""
    return session.scalars(select(Calendar.version)).one()


def _url(text: str) -> URL:
    """Returns the URL of a database; a plain path is a file of SQLite."""
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ScenarioError(
            "grid.database",
            "the database is neither SQLite nor PostgreSQL",
            where="--database",
            cure="a path, or postgresql://USER:PASSWORD@HOST/NAME",
        )
    return url.set(drivername="postgresql+psycopg") if url.get_backend_name() == "postgresql" else url


def _engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() == "sqlite":
            engine = create_engine(
                url, connect_args={"timeout": BUSY_S, "check_same_thread": False}, pool_size=CONNECTIONS,
                max_overflow=CONNECTIONS, pool_timeout=BUSY_S,
            )  # fmt: skip
            event.listen(engine, "connect", _configure_sqlite)
            return engine
        return create_engine(
            url, pool_size=CONNECTIONS, max_overflow=CONNECTIONS, pool_timeout=BUSY_S, pool_pre_ping=True,
            connect_args={"connect_timeout": BUSY_S, "options": f"-c lock_timeout={BUSY_S}s"},
        )  # fmt: skip
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise HostError(
            "host.packages", f"the database's driver is missing: {error}", cure="pip install 'airloom[grid]'"
        ) from None


def _configure_sqlite(connection: Any, _: Any) -> None:
    # The driver begins no transaction by itself: `changing` begins one that excludes others.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _failed(error: DBAPIError, url: URL) -> RunError:
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    return RunError(
        "grid.database",
        f"the database {url.render_as_string(hide_password=True)} cannot be used: {reason}",
        cure="name one that can be reached and written with --database",
    )
