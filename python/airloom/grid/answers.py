"""Answers of the grid manager: what its routes return, what its description says, what its client reads.

A reader ignores keys of later releases. Times are ISO 8601 with a time zone, in whole seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from airloom.grid.grants import Grant
from airloom.grid.messages import Quota, Role, Scope, Unit, Violated
from airloom.scenario.model import Medium

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
State = Literal["waiting", "booked", "active", "ended", "released", "expired"]
Radios = Annotated[dict[str, tuple[str, ...]], Field(description="names of radios by node")]


class _OfScenario:
    """Describes an object as `media` of a scenario has it."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(Medium.__pydantic_core_schema__)


class Part(BaseModel):
    """Base of all answers and their parts."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Health(Part):
    """The service and its database answer."""

    status: Literal["ok"] = "ok"
    version: str
    testbed: str
    """Name of the inventory."""


class Window(Part):
    """A window of time."""

    start: Time
    end: Time


# Errors


class Mistake(Part):
    """One mistake in a call."""

    code: str
    """Stable and dotted, such as ``window.empty``."""
    message: str
    where: str | None = None
    """The place in the body or the query."""
    cure: str | None = None


class Error(Mistake):
    """A call was refused; nothing was changed. Absent keys have nothing to say."""

    proven: bool | None = None
    """Of a refused reservation: whether it is proven that there is none."""
    nearest: Window | None = None
    """The nearest possible window."""
    latest_end: Time | None = None
    """Of a refused extension: until when it is possible."""
    further: tuple[Mistake, ...] | None = None
    """Further mistakes in the same call."""

    def plain(self) -> dict[str, Any]:
        """Returns the error as data for JSON."""
        return self.model_dump(mode="json", exclude_none=True)


# Accounts and projects


class Me(Part):
    """Who calls."""

    user: str
    admin: bool
    scopes: tuple[Scope, ...]
    projects: dict[str, Role]
    """Role by project."""


class User(Part):
    """A user."""

    name: str
    admin: bool
    disabled: bool
    created: Time


class Token(Part):
    """A token, without its text."""

    id: str
    label: str
    scopes: tuple[Scope, ...]
    created: Time
    expires: Time
    revoked: bool


class MadeToken(Token):
    """A token that was made now."""

    user: str
    token: str
    """Its text, which no other answer has."""


class Project(Part):
    """A project."""

    name: str
    quota: Quota
    members: dict[str, Role]
    """Role by user."""


class AuditRow(Part):
    """Who did what."""

    id: int
    at: Time
    user: str
    action: str
    project: str | None
    subject: str
    detail: dict[str, Any]
    """By the action."""


# The testbed


class TimeDivision(Part):
    """The frame of time division."""

    frame: int
    """Number of slots."""
    length_ns: int
    guard_ns: int


class Node(Part):
    """A radio node that is lent."""

    position_m: tuple[float, float, float]
    radios: tuple[str, ...]
    noise_dbm: dict[str, float]
    """By channel."""


class Inventory(Part):
    """The nodes, channels and slots that are lent."""

    name: str
    description: str
    phy: str
    medium: Annotated[dict[str, Any], _OfScenario]
    """As ``media`` of a scenario; settings with their defaults are absent."""
    channels: tuple[int, ...]
    power_dbm: float
    isolation_db: float
    slots: TimeDivision
    nodes: dict[str, Node]


class _Taken(Window):
    radios: Radios
    channels: tuple[int, ...]
    slots: tuple[int, ...]


class Taken(_Taken):
    """What a reservation of a project of others takes."""

    mine: Literal[False] = False


class OwnTaken(_Taken):
    """What a reservation of one of the caller's projects takes."""

    mine: Literal[True] = True
    id: str
    project: str
    user: str
    slice: str


class RecordedViolation(Part):
    """Transmissions that violated the grant of a reservation, or settings that it forbids (``setting``)."""

    reservation: str
    project: str
    user: str
    slice: str
    at: Time
    """The first one."""
    until: Time
    radio: str
    """``node:radio`` of the testbed."""
    what: Violated
    amount: float
    """By how much, in ``unit``."""
    unit: Unit
    frames: int
    channel: int


class Recorded(Part):
    """What became of reported violations."""

    new: int
    """How many were not known."""
    refused: int
    """How many were too many."""


# Reservations


class Asked(Part):
    """What was asked for."""

    nodes: tuple[str, ...]
    count: int
    area: tuple[float, float, float, float] | None
    radios: int
    channels: tuple[int, ...]
    channel_count: int
    slots: int | None
    power_dbm: float
    apart: bool


class Reservation(Part):
    """A reservation, or a request that waits."""

    id: str
    project: str
    user: str
    slice: str
    state: State
    start: Time
    end: Time
    latest: Time
    """While it waits: the latest start."""
    created: Time
    asked: Asked
    grant: Grant | None
    """None while it waits, and if it expired."""
    live: str | None
    """URL of the live page of its run."""


class Booked(Reservation):
    """A reservation that was made now."""

    best: bool
    """Whether the grant is proven to be the best one."""


class Possible(Window):
    """What a request would be granted now."""

    grant: Grant
    best: bool
    """Whether the grant is proven to be the best one."""


class Lent(Reservation):
    """What the holder of a reservation may use now."""

    grant: Grant
    now: Time
    remaining_s: int
    """Seconds until the end of the window."""
    positions: dict[str, tuple[float, float, float]]
    """Places of its nodes in metres."""
    booked: tuple[str, ...]
    """Slices of others whose names begin with this one's: its radios may not announce them."""
