"""The server of a running laboratory for other terminals: ``airloom exec`` and ``airloom shell``.

The laboratory listens on an abstract Unix socket, which has no file and disappears with its
process. A client sends its standard input, output and error as descriptors, so the program in the
node reads and writes them directly; for a shell it sends the slave side of a pseudoterminal. When
the client disconnects, its program is killed. The messages are in :mod:`airloom.lab.messages`, the
client is in :mod:`airloom.lab.client`.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from airloom.errors import LabError, RunError
from airloom.lab import messages
from airloom.lab.messages import Exec, Hello, Info, Key, Signal, Switch
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
        """Pauses, resumes, stops, kills or starts a node or a shared guest."""

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Program:
        """Starts a program in a node on the client's descriptors."""


class LiveServer:
    """Listens until closed."""

    def __init__(self, name: str, host: Laboratory) -> None:
        self._host = host
        self._key = Key()
        self.address = messages.address_of(name, os.getpid(), self._key.descriptor)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(self.address)
        self._socket.listen(16)
        self._server = PacketServer(self._socket, self._serve, most=_MOST)
        self._thread = threading.Thread(target=self._server.accept, name="airloom-live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening and disconnects all clients."""
        self._server.close()
        self._thread.join()
        self._socket.close()
        self._key.close()

    def _serve(self, client: socket.socket) -> None:
        self._authenticate(client)
        self._answer(client)

    def _authenticate(self, client: socket.socket) -> None:
        """Accepts a client of the same user that has read the key."""
        if messages.peer_of(client).uid != os.geteuid():
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

    def _answer(self, client: socket.socket) -> None:
        octets, descriptors = messages.receive(client)
        try:
            if not octets:
                return
            message = messages.parse(octets)
            if isinstance(message, Info):
                messages.send(client, {"info": self._host.info()})
                return
            if isinstance(message, Switch):
                self._host.control(message.node, message.action)
                messages.send(client, {"done": True})
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
