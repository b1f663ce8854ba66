"""Messages between a laboratory and its clients in other terminals, and their authentication.

Messages are JSON, one in each packet. A client sends ``{"do": "hello", "key"}``, then one of
``{"do": "info"}``; ``{"do": "exec", "node", "argv", "env", "tty"}`` with three descriptors, and
then ``{"do": "signal", "signal"}``; ``{"do": "node", "node", "action"}`` with pause, resume, stop,
kill or start. The laboratory replies ``{"welcome": true}``, ``{"info": {...}}``, ``{"done":
true}``, ``{"started": true}``, ``{"exited": CODE}`` or ``{"error": {...}}``.

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
"""Largest message in octets."""
TIMEOUT = 10.0
"""Time limit of each side for the next message, in seconds."""
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
    """The client's proof that it may connect."""

    do: Literal["hello"] = "hello"
    key: Annotated[str, Field(max_length=2 * _KEY)]


class Info(_Message):
    """Requests the laboratory's description."""

    do: Literal["info"] = "info"


class Exec(_Message):
    """Starts a program in a node on the descriptors sent with the message."""

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
    """Sends a signal to the program."""

    do: Literal["signal"] = "signal"
    signal: Annotated[int, Field(ge=1, le=64)]


_Some = TypeVar("_Some", bound=_Message)
Message = Hello | Info | Exec | Switch | Signal
_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="do")])


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a connection, as the kernel reports it."""

    pid: int
    uid: int


def peer_of(channel: socket.socket) -> Peer:
    """Returns the peer of a connected socket."""
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)


def address_of(name: str, pid: int, key: int) -> str:
    """Returns a laboratory's abstract address: its name, process id and key descriptor."""
    return f"\0{PREFIX}{'-'.join(name.split())}/{pid}/{key}"


def parts_of(address: str) -> tuple[str, int, int] | None:
    """Returns name, process id and key descriptor; None if it is not a laboratory's address."""
    match = _NAME.fullmatch(address.removeprefix("\0"))
    return None if match is None else (match[1], int(match[2]), int(match[3]))


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
    return {"error": {"code": error.code, "message": error.message, "where": error.where, "cure": error.cure}}


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
