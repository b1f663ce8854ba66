"""Client of a node's first process: starts programs in the node and receives their exit status."""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import HostError, RunError
from airloom.nodes.kind import Completed, Exit, Launch, Process
from airloom.nodes.process import reports
from airloom.nodes.process.channel import Channel, Dispatcher, Message

if TYPE_CHECKING:
    from airloom.nodes.virtual_time import Pacer

_TIMEOUT = 30.0
"""Seconds for a node's first process to answer."""
_MOST_OUTPUT = 64 << 20
"""Maximum octets of output that are kept per command."""
_GONE_WITH_NODE: Message = {"code": None, "signal": int(signal.SIGKILL), "user_ns": 0, "system_ns": 0}


class Program(Process):
    """A program that was started in a node."""

    def __init__(
        self, client: InitClient, number: int, argv: Sequence[str], on_exit: Callable[[Exit], None] | None
    ) -> None:
        self.node = client.node
        self.argv = tuple(argv)
        self.pid = 0
        self._client = client
        self._number = number
        self._on_exit = on_exit
        self._exit: Exit | None = None
        self._over = threading.Event()

    def wait(self, timeout: float | None = None) -> Exit:
        if not self._client.wait_for(self._over, timeout):
            raise TimeoutError(f"node {self.node}: {self.argv[0]} still runs after {timeout} s")
        assert self._exit is not None
        return self._exit

    def poll(self) -> Exit | None:
        return self._exit

    def signal(self, number: int) -> None:
        if not self._over.is_set():
            with contextlib.suppress(OSError):  # the node may just have ended, and the program with it
                self._client.channel.send({"op": "signal", "id": self._number, "signal": int(number)})
                self._client.sent()

    def ended(self, message: Message) -> None:
        """Stores the program's exit status; only the first report counts."""
        if self._over.is_set():
            return
        self._exit = Exit(message["code"], message["signal"], message["user_ns"], message["system_ns"])
        self._over.set()
        if self._on_exit is not None:
            self._on_exit(self._exit)


class InitClient:
    """Connection to one node's first process."""

    def __init__(
        self, node: str, channel: Channel, dispatcher: Dispatcher, missing: str, pacer: Pacer | None = None
    ) -> None:
        """``pacer``: lets virtual time pass while an answer of a guest is awaited."""
        self.node = node
        self._pacer = pacer
        self._missing = missing
        """Cure shown when a program does not exist."""
        self.channel = channel
        self._lock = threading.Condition()
        self._programs: dict[int, Program] = {}
        self._answers: dict[int, Message] = {}
        self._expected: set[int] = set()
        self._last = 0
        self._hosting = 0
        self._ready: Message | None = None
        self._gone = False
        self._protocol_error: str | None = None
        dispatcher.join(channel, self._heard, self._ended)
        if pacer is not None:
            pacer.join(self)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self._gone

    @property
    def protocol_error(self) -> str | None:
        """The protocol violation that closed the channel; None if there was none."""
        return self._protocol_error

    @property
    def is_hosted(self) -> bool:
        """Whether the guest in which its programs run is ready."""
        with self._lock:
            return bool(self._answers.get(self._hosting, {}).get("event") == "hosted")

    def ready(self) -> tuple[str, ...]:
        """Waits until the node's namespaces are ready. Returns what this machine does not support."""
        with self._lock:
            self._lock.wait_for(lambda: self._gone or self._ready is not None, _TIMEOUT)
            message = self._ready
        if message is None:
            raise self._lost()
        if message["event"] == "broken":
            why = str(message["why"])
            # What has no place begins with its path.
            cure = "see `airloom doctor`"
            if why.startswith("/"):
                cure = "name another path under 'files:' or 'mounts:' of the node, or free its place"
            raise HostError("host.node", f"node {self.node}: {why}", cure=cure)
        return tuple(message["notes"])

    def start(self, launch: Launch, streams: tuple[int, int, int]) -> Program:
        """Starts a program on three descriptors, which the caller still owns.

        The environment and the folder of ``launch`` are the whole ones; its streams are not used.
        """
        number = self._number()
        argv = launch.argv
        program = Program(self, number, argv, launch.on_exit)
        with self._lock:
            self._programs[number] = program
        order: Message = {
            "op": "start",
            "id": number,
            "argv": list(argv),
            "env": dict(launch.env),
            "folder": launch.folder,
            "tty": launch.tty,
            "own": launch.own,
        }
        try:
            answer = self._ask(number, order, streams)
        except RunError:
            with self._lock:
                self._programs.pop(number, None)
            raise
        if answer["event"] == "refused":
            with self._lock:
                self._programs.pop(number, None)
            raise self._refusal(argv, answer)
        program.pid = answer["pid"]
        return program

    def run(self, launch: Launch, input: bytes, timeout: float | None) -> Completed:
        """Runs a command to its end; kills it when ``timeout`` seconds have passed."""
        pacer = self._pacer
        clock = time.monotonic if pacer is None else lambda: pacer.now() / 1e9
        until = None if timeout is None else clock() + timeout
        with contextlib.ExitStack() as stack:
            (their_in, my_in), (my_out, their_out), (my_err, their_err) = (
                stack.enter_context(_pipe()) for _ in range(3)
            )
            wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            stack.callback(os.close, wakeup)
            over = _Wakeup(wakeup)
            stack.callback(over.silence)
            program = self.start(
                replace(launch, on_exit=over.ring), (their_in.take(), their_out.take(), their_err.take())
            )
            for end in (their_in, their_out, their_err):
                end.close()
            try:
                left = None if until is None else lambda: until - clock()
                passes = None if pacer is None else pacer.pass_time
                texts, in_time = _exchange(input, my_in, my_out, my_err, wakeup, left, passes, self.sent)
                if not in_time:
                    program.signal(signal.SIGKILL)
                exit = program.wait(_TIMEOUT)
            finally:
                program.signal(signal.SIGKILL)
        stdout, stderr = (text.decode(errors="replace") for text in texts)
        return Completed(stdout, stderr, exit, timed_out=not in_time)

    def host(self, order: Message, descriptors: Sequence[int]) -> None:
        """Starts a guest in the node, where later programs run; :meth:`hosted` waits for it."""
        self._enter("host", order, descriptors)

    def join(self, order: Message, channel: int) -> None:
        """Connects the node to its part of a guest at the other end of a channel. Programs run
        there from then on; :meth:`hosted` waits for it.
        """
        self._enter("join", order, [channel])

    def _enter(self, op: str, order: Message, descriptors: Sequence[int]) -> None:
        self._hosting = self._number()
        with self._lock:
            self._expected.add(self._hosting)
        self._send({"op": op, "id": self._hosting, **order}, descriptors)

    def hosted(self, timeout: float) -> tuple[str, ...]:
        """Waits up to ``timeout`` seconds for the guest. Returns what it does not support."""
        number = self._hosting
        self._await(lambda: self._gone or number in self._answers, timeout)
        with self._lock:
            answer = self._answers.get(number)
        if answer is None:
            raise self._lost()
        if answer["event"] == "unhosted":
            raise RunError("node.guest", f"node {self.node}: {answer['why']}")
        return tuple(answer["notes"])

    def read(self, path: str) -> str | None:
        """Content of a small file in the node; None if it cannot be read."""
        number = self._number()
        text: str | None = self._ask(number, {"op": "read", "id": number, "path": path})["text"]
        return text

    def clock(self) -> tuple[int, int, int]:
        """CLOCK_MONOTONIC in ns: the host's, then the node's, then the host's again."""
        number = self._number()
        answer = self._ask(number, {"op": "clock", "id": number})
        return answer["before_ns"], answer["inside_ns"], answer["after_ns"]

    def signal_all(self, number: int) -> None:
        """Sends a signal to every process of the node."""
        self._send({"op": "signal-all", "signal": int(number)})

    def stop(self, grace: float) -> None:
        """Requests the node's end; its processes have ``grace`` seconds to exit."""
        self._send({"op": "stop", "grace_ms": round(grace * 1000)})

    def processor_time(self) -> tuple[int, int]:
        """User and system time in ns of all its programs, measured without control groups."""
        number = self._number()
        answer = self._ask(number, {"op": "cpu", "id": number})
        return answer["user_ns"], answer["system_ns"]

    def close(self) -> None:
        """Closes the channel, which ends the node."""
        self.channel.close()

    def _number(self) -> int:
        with self._lock:
            self._last += 1
            return self._last

    def settle(self) -> bool:
        """In virtual time: passes on what its guest and this process have written; whether there was any."""
        if self._gone:
            return False
        number = self._number()
        with self._lock:
            self._expected.add(number)
        with contextlib.suppress(OSError):  # it has just ended
            self.channel.send({"op": "settle", "id": number})
            with self._lock:
                self._lock.wait_for(lambda: self._gone or number in self._answers, _TIMEOUT)
        with self._lock:
            self._expected.discard(number)
            answer = self._answers.pop(number, None)
        return answer is not None and bool(answer["moved"])

    def sent(self) -> None:
        """Notes that an order was sent, which in virtual time is passed on before time passes."""
        if self._pacer is not None:
            self._pacer.sent()

    def wait_for(self, event: threading.Event, timeout: float | None) -> bool:
        """Waits for an event of a guest's; the seconds are virtual ones in virtual time."""
        if self._pacer is None:
            return event.wait(timeout)
        return self._pacer.until(event.is_set, timeout)

    def _await(self, done: Callable[[], bool], timeout: float) -> None:
        """Waits until ``done``; the seconds are virtual ones in virtual time."""
        if self._pacer is None:
            with self._lock:
                self._lock.wait_for(done, timeout)
        else:
            self._pacer.until(done, timeout)

    def _send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        try:
            self.channel.send(message, descriptors)
        except OSError:
            raise self._lost() from None
        self.sent()

    def _ask(self, number: int, message: Message, descriptors: Sequence[int] = ()) -> Message:
        with self._lock:
            self._expected.add(number)
        try:
            self._send(message, descriptors)
            self._await(lambda: self._gone or number in self._answers, _TIMEOUT)
            with self._lock:
                answer = self._answers.pop(number, None)
        finally:
            with self._lock:
                self._expected.discard(number)
        if answer is None:
            raise self._lost()
        return answer

    def _refusal(self, argv: Sequence[str], answer: Message) -> RunError:
        number = answer["errno"]
        what, why = answer["what"], os.strerror(number)
        cure = None
        if argv and what == argv[0] and number == errno.ENOENT:
            why = "no such program"
            cure = self._missing
        elif what.startswith("working folder") and number == errno.ENOENT:
            cure = "a node sees its own /tmp and /run, not the host's"
        return RunError("program.start", f"node {self.node}: cannot start {what}: {why}", cure=cure)

    def _lost(self) -> RunError:
        why = "has ended" if self._gone else f"does not answer within {_TIMEOUT:g} s"
        if self._protocol_error is not None:
            why = f"violates the protocol: {self._protocol_error}"
        return RunError("node.gone", f"node {self.node}: its first process {why}")

    def _heard(self, message: Message) -> None:
        event = message["event"]
        reports.check(message)
        if event == "exited":
            with self._lock:
                program = self._programs.pop(message["id"], None)
            if program is not None:
                program.ended(message)
            return
        with self._lock:
            if event in ("ready", "broken"):
                self._ready = message
            elif message["id"] in self._expected:
                self._answers[message["id"]] = message
            self._lock.notify_all()

    def _ended(self, why: str | None) -> None:
        with self._lock:
            self._gone = True
            self._protocol_error = why
            programs, self._programs = self._programs, {}
            self._lock.notify_all()
        for program in programs.values():
            program.ended(_GONE_WITH_NODE)


class _End:
    """One end of a pipe, closed once."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int | None = descriptor

    def take(self) -> int:
        assert self.descriptor is not None
        return self.descriptor

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[_End, _End]]:
    reader, writer = (_End(descriptor) for descriptor in os.pipe())
    try:
        yield reader, writer
    finally:
        reader.close()
        writer.close()


class _Wakeup:
    """Signals an eventfd from another thread, unless it was closed before."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._lock = threading.Lock()

    def ring(self, _: Exit) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.eventfd_write(self._descriptor, 1)

    def silence(self) -> None:
        with self._lock:
            self._descriptor = None


def _exchange(
    input: bytes,
    to_program: _End,
    out: _End,
    err: _End,
    over: int,
    remaining: Callable[[], float] | None,
    passes: Callable[[int | None], None] | None,
    sent: Callable[[], None],
) -> tuple[tuple[bytearray, bytearray], bool]:
    """Writes input and reads output until the program ends. Returns False if timed out.

    ``remaining``: seconds until then. ``passes`` lets virtual time pass, for at most so many ns; ``sent``
    notes that there is input, or its end, to pass on before.
    """
    texts = {out.take(): bytearray(), err.take(): bytearray()}
    rest = memoryview(input)
    ended = False
    with selectors.DefaultSelector() as selector:
        selector.register(over, selectors.EVENT_READ)
        for descriptor in texts:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        if rest:
            os.set_blocking(to_program.take(), False)
            selector.register(to_program.take(), selectors.EVENT_WRITE)
        else:
            to_program.close()
            sent()
        while True:
            left = None if remaining is None else remaining()
            if not ended and left is not None and left <= 0:
                return (texts[out.take()], texts[err.take()]), False
            # Child processes may keep the output open: after the program's end only data already
            # written is read.
            events = selector.select(0 if ended or passes is not None else left)
            if passes is not None and not ended and not events:
                passes(None if left is None else round(left * 1e9))
                continue
            reads = [key.fd for key, _ in events if key.fd in texts]
            if ended and not reads:
                return (texts[out.take()], texts[err.take()]), True
            for key, _ in events:
                if key.fd == over:
                    ended = True
                    selector.unregister(over)
                elif key.fd in texts:
                    piece = os.read(key.fd, 1 << 16)
                    text = texts[key.fd]
                    text += piece[: max(0, _MOST_OUTPUT - len(text))]
                    if not piece:
                        selector.unregister(key.fd)
                else:
                    rest = _feed(key.fd, rest)
                    if not rest:
                        selector.unregister(key.fd)
                        to_program.close()
                    sent()


def _feed(descriptor: int, rest: memoryview) -> memoryview:
    """Writes some of the input. Discards the rest if the program has closed its input."""
    try:
        return rest[os.write(descriptor, rest[: 1 << 16]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def streams(
    stdin: int | None, stdout: int | Path | None, stderr: int | Path | None, stack: contextlib.ExitStack
) -> tuple[int, int, int]:
    """The three descriptors for a program; the stack closes those opened here."""

    def opened(path: str | Path, flags: int) -> int:
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunError("program.log", f"cannot open {path}: {error.strerror}") from None
        stack.callback(os.close, descriptor)
        return descriptor

    def writer(stream: int | Path) -> int:
        return stream if isinstance(stream, int) else opened(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    read = opened(os.devnull, os.O_RDONLY) if stdin is None else stdin
    out = opened(os.devnull, os.O_WRONLY) if stdout is None else writer(stdout)
    return read, out, out if stderr is None else writer(stderr)
