"""Messages between a laboratory and its clients in other terminals, and their authentication.

Messages are JSON, one in each packet. A client sends ``{"do": "hello", "key"}``, then one of
``{"do": "info"}``; ``{"do": "apply", "file", "overrides", "seed", "dry_run"}``; ``{"do": "exec",
"node", "argv", "env", "tty"}`` with three descriptors, and then ``{"do": "signal", "signal"}``;
``{"do": "node", "node", "action"}`` with pause, resume, stop, kill, start or restart; ``{"do":
"links"}`` or ``{"do": "ledger"}`` with the descriptor of a file for the answer, as JSON; ``{"do":
"link", "link", "direction", "properties", "up"}``; ``{"do": "sources"}``; ``{"do": "capture", "names",
"snap", "filters"}`` with the descriptor to write to, and then ``{"do": "end"}``. The laboratory replies
``{"welcome": true}``, ``{"info": {...}}``, ``{"steps": [...]}``, ``{"done": true}``, ``{"written":
true}``, ``{"started": true}``, ``{"exited": CODE}``, ``{"sources": {NAME: WHAT}}``, ``{"capturing":
true}``, ``{"captured": {...}}`` or ``{"error": {...}}``.

Any process may listen under a name that looks like a laboratory's, so names prove nothing. The
kernel reports the other side's user and process to each side (``SO_PEERCRED``). The key is in a
memfd that the laboratory's process holds open. Reading it through ``/proc`` requires the right to
trace that process, which another user, or a confined process of the same user, does not have. The
memfd disappears with the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from airloom.errors import HostError, LabError, RunError, ScenarioError

LONGEST = 1 << 20
"""Largest message in octets."""
_KEY = 32
"""Octets of a key."""

_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
_Variable = Annotated[str, Field(pattern=r"^[^\x00=]+$")]
_Node = Annotated[str, Field(max_length=64)]

Action = Literal["pause", "resume", "stop", "kill", "start", "restart"]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Hello(_Message):
    """The client's proof that it may connect."""

    do: Literal["hello"] = "hello"
    key: Annotated[str, Field(max_length=2 * _KEY)]


class Info(_Message):
    """Requests the laboratory's description."""

    do: Literal["info"] = "info"


class Apply(_Message):
    """Applies a changed scenario, or asks what that would change."""

    do: Literal["apply"] = "apply"
    file: _Text
    overrides: list[_Text] = []
    seed: int | None = None
    dry_run: bool = False


class Exec(_Message):
    """Starts a program in a node on the descriptors sent with the message."""

    do: Literal["exec"] = "exec"
    node: _Node
    argv: Annotated[list[_Text], Field(min_length=1)]
    env: dict[_Variable, _Text] = {}
    tty: bool = False


class Switch(_Message):
    """Pauses, resumes, stops, kills, starts or restarts a node."""

    do: Literal["node"] = "node"
    node: _Node
    action: Action


class Sources(_Message):
    """Requests what can be captured."""

    do: Literal["sources"] = "sources"


class Links(_Message):
    """Requests the links, with settings and loads, on the descriptor sent with the message."""

    do: Literal["links"] = "links"


class Ledger(_Message):
    """Requests the engine's ledger, on the descriptor sent with the message."""

    do: Literal["ledger"] = "ledger"


class ChangeLink(_Message):
    """Changes properties of a link, or sets it up or down."""

    do: Literal["link"] = "link"
    link: Annotated[str, Field(max_length=256)]
    direction: Literal["both", "forward", "backward"] = "both"
    properties: dict[str, Any] = {}
    up: bool | None = None


class Capture(_Message):
    """Starts a capture that is written to the descriptor sent with the message."""

    do: Literal["capture"] = "capture"
    names: list[Annotated[str, Field(max_length=256)]] = []
    snap: int | None = None
    filters: dict[str, list[tuple[int, int, int, int]]] | None = None
    """By link type: a program of the Berkeley Packet Filter."""


class End(_Message):
    """Ends the capture."""

    do: Literal["end"] = "end"


class Signal(_Message):
    """Sends a signal to the program."""

    do: Literal["signal"] = "signal"
    signal: Annotated[int, Field(ge=1, le=64)]


_Some = TypeVar("_Some", bound=_Message)
Message = (
    Hello | Info | Apply | Exec | Switch | Signal | Sources | Links | Ledger | ChangeLink | Capture | End
)
_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="do")])


class Key:
    """A laboratory's key, valid until it is closed or the process ends."""

    def __init__(self) -> None:
        octets = os.urandom(_KEY)
        self.text = octets.hex()
        self.descriptor = os.memfd_create("airloom-key", os.MFD_CLOEXEC)
        os.fchmod(self.descriptor, 0o400)
        os.write(self.descriptor, octets)

    def close(self) -> None:
        """Closes the memfd of the key."""
        os.close(self.descriptor)


def key_of(pid: int, descriptor: int) -> str:
    """Reads the key of another process; raises :class:`OSError` if that is not permitted."""
    with open(f"/proc/{pid}/fd/{descriptor}", "rb", buffering=0, opener=_without_waiting) as file:
        return os.pread(file.fileno(), _KEY, 0).hex()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def error_of(error: LabError) -> dict[str, Any]:
    """Returns an error as a message."""
    return {"error": _said(error) | {"further": [_said(one) for one in error.further]}}


def _said(error: LabError) -> dict[str, Any]:
    words = {"code": error.code, "message": error.message, "where": error.where, "cure": error.cure}
    return words | {"exit_code": error.exit_code}


def error_from(said: dict[str, Any]) -> LabError:
    """Returns the error of a message."""
    made = _restored(said)
    made.further = tuple(_restored(one) for one in said.get("further", ()))
    return made


def _restored(said: dict[str, Any]) -> LabError:
    kinds: dict[int, type[LabError]] = {one.exit_code: one for one in (ScenarioError, HostError)}
    kind = kinds.get(said.get("exit_code", RunError.exit_code), RunError)
    return kind(said["code"], said["message"], where=said.get("where"), cure=said.get("cure"))


def send(
    channel: socket.socket, message: BaseModel | dict[str, Any], descriptors: Sequence[int] = ()
) -> None:
    """Sends a message, optionally with descriptors."""
    octets = (
        message.model_dump_json() if isinstance(message, BaseModel) else json.dumps(message, allow_nan=False)
    ).encode()
    if len(octets) > LONGEST:
        raise RunError("live.message", f"the command is longer than {LONGEST} octets")
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, max(len(octets), 1 << 16))
    socket.send_fds(channel, [octets], list(descriptors))


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Receives a message and descriptors, which the caller must close; empty at end of stream."""
    octets, descriptors, _, _ = socket.recv_fds(channel, LONGEST, 8, socket.MSG_CMSG_CLOEXEC)
    return octets, list(descriptors)


def parse(octets: bytes) -> Message:
    """Parses a client's message; raises :class:`RunError` if it is invalid."""
    try:
        return _MESSAGES.validate_json(octets)
    except ValidationError as error:
        raise _refusal(error) from None


def made(what: type[_Some], **values: Any) -> _Some:
    """Makes a client's message; raises the same :class:`RunError` as the laboratory would."""
    try:
        return what(**values)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> RunError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80] or "message"
    return RunError("live.message", f"not understood: {place}: {first['input']!r:.40}: {first['msg']}")


def closed(descriptors: Sequence[int]) -> None:
    """Closes descriptors received with a message."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
