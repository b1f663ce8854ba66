"""The helper process: it enters a user namespace and executes the calls of the process that started it.

It ends when that process ends: its end of the socket is closed, or its process descriptor becomes
readable. It ends at once then, as if it were killed, which leaves nothing behind.

A call from the main thread of the calling process is executed in the main thread of this one, so
that a signal means the same in both.
"""

from __future__ import annotations

import itertools
import os
import queue
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airloom.errors import LabError, RunError
from airloom.host import privilege
from airloom.rpc.references import Stays, named, stub
from airloom.rpc.wire import Reference, Stream, Wire


def main(connected: int, caller: int, namespaces: bool) -> None:
    """Serves the process whose descriptor is ``caller`` on a connected socket, until its end.

    Without ``namespaces`` it can do without them, if this machine gives it none.
    """
    served = Helper(socket.socket(fileno=connected))
    # Before anything starts a thread.
    if served.enter(namespaces):
        threading.Thread(target=_follow, args=(caller,), daemon=True).start()
        served.serve()


def _follow(caller: int) -> None:
    """Ends this process with its caller. A child of the caller may hold the socket open for longer."""
    select.select([caller], [], [])
    os._exit(0)


class Helper:
    """Executes calls, and holds the objects that the caller has proxies of."""

    def __init__(self, connected: Stream) -> None:
        self.heard = time.monotonic()
        """When the last message arrived, in seconds of the monotonic clock."""
        self._wire = Wire(connected, self._refer, self._resolve)
        self._numbers = itertools.count(1)
        self._objects: dict[int, list[Any]] = {}
        """Number: the object, and how many times it was sent."""
        self._ids: dict[int, int] = {}
        self._holding = threading.Lock()
        self._main: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running = False
        """True while the main thread executes a call, which a signal may interrupt."""

    def enter(self, namespaces: bool) -> bool:
        """Enters a user namespace; tells the caller that it did, or the error."""
        try:
            privilege.ensure(restart=False, taps=False, namespaces=namespaces)
        except LabError as error:
            self._wire.write(("refused", self._wire.pack(error)))
            return False
        self.ready()
        return True

    def ready(self) -> None:
        """Tells the caller that calls are served."""
        self._wire.write(("ready",))

    def beat(self) -> None:
        """Tells the caller that this process lives."""
        self._wire.write(("alive", 0))

    def serve(self) -> None:
        """Executes calls until the end of the process."""
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGTERM, self._interrupted)
        threading.Thread(target=self._read, name="airloom-rpc", daemon=True).start()
        while True:
            self._main.get()()

    def _interrupted(self, number: int, _: object) -> None:
        if self._running:
            self._running = False
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def _read(self) -> None:
        while True:
            try:
                kind, *rest = self._wire.read()
            except EOFError:
                os._exit(0)
            self.heard = time.monotonic()
            if kind == "alive":
                continue
            if kind == "drop":
                self._drop(*rest)
                continue
            number, in_main, folder, environment, function, arguments = rest
            self._adopt(folder, environment)

            def execute(
                number: int = number,
                in_main: bool = in_main,
                function: str = function,
                arguments: bytes = arguments,
            ) -> None:
                self._execute(number, in_main, function, arguments)

            if in_main:
                self._main.put(execute)
            else:
                threading.Thread(target=execute, daemon=True).start()

    @staticmethod
    def _adopt(folder: str | None, environment: dict[str, str] | None) -> None:
        """Follows the caller's working folder and environment, if they changed."""
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        if folder is not None and Path(folder).is_dir():
            os.chdir(folder)

    def _execute(self, number: int, in_main: bool, function: str, arguments: bytes) -> None:
        kind, value = "result", None
        try:
            try:
                if in_main:
                    # From here on a signal ends the call: reading its arguments imports their modules.
                    self._running = True
                args, kwargs = self._wire.unpack(arguments)
                value = named(function)(*args, **kwargs)
            finally:
                if in_main:
                    self._running = False
        except BaseException as error:
            kind, value = "error", error
            if not isinstance(error, LabError | KeyboardInterrupt | SystemExit):
                error.add_note("In the helper process:\n" + "".join(traceback.format_exception(error)))
        self._answer(kind, number, value)

    def _answer(self, kind: str, number: int, value: Any) -> None:
        try:
            packed = self._wire.pack(value)
        except Exception as error:
            what = type(value).__name__
            said = RunError(
                "rpc.copy",
                f"{what} belongs to the process that runs the laboratory and cannot be copied: {error}",
                cure="run as root to have it in this process",
            )
            kind, packed = "error", self._wire.pack(said)
        try:
            self._wire.write((kind, number, packed))
        except OSError:
            os._exit(0)

    def _refer(self, one: Any) -> Reference | None:
        if not isinstance(one, Stays):
            return None
        with self._holding:
            number = self._ids.get(id(one))
            if number is None:
                number = self._ids[id(one)] = next(self._numbers)
                self._objects[number] = [one, 0]
            self._objects[number][1] += 1
        return ("theirs", number, type(one))

    def _resolve(self, reference: Reference) -> Any:
        if reference[0] == "yours":
            return self._objects[reference[1]][0]
        _, number, declared, names = reference

        def tell(name: str, args: tuple[Any, ...]) -> None:
            self._wire.write(("event", number, name, self._wire.pack(args)))

        return stub(declared, names, tell)

    def _drop(self, number: int, count: int) -> None:
        """Forgets an object when the caller has no proxy of it."""
        with self._holding:
            held = self._objects[number]
            held[1] -= count
            if not held[1]:
                del self._objects[number], self._ids[id(held[0])]
