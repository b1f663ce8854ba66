"""The client of a running laboratory: ``airloom exec``, ``shell`` and ``node``.

Any program of this machine may listen under a name that looks like a laboratory's. So the client
checks that the listener is a process of this user with the process id in its name. Before a client
sends a command, its environment or its descriptors, both sides prove that they can read the
laboratory's key (:mod:`airloom.lab.messages`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from airloom.errors import RunError
from airloom.lab import messages
from airloom.lab.messages import Action, Exec, Hello, Info, Signal, Switch

ACTIONS: tuple[str, ...] = get_args(Action)
"""Actions on a whole node."""
_LISTENING = 0x10000
"""The kernel's SO_ACCEPTCON flag in /proc/net/unix."""
_LINE = re.compile(
    rb"^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]{8}) [0-9A-F]+ [0-9A-F]+ +[0-9]+ @(airloom/[!-~]+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Running:
    """A laboratory of this user that is listening on this machine."""

    name: str
    pid: int
    address: str


def running() -> list[Running]:
    """Returns this user's laboratories that are up on this machine."""
    found = []
    for flags, name in _LINE.findall(Path("/proc/net/unix").read_bytes()):
        address = "\0" + name.decode("ascii")
        parts = messages.parts_of(address)
        if parts is None or not int(flags, 16) & _LISTENING:
            continue
        lab = Running(parts[0], parts[1], address)
        with contextlib.suppress(OSError, RunError):
            _connected(lab).close()
            found.append(lab)
    return sorted(found, key=lambda lab: (lab.name, lab.pid))


def _connected(lab: Running) -> socket.socket:
    """Connects to a laboratory; verifies user and process id of the listener."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        channel.settimeout(0)  # do not wait if the accept queue is full
        channel.connect(lab.address)
        channel.settimeout(messages.TIMEOUT)
        if messages.peer_of(channel) != messages.Peer(lab.pid, os.geteuid()):
            raise RunError(
                "live.stranger",
                f"the listener of laboratory {lab.name} (process {lab.pid}) is another user or process",
            )
    except BaseException:
        channel.close()
        raise
    return channel


def find(name: str | None) -> Running:
    """Returns the laboratory with a name or process id, or the only one that is up."""
    labs = running()
    chosen = [lab for lab in labs if name is None or name in (lab.name, str(lab.pid))]
    if len(chosen) == 1:
        return chosen[0]
    named = ", ".join(f"{lab.name} (process {lab.pid})" for lab in labs)
    if not labs:
        raise RunError(
            "live.none",
            "no laboratory of this user is up on this machine",
            cure="start one with `airloom up FILE`",
        )
    if not chosen:
        raise RunError("live.unknown", f"no laboratory is called {name}", cure=f"up now: {named}")
    raise RunError(
        "live.ambiguous",
        f"{len(chosen)} laboratories are up",
        cure=f"choose one with --lab NAME, or its process id: {named}",
    )


class Client:
    """A client's connection to a laboratory."""

    def __init__(self, lab: Running) -> None:
        try:
            self._socket = _connected(lab)
        except OSError as error:
            raise RunError("live.gone", f"laboratory {lab.name} does not answer: {error.strerror}") from error
        try:
            self._authenticate(lab)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """Returns the descriptor for ``select``: readable when the laboratory has sent a message."""
        return self._socket.fileno()

    def info(self) -> dict[str, Any]:
        """Returns the laboratory's description."""
        self._send(Info())
        answer: dict[str, Any] = self._receive("info")
        return answer

    def control(self, node: str, action: str) -> None:
        """Pauses, resumes, stops, kills or starts a node."""
        self._send(messages.made(Switch, node=node, action=action))
        self._receive("done")

    def start(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> None:
        """Starts a program in a node on these descriptors."""
        request = messages.made(Exec, node=node, argv=list(argv), env=dict(env), tty=tty)
        self._send(request, descriptors)
        self._receive("started")

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""
        with contextlib.suppress(OSError):
            messages.send(self._socket, Signal(signal=number))

    def wait(self) -> int:
        """Waits for the end of the program; returns its exit code."""
        return int(self._receive("exited"))

    def _authenticate(self, lab: Running) -> None:
        parts = messages.parts_of(lab.address)
        assert parts is not None
        try:
            key = messages.key_of(lab.pid, parts[2])
        except OSError as error:
            raise RunError(
                "live.stranger",
                f"the key of laboratory {lab.name} (process {lab.pid}) cannot be read: {error.strerror}",
                cure="use the same user, with the same rights, as `airloom up`",
            ) from None
        self._send(Hello(key=key))
        self._receive("welcome")
        self._socket.settimeout(None)

    def _send(self, message: Any, descriptors: Sequence[int] = ()) -> None:
        try:
            messages.send(self._socket, message, descriptors)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                raise RunError(
                    "live.message", "the command is longer than a socket message can be here"
                ) from None
            raise RunError("live.ended", "the laboratory ended") from None

    def _receive(self, word: str) -> Any:
        """Receives the laboratory's reply of this type."""
        try:
            octets, descriptors = messages.receive(self._socket)
            messages.closed(descriptors)
            message = json.loads(octets or b"{}")
        except (OSError, ValueError):
            message = {}
        if "error" in message:
            raise RunError(**message["error"])
        if word not in message:
            raise RunError("live.ended", "the laboratory ended")
        return message[word]


@contextlib.contextmanager
def passing_signals(send: Callable[[int], None], numbers: Sequence[int]) -> Iterator[None]:
    """Context manager: forwards these signals to the program in the node."""
    before = {number: signal.signal(number, lambda received, _: send(received)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
