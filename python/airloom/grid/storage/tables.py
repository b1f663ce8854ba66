"""The tables of the grid manager. Times are whole seconds since 1970, UTC."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from airloom.grid.messages import Role, Scope, Unit, Violated

NAMES = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMES)


class Calendar(Table):
    """One row that every change locks, with the number of changes so far."""

    __tablename__ = "calendar"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)


class User(Table):
    """A person or a program that has tokens."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    admin: Mapped[bool]
    disabled: Mapped[bool]
    created: Mapped[int] = mapped_column(BigInteger)


class Token(Table):
    """A token: its public part, and the SHA-256 of its 256 secret random bits."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    digest: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[list[Scope]] = mapped_column(JSON)
    label: Mapped[str] = mapped_column(String(100))
    created: Mapped[int] = mapped_column(BigInteger)
    expires: Mapped[int] = mapped_column(BigInteger)
    revoked: Mapped[bool]

    user: Mapped[User] = relationship(lazy="joined")


class Project(Table):
    """A project, with what it may hold; None is no limit."""

    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    created: Mapped[int] = mapped_column(BigInteger)
    nodes: Mapped[int | None]
    """Most nodes at one time."""
    radio_hours: Mapped[int | None]
    """Most radio-hours that are booked and not yet over."""
    reservations: Mapped[int | None]
    """Most reservations that are booked or wait."""


class Member(Table):
    """A user's role in a project."""

    __tablename__ = "members"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True, index=True)
    role: Mapped[Role] = mapped_column(String(10))

    user: Mapped[User] = relationship(lazy="joined")
    project: Mapped[Project] = relationship(lazy="joined")


class Reservation(Table):
    """A request and, once it has one, its grant."""

    __tablename__ = "reservations"
    __table_args__ = (
        UniqueConstraint("project_id", "key"),
        Index("ix_reservations_state_end", "state", "end"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, unique=True)
    """The version of the calendar that it made: the order of the queue."""
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    key: Mapped[str | None] = mapped_column(String(64))
    """The client's own key, so that a repeated call books once."""
    slice: Mapped[str] = mapped_column(String(32))
    state: Mapped[Literal["waiting", "granted", "released", "expired"]] = mapped_column(String(10))
    created: Mapped[int] = mapped_column(BigInteger)
    start: Mapped[int] = mapped_column(BigInteger)
    end: Mapped[int] = mapped_column(BigInteger)
    latest: Mapped[int] = mapped_column(BigInteger)
    """While it waits: the latest start."""
    asked: Mapped[dict[str, Any]] = mapped_column(JSON)
    grant: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    live: Mapped[str | None] = mapped_column(String(300))
    """URL of the live page of its run."""

    project: Mapped[Project] = relationship(lazy="joined")
    user: Mapped[User] = relationship(lazy="joined")


class Violation(Table):
    """Transmissions of a radio of a reservation that violated its grant in the same way."""

    __tablename__ = "violations"

    reservation_id: Mapped[str] = mapped_column(ForeignKey("reservations.id"), primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True, index=True)
    """Milliseconds since 1970: the first one."""
    radio: Mapped[str] = mapped_column(String(127), primary_key=True)
    """``node:radio`` of the testbed."""
    what: Mapped[Violated] = mapped_column(String(10), primary_key=True)
    channel: Mapped[int] = mapped_column(primary_key=True)
    until: Mapped[int] = mapped_column(BigInteger)
    amount: Mapped[float] = mapped_column(Double)
    """By how much, in ``unit``."""
    unit: Mapped[Unit] = mapped_column(String(3))
    frames: Mapped[int] = mapped_column(BigInteger)

    reservation: Mapped[Reservation] = relationship(lazy="joined")


class Audit(Table):
    """Who did what and when; rows are only added."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger, index=True)
    user: Mapped[str] = mapped_column(String(63))
    action: Mapped[str] = mapped_column(String(40))
    project: Mapped[str | None] = mapped_column(String(63), index=True)
    subject: Mapped[str] = mapped_column(String(100))
    detail: Mapped[dict[str, Any]] = mapped_column(JSON)
