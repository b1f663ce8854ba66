"""The calling process: it starts its helper at the first call, and waits for answers.

There is one helper for each process, and the workers that it starts. They end with it.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from airloom.errors import HostError, LabError, RunError
from airloom.host import privilege
from airloom.host.stopping import on_first_signal
from airloom.rpc.lease import LEASE_S, keep
from airloom.rpc.references import Listener, Proxy, listener_of, name_of, proxy_class
from airloom.rpc.standing import GREETING
from airloom.rpc.wire import Reference, Wire

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[4]); "
    "from airloom.rpc.helper import main; main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == 'True')"
)
_LONGEST_LINE = 200
"""Octets of a line that are shown."""
_LAST_WAIT = 5.0
"""Seconds that the end of this process waits for the end of its helper."""

Box = queue.SimpleQueue[tuple[Any, ...]]
"""What arrives for a call: its answer, and events for the listeners among its arguments."""


def is_needed(*, namespaces: bool = True) -> bool:
    """True if this process cannot create namespaces and needs a helper for it.

    ``namespaces`` is false for a run that can do without: it has a helper only if that can create them.
    """
    return not privilege.is_capable() and (namespaces or privilege.can_enter())


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of a module in the helper process, and returns or raises what it does there.

    Ctrl-C interrupts the function, a second Ctrl-C only the wait for it.
    """
    return _helper().call(name_of(function), *args, **kwargs)


def call_until_stopped(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function that stops in an orderly way on a first SIGINT or SIGTERM.

    A second signal ends both processes at once.
    """
    helper = _helper()
    with on_first_signal(helper.signal):
        return helper.call(name_of(function), *args, **kwargs)


@dataclass(frozen=True, slots=True)
class Lasting:
    """A listener among the arguments of a call that is told after the call, too, until :func:`forget`."""

    listener: Listener


def forget(listener: Listener) -> None:
    """Returns when a lasting listener was told everything; it is told nothing more."""
    with _starting:
        helper = _helpers.get(os.getpid())
    if helper is not None:
        helper.forget(listener)


_starting = threading.Lock()
_helpers: dict[int, _Helper] = {}
"""The helper, by the process that started it: a forked process needs its own."""


def _helper() -> _Helper:
    with _starting:
        helper = _helpers.get(os.getpid())
        if helper is None or helper.is_gone:
            helper = _helpers[os.getpid()] = _started(namespaces=True)
        return helper


class Worker:
    """A helper process of its own, for one call at a time, beside those of other workers.

    It makes no namespace where this process may create one itself, and with ``namespaces`` false it can
    do without where there are none. A ``with`` block ends it.
    """

    def __init__(self, *, namespaces: bool = True) -> None:
        self._process = _started(namespaces=namespaces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function in the main thread of the process, from any thread of this one."""
        return self._process.call_in(True, name_of(function), args, kwargs)

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended."""
        return self._process.is_gone

    def signal(self, number: int) -> None:
        """Sends a signal to the process. From any thread."""
        self._process.signal(number)


class Remote:
    """A process behind the standard input and output of a command, such as of ``ssh``.

    It runs :func:`airloom.rpc.standing.serve`. Calls run at once, each in a thread of its own. Both sides
    tell each other every :data:`~.lease.BEAT_S` that they live; who has heard nothing for
    :data:`~.lease.LEASE_S` ends the connection. ``lost`` makes the error of calls to a process that is
    gone, of the command's exit code and its standard error. A ``with`` block ends the command.
    """

    def __init__(self, command: Sequence[str], lost: Callable[[int, str], LabError]) -> None:
        self._errors = os.memfd_create("standard error")
        self._silent = False
        near, far = socket.socketpair()
        with far:
            process = subprocess.Popen(
                list(command),
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=self._errors,
                start_new_session=True,
            )
        self._stray = _stray(near)
        if self._stray:
            process.kill()
        self._process = _Helper(process, near, follows=False, lost=lambda code: lost(code, self._said()))
        threading.Thread(target=self._beat, name="airloom-lease", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        os.close(self._errors)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function in the process, from any thread of this one."""
        return self._process.call_in(False, name_of(function), args, kwargs)

    def _beat(self) -> None:
        if keep(self._process):
            self._silent = True
            self._process.abandon()

    def _said(self) -> str:
        """Returns the last line that the command wrote to its standard error, or that it is silent."""
        if self._stray:
            return f"it begins with {self._stray!r}, which is no agent"
        if self._silent:
            return f"it has said nothing for {LEASE_S:.0f} s"
        text = os.pread(self._errors, os.fstat(self._errors).st_size, 0).decode(errors="replace")
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _stray(connected: socket.socket) -> str:
    """Reads what comes first; returns it if it is not :data:`~.standing.GREETING`, to the end of its line."""
    begun = b""
    while GREETING.startswith(begun) and len(begun) < len(GREETING):
        octets = connected.recv(len(GREETING) - len(begun))
        if not octets:
            return ""  # the standard error tells why
        begun += octets
    if begun == GREETING:
        return ""
    while b"\n" not in begun and len(begun) < _LONGEST_LINE:
        octets = connected.recv(_LONGEST_LINE - len(begun))
        if not octets:
            break
        begun += octets
    connected.shutdown(socket.SHUT_RDWR)
    return begun.split(b"\n")[0].decode(errors="replace")


def _started(*, namespaces: bool) -> _Helper:
    """Starts a helper process on this machine."""
    if not sys.executable:
        raise HostError("rpc.python", "this Python does not know its program", cure="run as root")
    near, far = socket.socketpair()
    watched = os.pidfd_open(os.getpid())
    try:
        path = json.dumps([str(one) for one in sys.path])
        words = [str(far.fileno()), str(watched), str(namespaces), path]
        # A session of its own: a terminal's Ctrl-C reaches it only through this process.
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, *words],
            stdin=subprocess.DEVNULL,
            pass_fds=(far.fileno(), watched),
            start_new_session=True,
        )
    finally:
        far.close()
        os.close(watched)
    return _Helper(process, near)


def _helper_lost(code: int) -> RunError:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return RunError(
        "rpc.gone",
        f"the helper process that runs the laboratory ended with {how}",
        cure="its last words are in the standard error of this process; begin the laboratory again",
    )


class _Helper:
    """A running helper process.

    ``follows``: it has the working folder and the environment of this process. ``lost`` makes the error
    of a process that is gone, of its exit code.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        connected: socket.socket,
        *,
        follows: bool = True,
        lost: Callable[[int], LabError] = _helper_lost,
    ) -> None:
        self._process = process
        self._follows = follows
        self._lost_as = lost
        self.heard = time.monotonic()
        """When the last message arrived, in seconds of the monotonic clock."""
        self._wire = Wire(connected, self._refer, self._resolve)
        self._numbers = itertools.count(1)
        self._boxes: dict[int, Box] = {}
        """By call."""
        self._proxies: weakref.WeakValueDictionary[int, Proxy] = weakref.WeakValueDictionary()
        self._received: dict[int, int] = {}
        """Number of an object: how many times it was received."""
        self._resolving = threading.Lock()
        self._dropped: collections.deque[int] = collections.deque()
        """Objects without a proxy. Filled by finalizers, which may run anywhere and take no lock."""
        self._listeners: dict[int, tuple[Listener, Box]] = {}
        self._lasting: Box = queue.SimpleQueue()
        self._calling = threading.local()
        self._told: tuple[str | None, dict[str, str] | None] = (None, None)
        """Working folder and environment that the helper has."""
        self._telling = threading.Lock()
        self.is_gone = False
        self._begin()
        threading.Thread(target=self._read, name="airloom-rpc", daemon=True).start()
        threading.Thread(target=self._tell_lasting, name="airloom-progress", daemon=True).start()
        atexit.register(self._end)

    def _begin(self) -> None:
        """Waits until the helper has its namespace; raises the error that prevents it."""
        try:
            kind, *rest = self._wire.read()
        except EOFError:
            raise self._lost() from None
        if kind == "refused":
            error = self._wire.unpack(rest[0])
            self._wire.close()
            self._process.wait()
            raise error

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a function ``module:name`` in the helper process."""
        in_main = threading.current_thread() is threading.main_thread()
        return self.call_in(in_main, function, args, kwargs)

    def call_in(self, main: bool, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function; ``main``: in the main thread of the helper process, which receives signals."""
        number = next(self._numbers)
        box: Box = queue.SimpleQueue()
        depth = getattr(self._calling, "depth", 0)
        in_main = depth == 0 and main
        self._calling.box = box
        packed = self._wire.pack((args, kwargs))
        self._boxes[number] = box
        self._calling.depth = depth + 1
        try:
            self._send(number, in_main, function, packed)
            return self._answer(box, in_main)
        finally:
            self._calling.depth = depth
            del self._boxes[number]
            for key, (_, where) in list(self._listeners.items()):
                if where is box:
                    del self._listeners[key]

    def signal(self, number: int) -> None:
        """Sends a signal to the helper process."""
        self._process.send_signal(number)

    def close(self) -> None:
        """Ends the helper process, and waits for it."""
        self._wire.close()
        try:
            self._process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self, listener: Listener) -> None:
        """Forgets a lasting listener after it was told everything."""
        over = threading.Event()
        self._lasting.put(("over", over))
        over.wait()
        for key, (one, where) in list(self._listeners.items()):
            if one is listener and where is self._lasting:
                del self._listeners[key]

    def _send(self, number: int, in_main: bool, function: str, packed: bytes) -> None:
        if self.is_gone:
            raise self._lost()
        with self._telling:
            folder, environment = self._changed()
            try:
                for dropped, count in self._unused():
                    self._wire.write(("drop", dropped, count))
                self._wire.write(("call", number, in_main, folder, environment, function, packed))
            except OSError:
                raise self._lost() from None

    def _changed(self) -> tuple[str | None, dict[str, str] | None]:
        """The working folder and the environment of this process, if the other one has to follow them."""
        if not self._follows:
            return None, None
        now: tuple[str | None, dict[str, str]] = (_folder(), dict(os.environ))
        before, self._told = self._told, now
        return now[0] if now[0] != before[0] else None, now[1] if now[1] != before[1] else None

    def _unused(self) -> Iterator[tuple[int, int]]:
        """Objects that have no proxy any more, and how many times each was received."""
        while self._dropped:
            number = self._dropped.popleft()
            with self._resolving:
                # Received again since then, it has a proxy, or was dropped already.
                count = 0 if number in self._proxies else self._received.pop(number, 0)
            if count:
                yield number, count

    def _answer(self, box: Box, in_main: bool) -> Any:
        """Waits for the answer and tells listeners meanwhile."""
        failure: Exception | None = None
        interrupted = False
        while True:
            try:
                kind, *rest = box.get()
                if kind == "event":
                    self._tell(*rest)
                    continue
            except KeyboardInterrupt:
                if interrupted or not in_main:
                    raise
                interrupted = True
                self.signal(signal.SIGINT)
                continue
            except Exception as error:  # of a listener: it ends the call, as it does without a helper
                failure = failure or error
                if in_main:
                    self.signal(signal.SIGINT)
                continue
            if kind == "gone":
                raise self._lost()
            value = self._wire.unpack(rest[0])
            if failure is not None:
                raise failure
            if kind == "error":
                raise value
            return value

    def _tell(self, listener: Listener, name: str, packed: bytes) -> None:
        getattr(listener, name)(*self._wire.unpack(packed))

    def _tell_lasting(self) -> None:
        while True:
            kind, *rest = self._lasting.get()
            if kind == "over":
                rest[0].set()
                continue
            if kind == "gone":
                return
            try:
                self._tell(*rest)
            except Exception:  # the laboratory goes on; Python reports it as of any thread
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _read(self) -> None:
        while True:
            try:
                kind, number, *rest = self._wire.read()
            except EOFError:
                break
            self.heard = time.monotonic()
            if kind == "event":
                found = self._listeners.get(number)
                if found is not None:
                    found[1].put(("event", found[0], *rest))
            elif (box := self._boxes.get(number)) is not None:
                box.put((kind, *rest))
        self.is_gone = True
        for box in [*self._boxes.values(), self._lasting]:
            box.put(("gone",))

    def beat(self) -> None:
        """Tells the process that this one lives."""
        self._wire.write(("alive",))

    def abandon(self) -> None:
        """Ends the connection to a process that is silent: calls to it fail."""
        self._process.kill()
        self._wire.close()

    def _lost(self) -> LabError:
        return self._lost_as(self._process.wait())

    def _end(self) -> None:
        """Ends the helper with this process, and waits for it."""
        if self._process.returncode is None and _helpers.get(os.getpid()) is self:
            self.close()

    def _refer(self, one: Any) -> Reference | None:
        if isinstance(one, Proxy):
            return ("yours", one._number)
        box = self._calling.box
        if isinstance(one, Lasting):
            one, box = one.listener, self._lasting
        if isinstance(one, Listener):
            number = next(self._numbers)
            self._listeners[number] = (one, box)
            return ("listener", number, *listener_of(one))
        return None

    def _resolve(self, reference: Reference) -> Any:
        _, number, cls = reference
        with self._resolving:
            self._received[number] = self._received.get(number, 0) + 1
            proxy = self._proxies.get(number)
            if proxy is None:
                made = proxy_class(cls)
                proxy = cast(Proxy, object.__new__(made))
                proxy._caller, proxy._number = self, number
                self._proxies[number] = proxy
                weakref.finalize(proxy, self._dropped.append, number).atexit = False
            return proxy


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
