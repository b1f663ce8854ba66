"""Requests that a node may send about its radios: one model per command, validated like a scenario.

A request is one line of JSON of at most :data:`LONGEST` octets from a program in a node, which is
not trusted: anything that matches none of these models is refused with an Airloom error.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from airloom.errors import RunError

LONGEST = 4096
"""Maximum length of a request in octets, without the line end."""

_Name = Annotated[str, Field(max_length=64)]
_Channel = Annotated[int, Field(ge=1, le=200)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    radio: _Name | None = None
    """Name of the node's radio; None selects all of them, or the only one."""


class Show(_Request):
    """Asks for settings, the access point, or the peers."""

    do: Literal["info", "link", "station"]


class Search(_Request):
    """Makes radios scan the given channels, or all."""

    do: Literal["scan"] = "scan"
    channels: Annotated[list[_Channel], Field(max_length=200)] = []
    passive: bool = False


class Change(_Request):
    """Sets one setting; the value is in the scenario's terms."""

    do: Literal["set"]
    key: _Name
    value: bool | Annotated[int, Field(ge=0, le=1_000_000)] | Annotated[str, Field(max_length=256)]


Request = Show | Search | Change
_REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])
COMMANDS = ("info", "link", "station", "scan", "set")


def parse(line: bytes) -> Request:
    """Parses a line. Raises :class:`RunError` if it is not a request."""
    if len(line) > LONGEST:
        raise RunError("radio.request", f"a request is one line of at most {LONGEST} octets")
    try:
        return _REQUESTS.validate_json(line)
    except ValidationError as error:
        raise _refusal(error) from None


def search(radio: str, channels: tuple[int, ...], passive: bool) -> Search:
    """A scan request made by the controller, validated like those of nodes."""
    try:
        return Search(radio=radio, channels=list(channels), passive=passive)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> RunError:
    first: Any = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"] if part not in COMMANDS]
    if "channels" in place:
        return RunError("radio.channel", "a channel has a number from 1 to 200")
    if first["type"] == "union_tag_invalid":
        return RunError(
            "radio.request",
            f"a radio cannot {first['ctx']['tag'][:40]!r}",
            cure=f"it can {', '.join(COMMANDS)}",
        )
    where = f"{'.'.join(place)[:80]}: " if place else ""
    return RunError("radio.request", f"the request is not understood: {where}{first['msg']}")
