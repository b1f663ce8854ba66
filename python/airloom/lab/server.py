"""The server of a running laboratory for other terminals: ``airloom exec``, ``apply``, ``capture``, ...

The laboratory listens on an abstract Unix socket, which has no file and disappears with its
process. A client sends its standard input, output and error as descriptors, so the program in the
node reads and writes them directly; for a shell it sends the slave side of a pseudoterminal. When
the client disconnects, its program is killed. So does a client of a capture send the descriptor that
the capture is written to. The messages are in :mod:`airloom.lab.messages`, the
client is in :mod:`airloom.lab.client`.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from airloom.errors import LabError, RunError
from airloom.lab import capturing, messages, running
from airloom.lab.capturing import Captured, Captures
from airloom.lab.messages import (
    Apply,
    Capture,
    ChangeLink,
    Exec,
    Hello,
    Info,
    Key,
    Ledger,
    Links,
    Signal,
    Sources,
    Switch,
)
from airloom.lab.packet_server import PacketServer

_MOST = 256
"""Most clients at a time."""


class Program(Protocol):
    """A program that was started in a node for a client."""

    def wait(self) -> int:
        """Waits for the end; returns the exit code, 128 + n after signal n."""

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""


class Laboratory(Protocol):
    """The laboratory, as the server needs it."""

    def info(self) -> dict[str, Any]:
        """Returns the laboratory's description."""

    def control(self, node: str, action: str) -> None:
        """Pauses, resumes, stops, kills, starts or restarts a node or a shared guest."""

    def apply(
        self, source: Path, *, overrides: Sequence[str], seed: int | None, dry_run: bool
    ) -> Sequence[object]:
        """Applies a changed scenario, or only says what that would change; returns the steps."""

    def described_links(self) -> list[dict[str, Any]]:
        """Returns the links: ``name``, ``a``, ``b``, ``up``, ``text``, and the load by direction."""

    def ledger(self) -> Mapping[str, Any]:
        """Returns the engine's ledger."""

    def change_link(self, link: str, direction: str, properties: Mapping[str, Any], up: bool | None) -> None:
        """Changes properties of a link, written as in a scenario, and sets it up or down."""

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Program:
        """Starts a program in a node on the client's descriptors."""


class LiveServer:
    """Listens until closed."""

    def __init__(
        self, name: str, host: Laboratory, captured: Captured, *, what: running.What = "laboratory"
    ) -> None:
        """``captured``: what has the laboratory's frames."""
        self._host = host
        self._captured = captured
        self._captures = Captures()
        self._key = Key()
        self._claim, self._label = running.claimed(name)
        self.address = running.address_of(name, os.getpid(), self._key.descriptor, what)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(self.address)
        self._socket.listen(16)
        self._server = PacketServer(self._socket, self._serve, most=_MOST)
        self._thread = threading.Thread(target=self._server.accept, name="airloom-live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the captures, stops listening and disconnects all clients."""
        self._captures.close()
        self._server.close()
        self._thread.join()
        self._socket.close()
        self._claim.close()
        self._key.close()

    def _serve(self, client: socket.socket) -> None:
        self._authenticate(client)
        self._answer(client)

    def _authenticate(self, client: socket.socket) -> None:
        """Accepts a client of the same user that has read the key."""
        if running.peer_of(client).uid != os.geteuid():
            raise RunError("live.stranger", "this laboratory belongs to another user")
        octets, descriptors = messages.receive(client)
        messages.closed(descriptors)
        if not octets:
            raise ConnectionResetError
        hello = messages.parse(octets)
        if not isinstance(hello, Hello) or not hmac.compare_digest(
            hello.key.encode(), self._key.text.encode()
        ):
            raise RunError("live.stranger", "the client does not have the laboratory's key")
        messages.send(client, {"welcome": True})

    def _applied(self, asked: Apply) -> list[str]:
        steps = self._host.apply(
            Path(asked.file), overrides=asked.overrides, seed=asked.seed, dry_run=asked.dry_run
        )
        return [str(step) for step in steps]

    def _answer(self, client: socket.socket) -> None:
        octets, descriptors = messages.receive(client)
        try:
            if not octets:
                return
            message = messages.parse(octets)
            if isinstance(message, Info):
                messages.send(client, {"info": {**self._host.info(), "label": self._label}})
                return
            if isinstance(message, Apply):
                messages.send(client, {"steps": self._applied(message)})
                return
            if isinstance(message, Switch):
                self._host.control(message.node, message.action)
                messages.send(client, {"done": True})
                return
            if isinstance(message, ChangeLink):
                self._host.change_link(message.link, message.direction, message.properties, message.up)
                messages.send(client, {"done": True})
                return
            if isinstance(message, Links | Ledger):
                said = self._host.ledger() if isinstance(message, Ledger) else self._host.described_links()
                self._write(client, said, descriptors)
                return
            if isinstance(message, Sources):
                found = {name: one.what for name, one in capturing.known(self._captured).items() if one.ports}
                messages.send(client, {"sources": found})
                return
            if isinstance(message, Capture):
                self._capture(client, message, descriptors)
                return
            if not isinstance(message, Exec) or len(descriptors) != 3:
                raise RunError("live.message", "not understood: a program has three descriptors")
            program = self._host.admit(message.node, message.argv, message.env, descriptors, message.tty)
        finally:
            messages.closed(descriptors)
        client.settimeout(None)
        threading.Thread(target=_forward_signals, args=(client, program), daemon=True).start()
        messages.send(client, {"started": True})
        messages.send(client, {"exited": program.wait()})

    def _write(self, client: socket.socket, said: Any, descriptors: Sequence[int]) -> None:
        if len(descriptors) != 1:
            raise RunError("live.message", "not understood: an answer has one descriptor")
        with open(descriptors[0], "w", encoding="utf-8", closefd=False) as file:
            json.dump(said, file, allow_nan=False)
        messages.send(client, {"written": True})

    def _capture(self, client: socket.socket, message: Capture, descriptors: Sequence[int]) -> None:
        if len(descriptors) != 1:
            raise RunError("live.message", "not understood: a capture has one descriptor")
        capture = self._captures.begin(self._captured, message, descriptors[0])
        with self._captures.going():
            messages.send(client, {"capturing": True})
            counts = self._captures.conduct(capture, descriptors[0], client)
            messages.send(client, {"captured": counts})
        # A connection that is closed with a message unread loses the answer too.
        octets = b"unread"
        while octets:
            octets, further = messages.receive(client)
            messages.closed(further)


def _forward_signals(client: socket.socket, program: Program) -> None:
    """Forwards signals; if the client disconnects or sends an invalid message, kills its program."""
    while True:
        number: int = signal.SIGKILL
        with contextlib.suppress(OSError, LabError):
            octets, descriptors = messages.receive(client)
            messages.closed(descriptors)
            message = messages.parse(octets)
            if isinstance(message, Signal):
                number = message.signal
        with contextlib.suppress(LabError, OSError):
            program.signal(number)
        if number == signal.SIGKILL:
            return
