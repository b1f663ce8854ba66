"""Bodies of calls to the grid manager, and how times are written: ISO 8601 with a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from airloom.grid.inventory import MOST_NODES
from airloom.scenario.model.base import NAME_PATTERN

Role = Literal["lead", "member", "viewer"]
Scope = Literal["read", "reserve", "manage"]
Violated = Literal["channel", "power", "address", "ssid", "bssid", "slot", "setting"]
Unit = Literal["", "MHz", "dB", "us"]
"""Of the amount of a violation."""
SCOPES: tuple[Scope, ...] = ("read", "reserve", "manage")

Word = Annotated[str, Field(pattern=NAME_PATTERN, max_length=63)]
SliceName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=32)]
"""It is the slice's SSID, which has at most 32 octets."""
Limit = Annotated[int, Field(ge=0, le=10**9, strict=True)] | None
Coordinate = Annotated[float, Field(ge=-1e7, le=1e7, allow_inf_nan=False)]
HOUR = 3600
"""Seconds."""
MOST_VIOLATIONS = 1000
"""Most violations of one report, and of one reservation that are kept."""
FIRST, LAST = 0, 253402300799
"""The times that a date can show."""


class Body(BaseModel):
    """Base of all bodies: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewUser(Body):
    """A user to be made."""

    name: Word
    admin: bool = False


class NewToken(Body):
    """A token to be made."""

    label: Annotated[str, Field(max_length=100, pattern=r"^[\x20-\x7e]*$")] = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = ["read", "reserve"]
    hours: Annotated[int, Field(ge=1, le=8784, strict=True)] = 720


class Quota(Body):
    """What a project may hold; null is no limit."""

    nodes: Limit = None
    radio_hours: Limit = None
    reservations: Limit = None


class NewProject(Body):
    """A project to be made."""

    name: Word
    quota: Quota = Quota()


class Membership(Body):
    """A user's role in a project."""

    role: Role


class Request(Body):
    """A reservation that is asked for."""

    project: Word
    slice: SliceName
    nodes: Annotated[list[Word], Field(max_length=MOST_NODES)] = []
    count: Annotated[int, Field(ge=1, le=MOST_NODES, strict=True)] | None = Field(
        default=None, description="number of nodes, those of `nodes` included"
    )
    area: tuple[Coordinate, Coordinate, Coordinate, Coordinate] | None = Field(
        default=None, description="least x and y, largest x and y of chosen nodes, in metres"
    )
    apart: bool = Field(
        default=False, description="nodes may be so far apart that they do not hear each other"
    )
    radios: Annotated[int, Field(ge=1, le=16, strict=True)] = 1
    channels: Annotated[list[Annotated[int, Field(ge=1, le=200, strict=True)]], Field(max_length=64)] = []
    channel_count: Annotated[int, Field(ge=1, le=64, strict=True)] | None = Field(
        default=None, description="number of channels, those of `channels` included"
    )
    slots: Annotated[int, Field(ge=1, le=256, strict=True)] | None = Field(
        default=None, description="slots of each frame; null is the whole frame"
    )
    power_dbm: Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)] | None = Field(
        default=None, description="largest transmit power; null is the testbed's"
    )
    start: AwareDatetime | None = Field(default=None, description="null is now")
    end: AwareDatetime
    latest: AwareDatetime | None = Field(
        default=None, description="the window may be moved to a start as late as this"
    )
    wait: bool = Field(default=False, description="wait in the queue if it is not possible")
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = Field(
        default=None, description="the caller's own key: a call repeated with it books once"
    )

    @field_validator("start", "end", "latest")
    @classmethod
    def _whole_seconds(cls, value: datetime | None) -> datetime | None:
        return whole(value)


class Extension(Body):
    """A new end of a reservation."""

    end: AwareDatetime

    @field_validator("end")
    @classmethod
    def _whole_seconds(cls, value: datetime) -> datetime | None:
        return whole(value)


class LivePage(Body):
    """Where a run can be watched; null ends that. The project's members see it."""

    url: Annotated[str, Field(max_length=300, pattern=r"^https?://[!#-;=?-\[\]_a-z~]+$")] | None


class Violation(Body):
    """Transmissions of a radio that violated its grant in the same way, or ``setting``: settings that the
    grant forbids and that were refused.
    """

    at: AwareDatetime
    """The first one."""
    until: AwareDatetime
    radio: Annotated[str, Field(max_length=127, pattern=r"^[A-Za-z0-9_.\-]+:[A-Za-z0-9_.\-]+$")]
    what: Violated
    amount: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 0.0
    unit: Unit = ""
    frames: Annotated[int, Field(ge=1, le=2**53, strict=True)]
    channel: Annotated[int, Field(ge=0, le=1000, strict=True)]


class Violations(Body):
    """What a run or its laboratory has recorded. Numbers of the same violation may grow later."""

    found: Annotated[list[Violation], Field(max_length=MOST_VIOLATIONS)]
    unrecorded: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Violations so far for which the engine had no record left."""


def whole(value: datetime | None) -> datetime | None:
    """Returns a time of whole seconds as it is; raises ``ValueError`` for another one."""
    if value is not None and value.microsecond:
        raise ValueError("times are whole seconds")
    return value


def stamp(value: datetime) -> int:
    """Returns a time in seconds since 1970."""
    return int(value.timestamp())


def written(seconds: int) -> str:
    """Returns seconds since 1970 as text: ``2026-11-22T17:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
