"""What a node may ask of its radios: a model for each command, checked like a scenario.

A request is one line of JSON of at most :data:`LONGEST` octets, written by a program in a node, which is
not trusted: whatever is not one of these models is refused with an error of the laboratory.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from airloom.errors import RunError

LONGEST = 4096
"""Octets of a request, its end of line not counted."""

_Name = Annotated[str, Field(max_length=64)]
_Channel = Annotated[int, Field(ge=1, le=200)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    radio: _Name | None = None
    """Which radio of the node; all, or the only one, if it names none."""


class Show(_Request):
    """Asks for settings, the access point, or the peers."""

    do: Literal["info", "link", "station"]


class Search(_Request):
    """Has radios look around on channels, or on all."""

    do: Literal["scan"] = "scan"
    channels: Annotated[list[_Channel], Field(max_length=200)] = []
    passive: bool = False


class Change(_Request):
    """Sets one thing; the value is in the scenario's words."""

    do: Literal["set"]
    key: _Name
    value: bool | Annotated[int, Field(ge=0, le=1_000_000)] | Annotated[str, Field(max_length=256)]


Request = Show | Search | Change
_REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])
COMMANDS = ("info", "link", "station", "scan", "set")


def parse(line: bytes) -> Request:
    """The request in a line; :class:`RunError` for anything else."""
    if len(line) > LONGEST:
        raise RunError("radio.request", f"a request is one line of at most {LONGEST} octets")
    try:
        return _REQUESTS.validate_json(line)
    except ValidationError as error:
        raise _refusal(error) from None


def search(radio: str, channels: tuple[int, ...], passive: bool) -> Search:
    """A request to look around that is made here; checked like those of nodes."""
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
