"""What a laboratory and its visitors from other terminals say to each other, and how they know each other.

Messages are JSON, one a packet. A visitor first says ``{"do": "hello", "key"}``, then one of ``{"do":
"info"}``; ``{"do": "exec", "node", "argv", "env", "tty"}`` with three descriptors, and then ``{"do":
"signal", "signal"}``; ``{"do": "node", "node", "action"}`` with pause, resume, stop, kill or start. The
laboratory says ``{"welcome": true}``, ``{"info": {...}}``, ``{"done": true}``, ``{"started": true}``,
``{"exited": CODE}`` or ``{"error": {...}}``.

Anybody may listen under a name that looks like a laboratory's, so names prove nothing. The kernel tells
each side the other's user and process (``SO_PEERCRED``). The key is in a file without a name that the
laboratory's process holds open: to read it through ``/proc`` takes the right to trace that process, which
another user, or a confined process of the same user, has not. It is gone with the process, however that
ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from airloom.errors import LabError, RunError

PREFIX = "airloom/"
LONGEST = 1 << 20
"""Octets of a message."""
PATIENCE = 10.0
"""Seconds in which each side must say what is its turn."""
_KEY = 32
"""Octets of a key."""
_NAME = re.compile(rf"{PREFIX}([A-Za-z0-9_-]{{1,64}})/([1-9][0-9]{{0,9}})/([0-9]{{1,7}})", re.ASCII)

_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
_Variable = Annotated[str, Field(pattern=r"^[^\x00=]+$")]
_Node = Annotated[str, Field(max_length=64)]

Action = Literal["pause", "resume", "stop", "kill", "start"]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Hello(_Message):
    """The visitor's proof that it may come in."""

    do: Literal["hello"] = "hello"
    key: Annotated[str, Field(max_length=2 * _KEY)]


class Info(_Message):
    """Asks what the laboratory says of itself."""

    do: Literal["info"] = "info"


class Exec(_Message):
    """Starts a program in a node on the descriptors that come with it."""

    do: Literal["exec"] = "exec"
    node: _Node
    argv: Annotated[list[_Text], Field(min_length=1)]
    env: dict[_Variable, _Text] = {}
    tty: bool = False


class Switch(_Message):
    """Pauses, resumes, stops, kills or starts a node."""

    do: Literal["node"] = "node"
    node: _Node
    action: Action


class Signal(_Message):
    """Sends the program a signal."""

    do: Literal["signal"] = "signal"
    signal: Annotated[int, Field(ge=1, le=64)]


_Some = TypeVar("_Some", bound=_Message)
Message = Hello | Info | Exec | Switch | Signal
_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="do")])


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a connection, by the kernel's word."""

    pid: int
    uid: int


def peer_of(channel: socket.socket) -> Peer:
    """Who listens, or who connected."""
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)


def address_of(name: str, pid: int, key: int) -> str:
    """Where a laboratory listens: an abstract name with its own, its process and the key's descriptor."""
    return f"\0{PREFIX}{'-'.join(name.split())}/{pid}/{key}"


def parts_of(address: str) -> tuple[str, int, int] | None:
    """Name, process and descriptor of the key; None if no laboratory has made the name."""
    match = _NAME.fullmatch(address.removeprefix("\0"))
    return None if match is None else (match[1], int(match[2]), int(match[3]))


class Key:
    """A laboratory's key, while its process lives or until it is closed."""

    def __init__(self) -> None:
        octets = os.urandom(_KEY)
        self.text = octets.hex()
        self.descriptor = os.memfd_create("airloom-key", os.MFD_CLOEXEC)
        os.fchmod(self.descriptor, 0o400)
        os.write(self.descriptor, octets)

    def close(self) -> None:
        """Forgets it."""
        os.close(self.descriptor)


def key_of(pid: int, descriptor: int) -> str:
    """The key of another process; :class:`OSError` if this one may not read it."""
    with open(f"/proc/{pid}/fd/{descriptor}", "rb", buffering=0, opener=_without_waiting) as file:
        return os.pread(file.fileno(), _KEY, 0).hex()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def error_of(error: LabError) -> dict[str, Any]:
    """An error as a message."""
    return {"error": {"code": error.code, "message": error.message, "where": error.where, "cure": error.cure}}


def send(
    channel: socket.socket, message: BaseModel | dict[str, Any], descriptors: Sequence[int] = ()
) -> None:
    """Sends a message, perhaps with descriptors."""
    octets = (
        message.model_dump_json() if isinstance(message, BaseModel) else json.dumps(message, allow_nan=False)
    ).encode()
    if len(octets) > LONGEST:
        raise RunError("live.message", f"the command is longer than {LONGEST} octets")
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, max(len(octets), 1 << 16))
    socket.send_fds(channel, [octets], list(descriptors))


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """A message and its descriptors, which are the caller's to close; empty at the end."""
    octets, descriptors, _, _ = socket.recv_fds(channel, LONGEST, 8, socket.MSG_CMSG_CLOEXEC)
    return octets, list(descriptors)


def parse(octets: bytes) -> Message:
    """What a visitor says; :class:`RunError` for anything that is none of these messages."""
    try:
        return _MESSAGES.validate_json(octets)
    except ValidationError as error:
        raise _refusal(error) from None


def made(what: type[_Some], **values: Any) -> _Some:
    """A message of a visitor, which is refused here as it would be there."""
    try:
        return what(**values)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> RunError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80] or "message"
    return RunError("live.message", f"not understood: {place}: {first['input']!r:.40}: {first['msg']}")


def closed(descriptors: Sequence[int]) -> None:
    """Closes descriptors that came with a message."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
