"""Messages from a run to the shared laboratory that it joins.

Messages are JSON, one in each packet of a Unix socket (SOCK_SEQPACKET). The first one is ``join``.
``add`` brings the descriptor of the TAP that the radio belongs to. The laboratory answers each
message with ``{"done": ...}`` or ``{"error": {...}}``. Times are nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from airloom.errors import RunError

PORT = r"^[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9_.-]{1,15}$"
Port = Annotated[str, Field(pattern=PORT)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Join(_Message):
    """Asks to join within a reservation, with a token of its holder."""

    do: Literal["join"] = "join"
    token: Annotated[str, Field(min_length=1, max_length=256)]
    reservation: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Add(_Message):
    """Adds a node's radio, which is one of the testbed's (``lent``, as ``node:radio``)."""

    do: Literal["add"] = "add"
    port: Port
    lent: Port
    settings: dict[str, Any]
    """In the engine's encoding."""
    up: bool = True


class Change(_Message):
    """Changes a radio, now or at a time."""

    do: Literal["change"] = "change"
    port: Port
    change: Annotated[dict[str, Any], Field(min_length=1, max_length=1)]
    """In the engine's encoding."""
    at: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None


class Begin(_Message):
    """Time zero of the run: what the laboratory tells of its lateness begins here."""

    do: Literal["begin"] = "begin"


class Read(_Message):
    """Asks for the state of the run's own radios, or for its part of the accounts."""

    do: Literal["read"] = "read"
    what: Literal["radios", "channels", "violations", "ledger", "lateness"]


class Scanned(_Message):
    """Asks for a radio's scans."""

    do: Literal["scanned"] = "scanned"
    port: Port


Message = Join | Add | Change | Begin | Read | Scanned
_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="do")])


def parse(octets: bytes) -> Message:
    """Returns a run's message; raises :class:`RunError` if it is none."""
    try:
        return _MESSAGES.validate_json(octets)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:80] or "message"
        raise RunError("lab.message", f"not understood: {place}: {first['msg']}") from None
