"""The door to a running laboratory for other terminals: ``airloom exec`` and ``airloom shell``.

The laboratory listens on an abstract unix socket, which is no file and ends with its process. A
visitor sends its own standard input, output and error as descriptors, so that the program in the
node reads and writes them directly; for a shell it sends the far side of a terminal of its own.

Messages are JSON, one a packet. From the visitor: ``{"do": "info"}``; ``{"do": "exec", "node",
"argv", "env", "tty"}`` with three descriptors; then ``{"do": "signal", "signal"}``;
``{"do": "node", "node", "action"}`` with pause, resume, stop, kill or start. To the
visitor: ``{"info": {...}}``, ``{"done": true}``, ``{"started": true}``, ``{"exited": CODE}`` or
``{"error": {...}}``.
When the visitor goes away its program is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from airloom.errors import LabError, RunError

ACTIONS = ("pause", "resume", "stop", "kill", "start")
"""What can be done with a node as a whole."""
_PREFIX = "airloom/"
_LONGEST = 1 << 20
_LISTENING = 0x10000
"""The kernel's SO_ACCEPTCON flag, as /proc/net/unix shows it."""


class Guest(Protocol):
    """A program that was started in a node for a visitor."""

    def wait(self) -> int:
        """Waits for its end; the exit code, 128 + n after signal n."""

    def signal(self, number: int) -> None:
        """Sends it a signal."""


class Host(Protocol):
    """The laboratory, as a visitor needs it."""

    def info(self) -> dict[str, Any]:
        """What the laboratory says of itself."""

    def control(self, node: str, action: str) -> None:
        """Pauses, resumes, stops, kills or starts a node, or a guest that several share."""

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Guest:
        """Starts a program in a node on the visitor's descriptors."""


class LiveServer:
    """Listens until it is closed; each visitor has a thread."""

    def __init__(self, name: str, host: Host) -> None:
        self._host = host
        self.address = f"\0{_PREFIX}{'-'.join(name.split())}/{os.getpid()}/{id(self):x}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(self.address)
        self._socket.listen(16)
        self._closing = False
        self._visitors: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="airloom-live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening and sends all visitors away."""
        with self._lock:
            self._closing = True
            visitors = list(self._visitors)
        for visitor in visitors:
            with contextlib.suppress(OSError):
                visitor.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._closing:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                if self._closing:
                    visitor.close()
                    return
                self._visitors.add(visitor)
            threading.Thread(target=self._serve, args=(visitor,), daemon=True).start()

    def _serve(self, visitor: socket.socket) -> None:
        try:
            if _peer_uid(visitor) not in (os.geteuid(), 0):
                _send(visitor, _error(RunError("live.stranger", "this laboratory belongs to another user")))
                return
            self._answer(visitor)
        except OSError:
            pass  # the visitor went away
        finally:
            with self._lock:
                self._visitors.discard(visitor)
            with contextlib.suppress(OSError):
                visitor.shutdown(socket.SHUT_RDWR)  # wakes the thread that hears signals
            visitor.close()

    def _answer(self, visitor: socket.socket) -> None:
        message, descriptors = _receive(visitor)
        try:
            if message is None:
                return
            if message.get("do") == "info":
                _send(visitor, {"info": self._host.info()})
                return
            if message.get("do") == "node":
                if message["action"] not in ACTIONS:
                    raise TypeError(message["action"])
                self._host.control(message["node"], message["action"])
                _send(visitor, {"done": True})
                return
            guest = self._host.admit(
                message["node"],
                message["argv"],
                message.get("env", {}),
                descriptors,
                bool(message.get("tty")),
            )
        except LabError as error:
            _send(visitor, _error(error))
            return
        except (KeyError, TypeError) as error:
            _send(visitor, _error(RunError("live.message", f"not understood: {error!r}")))
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        _send(visitor, {"started": True})
        listener = threading.Thread(target=_hear_signals, args=(visitor, guest), daemon=True)
        listener.start()
        code = guest.wait()
        _send(visitor, {"exited": code})


def _hear_signals(visitor: socket.socket, guest: Guest) -> None:
    """Passes signals on; the end of the visitor is the end of its program."""
    while True:
        try:
            message, _ = _receive(visitor)
        except (OSError, ValueError):
            message = None
        with contextlib.suppress(LabError, OSError):
            guest.signal(signal.SIGKILL if message is None else int(message.get("signal", signal.SIGTERM)))
        if message is None:
            return


@dataclass(frozen=True, slots=True)
class Running:
    """A laboratory that listens on this machine."""

    name: str
    pid: int
    address: str


def running() -> list[Running]:
    """The laboratories that are up on this machine now."""
    found = []
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8 or not fields[7].startswith(f"@{_PREFIX}"):
            continue
        if not int(fields[3], 16) & _LISTENING:
            continue
        name, pid, _ = fields[7][1 + len(_PREFIX) :].rsplit("/", 2)
        found.append(Running(name, int(pid), "\0" + fields[7][1:]))
    return sorted(found, key=lambda lab: (lab.name, lab.pid))


def find(name: str | None) -> Running:
    """The laboratory of that name (or process id), or the only one that is up."""
    labs = running()
    chosen = [lab for lab in labs if name is None or name in (lab.name, str(lab.pid))]
    if len(chosen) == 1:
        return chosen[0]
    named = ", ".join(f"{lab.name} (process {lab.pid})" for lab in labs)
    if not labs:
        raise RunError(
            "live.none", "no laboratory is up on this machine", cure="start one with `airloom up FILE`"
        )
    if not chosen:
        raise RunError("live.unknown", f"no laboratory is called {name}", cure=f"up now: {named}")
    raise RunError(
        "live.ambiguous",
        f"{len(chosen)} laboratories are up",
        cure=f"choose one with --lab NAME, or its process id: {named}",
    )


class Visit:
    """A connection to a laboratory."""

    def __init__(self, lab: Running) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.connect(lab.address)
        except OSError as error:
            self._socket.close()
            raise RunError("live.gone", f"laboratory {lab.name} does not answer: {error.strerror}") from error

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For ``select``: readable when the laboratory has said something."""
        return self._socket.fileno()

    def info(self) -> dict[str, Any]:
        """What the laboratory says of itself."""
        _send(self._socket, {"do": "info"})
        answer: dict[str, Any] = self._hear()["info"]
        return answer

    def control(self, node: str, action: str) -> None:
        """Has a node paused, resumed, stopped, killed or started."""
        _send(self._socket, {"do": "node", "node": node, "action": action})
        self._hear()

    def start(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> None:
        """Starts a program in a node on these descriptors."""
        request = {"do": "exec", "node": node, "argv": list(argv), "env": dict(env), "tty": tty}
        _send(self._socket, request, descriptors)
        self._hear()

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""
        with contextlib.suppress(OSError):
            _send(self._socket, {"do": "signal", "signal": number})

    def wait(self) -> int:
        """Waits for the end of the program; its exit code."""
        return int(self._hear()["exited"])

    def _hear(self) -> dict[str, Any]:
        try:
            message, _ = _receive(self._socket)
        except ConnectionError:
            message = None
        if message is None:
            raise RunError("live.ended", "the laboratory ended")
        if "error" in message:
            raise RunError(**message["error"])
        return message


def _error(error: LabError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message, "where": error.where, "cure": error.cure}}


def _send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    socket.send_fds(channel, [json.dumps(message).encode()], list(descriptors))


def _receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    octets, descriptors, _, _ = socket.recv_fds(channel, _LONGEST, 8, socket.MSG_CMSG_CLOEXEC)
    if not octets:
        return None, list(descriptors)
    message = json.loads(octets)
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message, list(descriptors)


def _peer_uid(channel: socket.socket) -> int:
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", credentials)[1]
    return uid


@contextlib.contextmanager
def passing_signals(send: Callable[[int], None], numbers: Sequence[int]) -> Iterator[None]:
    """While inside, these signals go to the program in the node and not to us."""
    before = {number: signal.signal(number, lambda received, _: send(received)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
