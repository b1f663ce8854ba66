"""The client of a running laboratory: ``airloom exec``, ``shell``, ..., and :meth:`airloom.Lab.attach`.

Before a client sends a command, its environment or its descriptors, both sides prove that they can
read the laboratory's key (:mod:`airloom.lab.messages`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from airloom.errors import RunError
from airloom.host.packet_filter import Program
from airloom.lab import messages
from airloom.lab.messages import (
    Action,
    Apply,
    Capture,
    ChangeLink,
    End,
    Exec,
    Hello,
    Info,
    Ledger,
    Links,
    Signal,
    Sources,
    Switch,
)
from airloom.lab.running import Running, connected, parts_of

if TYPE_CHECKING:
    from airloom._engine import CaptureCounts

ACTIONS: tuple[str, ...] = get_args(Action)
"""Actions on a whole node."""


class Client:
    """A client's connection to a laboratory."""

    def __init__(self, lab: Running) -> None:
        try:
            self._socket = connected(lab)
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
        self.close()

    def close(self) -> None:
        """Disconnects; the laboratory kills the program that was started."""
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
        """Pauses, resumes, stops, kills, starts or restarts a node."""
        self._send(messages.made(Switch, node=node, action=action))
        self._receive("done")

    def apply(
        self, file: Path, overrides: Sequence[str] = (), seed: int | None = None, *, dry_run: bool = False
    ) -> list[str]:
        """Applies a changed scenario; returns the steps. ``dry_run``: changes nothing."""
        place = str(file.absolute())
        self._send(messages.made(Apply, file=place, overrides=list(overrides), seed=seed, dry_run=dry_run))
        steps: list[str] = self._receive("steps")
        return steps

    def links(self) -> list[dict[str, Any]]:
        """Returns the links: names, ends, settings as text, loads of both directions."""
        links: list[dict[str, Any]] = self._written(Links())
        return links

    def ledger(self) -> dict[str, Any]:
        """Returns the engine's ledger."""
        ledger: dict[str, Any] = self._written(Ledger())
        return ledger

    def change_link(
        self,
        link: str,
        direction: str = "both",
        properties: Mapping[str, Any] | None = None,
        *,
        up: bool | None = None,
    ) -> None:
        """Changes properties of a link, written as in a scenario, or sets it up or down."""
        self._send(
            messages.made(
                ChangeLink, link=link, direction=direction, properties=dict(properties or {}), up=up
            )
        )
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

    def sources(self) -> dict[str, str]:
        """Returns what can be captured: names, and what each of them is."""
        self._send(Sources())
        answer: dict[str, str] = self._receive("sources")
        return answer

    def capture(
        self,
        names: Sequence[str],
        descriptor: int,
        snap: int | None = None,
        filters: Mapping[int, Program] | None = None,
    ) -> None:
        """Starts a capture that is written to a descriptor; without names, of everything.

        ``snap``: octets to keep of each frame. ``filters``: by link type; other frames do not pass.
        """
        programs = None
        if filters is not None:
            programs = {str(link_type): program for link_type, program in filters.items()}
        self._send(messages.made(Capture, names=list(names), snap=snap, filters=programs), [descriptor])
        self._receive("capturing")

    def end(self) -> None:
        """Ends the capture."""
        with contextlib.suppress(OSError):
            messages.send(self._socket, End())

    def counts(self) -> CaptureCounts:
        """Waits for the end of the capture; returns its counters."""
        answer: CaptureCounts = self._receive("captured")
        return answer

    def _authenticate(self, lab: Running) -> None:
        parts = parts_of(lab.address)
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

    def _written(self, message: Any) -> Any:
        """Returns what the laboratory writes: a file has no limit of size, unlike a message."""
        descriptor = os.memfd_create("airloom-answer", os.MFD_CLOEXEC)
        with open(descriptor, "rb") as answer:
            self._send(message, [descriptor])
            self._receive("written")
            answer.seek(0)
            return json.loads(answer.read())

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
            raise messages.error_from(message["error"])
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
