"""Proxy for OpenFlow control channels: connects Open vSwitches to their controllers, out of band.

Each switch has its own network namespace and no address in the emulated network. For each
controller of a switch, the proxy listens on the switch's loopback and forwards the data to the
controller, which is a program in another node or at an external address. The channel has no delay
and uses no bandwidth of any link. Until the controller accepts, the switch's connection stays open
and the proxy retries. A channel with several controllers has one at a time: when it ends or an
attempt fails, the next one is tried.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from airloom.host.network_namespace import within
from airloom.nodes.network.control_capture import ControlCapture
from airloom.planning.plan import ControllerPlan

LOOPBACK = "127.0.0.1"
_PIECE = 1 << 16
_MOST_WAITING = 1 << 20
"""Maximum number of octets buffered per direction."""
_AGAIN = 0.02, 0.5
"""First and longest pause before the next attempt to connect to a controller, in seconds."""
_TIMEOUT = 3.0
"""Seconds for a controller to accept a connection."""
_FEATURES_REPLY = 6
"""OFPT_FEATURES_REPLY, which completes the handshake; the same number in all versions."""


@dataclass(eq=False)
class Line:
    """The channel from one bridge of a switch to one of its controllers."""

    switch: str
    bridge: str
    controller: ControllerPlan
    port: int
    """Port on the switch's loopback."""
    listener: socket.socket
    standby: tuple[ControllerPlan, ...] = ()
    """Controllers to try, in this order, when this one does not answer or has gone."""
    connected: bool = False
    """Whether switch and controller have completed their handshake."""
    why: str = "it has not been tried yet"
    """Why it is not connected."""

    def pass_on(self) -> None:
        """Turns to the next controller; this one becomes the last in the order."""
        self.controller, *others = (*self.standby, self.controller)
        self.standby = tuple(others)

    @property
    def whither(self) -> str:
        """The controller, with the slice whose it is."""
        return f"{self.controller}" if self.bridge == "br0" else f"{self.controller}, slice {self.bridge}"

    def __str__(self) -> str:
        where = self.switch if self.bridge == "br0" else f"{self.switch}, slice {self.bridge}"
        return f"{where}: {self.controller}"


@dataclass(eq=False)
class _Call:
    """A connection accepted from a switch, and the proxy's connection to its controller."""

    line: Line
    near: socket.socket
    far: socket.socket | None = None
    place: ControllerPlan | None = None
    """The controller that it was last tried with."""
    up: bool = False
    """Whether the controller has accepted."""
    due: float = 0.0
    """When to retry, or to abort this attempt: monotonic time."""
    pause: float = _AGAIN[0]
    to_near: bytearray = field(default_factory=bytearray)
    to_far: bytearray = field(default_factory=bytearray)
    handshake: _Handshake | None = None


class _Handshake:
    """Watches a switch's messages for the end of the OpenFlow handshake."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._skip = 0

    def over(self, octets: bytes) -> bool:
        """Processes more octets. Returns True if they contain the features reply."""
        at = 0
        while at < len(octets):
            if self._skip:
                step = min(self._skip, len(octets) - at)
                self._skip -= step
                at += step
                continue
            step = min(8 - len(self._head), len(octets) - at)
            self._head += octets[at : at + step]
            at += step
            if len(self._head) == 8:
                if self._head[1] == _FEATURES_REPLY:
                    return True
                self._skip = max(0, int.from_bytes(self._head[2:4], "big") - 8)
                self._head.clear()
        return False


class Relay:
    """All control channels of a run, on one thread."""

    def __init__(
        self, namespace_of: Callable[[str], int | None], capture: ControlCapture | None = None
    ) -> None:
        """``namespace_of`` returns the network namespace of a running node, as a descriptor."""
        self.lines: list[Line] = []
        self._namespace_of = namespace_of
        self._capture = capture
        self._changed: list[Callable[[Line], None]] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._calls: set[_Call] = set()
        self._joining: list[Line] = []
        self._leaving: set[Line] = set()
        self._closing = False
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="airloom-relay", daemon=True)
        self._thread.start()

    def open(
        self,
        switch: str,
        namespace: int,
        bridge: str,
        controller: ControllerPlan,
        standby: Iterable[ControllerPlan] = (),
    ) -> Line:
        """Listens on a switch's loopback for a bridge, on the controller's own port if it is free.

        ``standby``: the controllers that take over, one after the other.
        """

        def listen() -> socket.socket:
            for port in (controller.port, 0):
                made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                try:
                    made.bind((LOOPBACK, port))
                except OSError:
                    made.close()
                    continue
                made.listen(8)
                made.setblocking(False)
                return made
            raise OSError("no port is free")

        listener = within(namespace, listen)
        line = Line(switch, bridge, controller, listener.getsockname()[1], listener, tuple(standby))
        if self._capture is not None:
            self._capture.add(switch, namespace, line.port, line.whither)
        with self._lock:
            self.lines.append(line)
            self._joining.append(line)
        os.eventfd_write(self._wakeup, 1)
        return line

    def shut(self, lines: list[Line]) -> None:
        """Closes the given channels."""
        with self._lock:
            self.lines = [line for line in self.lines if line not in lines]
            self._leaving.update(lines)
        os.eventfd_write(self._wakeup, 1)

    def on_change(self, act: Callable[[Line], None]) -> None:
        """Sets the function that the proxy's thread calls when a switch and a controller connect or
        disconnect.
        """
        self._changed.append(act)

    def waiting(self) -> list[Line]:
        """The channels of bridges that are not connected to any of their controllers."""
        with self._lock:
            lines = list(self.lines)
        met = {(line.switch, line.bridge) for line in lines if line.connected}
        return [line for line in lines if (line.switch, line.bridge) not in met]

    def close(self) -> None:
        """Closes all channels. A second call has no effect."""
        if self._closing:
            return
        self._closing = True
        os.eventfd_write(self._wakeup, 1)
        self._thread.join()

    # On the thread

    def _run(self) -> None:
        try:
            while not self._closing:
                self._serve()
        finally:
            for call in list(self._calls):
                self._end(call)
            for line in self.lines:
                line.listener.close()
            self._selector.close()
            os.close(self._wakeup)

    def _serve(self) -> None:
        due = min((call.due for call in self._calls if not call.up), default=None)
        timeout = None if due is None else max(0.0, due - time.monotonic())
        for key, events in self._selector.select(timeout):
            if key.data is None:
                os.eventfd_read(self._wakeup)
                self._rearrange()
            elif isinstance(key.data, Line):
                self._accept(key.data)
            elif key.data in self._calls:
                self._pass(key.data, key.fileobj, events)  # type: ignore[arg-type]
        now = time.monotonic()
        for call in [call for call in self._calls if not call.up and call.due <= now]:
            if call.far is None:
                self._dial(call)
            else:
                self._later(call, "it does not answer")

    def _rearrange(self) -> None:
        with self._lock:
            joining, self._joining = self._joining, []
            leaving, self._leaving = self._leaving, set()
        for line in joining:
            self._selector.register(line.listener, selectors.EVENT_READ, line)
        for line in leaving:
            for call in [call for call in self._calls if call.line is line]:
                self._end(call)
            self._selector.unregister(line.listener)
            line.listener.close()

    def _accept(self, line: Line) -> None:
        with contextlib.suppress(OSError):
            near, _ = line.listener.accept()
            near.setblocking(False)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            call = _Call(line, near, handshake=_Handshake())
            self._calls.add(call)
            self._dial(call)
            self._watch(call)

    def _dial(self, call: _Call) -> None:
        """Starts to connect to the controller."""
        place = call.place = call.line.controller
        try:
            if place.node is None:
                family, _, _, _, address = socket.getaddrinfo(
                    place.host, place.port, type=socket.SOCK_STREAM
                )[0]
                far = socket.socket(family, socket.SOCK_STREAM)
            else:
                namespace = self._namespace_of(place.node)
                if namespace is None:
                    self._later(call, f"node {place.node} is not up")
                    return
                address = (place.host, place.port)
                far = within(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        except OSError as error:
            self._later(call, error.strerror or str(error))
            return
        far.setblocking(False)
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        call.far = far
        call.due = time.monotonic() + _TIMEOUT
        number = far.connect_ex(address)
        if number in (0, errno.EINPROGRESS):
            self._watch(call)
        else:
            self._later(call, os.strerror(number))

    def _later(self, call: _Call, why: str) -> None:
        """Schedules another attempt after a pause."""
        call.line.why = why
        if call.far is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(call.far)
            call.far.close()
            call.far = None
        self._pass_on(call)
        call.due = time.monotonic() + call.pause
        call.pause = min(2 * call.pause, _AGAIN[1])

    def _pass(self, call: _Call, side: socket.socket, events: int) -> None:
        """Handles a socket that is readable or writable."""
        if side is call.far and not call.up:
            number = side.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._later(call, os.strerror(number))
                return
            call.up = True
        try:
            if events & selectors.EVENT_READ:
                octets = side.recv(_PIECE)
                if not octets:
                    self._end(call)
                    return
                (call.to_far if side is call.near else call.to_near).extend(octets)
                self._hear(call, side, octets)
            if call.to_near:
                del call.to_near[: call.near.send(call.to_near)]
            if call.to_far and call.up and call.far is not None:
                del call.to_far[: call.far.send(call.to_far)]
        except BlockingIOError:
            pass
        except OSError as error:
            call.line.why = error.strerror or str(error)
            self._end(call)
            return
        self._watch(call)

    def _hear(self, call: _Call, side: socket.socket, octets: bytes) -> None:
        if side is call.near and call.handshake is not None and call.handshake.over(octets):
            call.handshake = None
            call.line.connected = True
            self._tell(call.line)

    def _watch(self, call: _Call) -> None:
        """Registers for the events that can be handled next."""
        wanted = {call.near: (len(call.to_far) < _MOST_WAITING, bool(call.to_near))}
        if call.far is not None:
            wanted[call.far] = (
                call.up and len(call.to_near) < _MOST_WAITING,
                bool(call.to_far) or not call.up,
            )
        for side, (read, write) in wanted.items():
            events = selectors.EVENT_READ * read | selectors.EVENT_WRITE * write
            known = self._selector.get_map().get(side.fileno())
            if known is None and events:
                self._selector.register(side, events, call)
            elif known is not None and not events:
                self._selector.unregister(side)
            elif known is not None and known.events != events:
                self._selector.modify(side, events, call)

    def _end(self, call: _Call) -> None:
        self._calls.discard(call)
        for side in (call.near, call.far):
            if side is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(side)
                side.close()
        if call.line.connected:
            call.line.connected = False
            call.line.why = "the connection has ended"
            self._tell(call.line)
        if call.up:
            self._pass_on(call)

    def _pass_on(self, call: _Call) -> None:
        """Turns the line to its next controller, unless another connection did so meanwhile."""
        if call.place == call.line.controller:
            call.line.pass_on()

    def _tell(self, line: Line) -> None:
        for act in self._changed:
            act(line)
