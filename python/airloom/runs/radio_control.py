"""Serves the control sockets through which ``airloom radio`` in a node controls the node's radios.

Every node with radios has a listening socket with the abstract name :data:`ADDRESS` in its own
network namespace. Abstract names are visible in their namespace only, so every client is a program
in the node, and the socket gives access to the node's radios only. A guest has its own kernel: its
first process listens there under the same name, and the node's first process forwards the data
(``init/src/control_socket.rs``).

A request and its answer are one line of JSON each: ``{"do": "info", "radio": "wlan0"}`` returns
``{"answer": ...}`` or ``{"error": {"code", "message", "cure"}}``; see
:mod:`airloom.runs.radio_requests`. A scan request is answered when the radio has finished scanning;
all others are answered at once.

Programs in nodes are not trusted. One thread serves all nodes. An exception on a connection closes
only that connection. A connection that does not send or read is closed after :data:`TIMEOUT`.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airloom.errors import HostError, LabError, RunError
from airloom.host.network_namespace import enter
from airloom.nodes.kinds.netns import NetnsNode
from airloom.planning import timed_changes
from airloom.planning.plan import GrantPlan, Plan
from airloom.planning.radio import media
from airloom.planning.slices.spans import within
from airloom.runs.radio_requests import LONGEST, Change, Request, Search, Show, parse
from airloom.runs.radio_scan import GLANCE, Scan, shown
from airloom.scenario.model import Tuning

if TYPE_CHECKING:
    from airloom._engine import RadioState
    from airloom.runs.radio_world import RadioWorld

ADDRESS = "\0airloom/radio"
_MOST = 16
"""Maximum number of open connections per node."""
TIMEOUT = 30.0
"""Seconds that a connection may take to send its request, and again to read its answer."""
AWAY = 120.0
"""Maximum duration of a scan in seconds; scanning all channels takes less than half of it."""


class _Connection:
    """A connection from a program in a node: one request, then its answer."""

    def __init__(self, node: str, socket: socket.socket) -> None:
        self.node = node
        self.socket = socket
        self.scans: list[Scan] = []
        """The scans that its answer waits for."""
        self.until = time.monotonic() + TIMEOUT
        self._received = bytearray()
        self._answer = bytearray()

    def receive(self) -> bytes | None:
        """Reads. Returns the request when it is complete: at the first line end or the stream's
        end.
        """
        piece = self.socket.recv(LONGEST + 1 - len(self._received))
        self._received += piece
        line, end, _ = self._received.partition(b"\n")
        return bytes(line) if end or not piece or len(line) > LONGEST else None

    def answer(self, found: dict[str, Any]) -> None:
        """Stores the answer to send."""
        self._answer += json.dumps(found).encode() + b"\n"
        self.until = time.monotonic() + TIMEOUT

    def send(self) -> bool:
        """Sends more of the answer. Returns True when all of it is sent."""
        del self._answer[: self.socket.send(self._answer)]
        return not self._answer


class RadioControl:
    """Control sockets of all nodes with radios, served by one thread while the emulation is open."""

    def __init__(self, world: RadioWorld) -> None:
        self._world = world
        self._selector = selectors.DefaultSelector()
        self._connections: list[_Connection] = []
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._listeners: dict[str, tuple[NetnsNode, socket.socket]] = {}
        """By node: its handle, which another one takes the place of if it is made anew, and its socket."""
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="airloom-radio", daemon=True)
        self._thread.start()

    def follow(self, plan: Plan) -> None:
        """Serves the nodes with radios of a plan, all of which are there, and no others."""
        names = dict.fromkeys(radio.node for medium in plan.media.values() for radio in medium.radios)
        wanted = {name: node for name in names if isinstance(node := self._world.nodes[name], NetnsNode)}
        known = {name: node for name, (node, _) in self._listeners.items()}
        gone = [name for name, node in known.items() if wanted.get(name) is not node]
        come = {name: node for name, node in wanted.items() if known.get(name) is not node}
        opened = _open({name: node.namespace.fileno() for name, node in come.items()})
        done = threading.Event()

        def change() -> None:
            for name in gone:
                _, listener = self._listeners.pop(name)
                for connection in [one for one in self._connections if one.node == name]:
                    self._end(connection)
                self._selector.unregister(listener)
                listener.close()
            for name, listener in opened.items():
                self._listeners[name] = (come[name], listener)
                self._selector.register(listener, selectors.EVENT_READ, name)
            done.set()

        self._orders.put(change)
        os.eventfd_write(self._wakeup, 1)
        done.wait(TIMEOUT)

    def close(self) -> None:
        """Closes all sockets; an open one would keep its node's namespace alive."""
        self._closing = True
        os.eventfd_write(self._wakeup, 1)
        self._thread.join()
        for connection in list(self._connections):
            self._end(connection)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        os.close(self._wakeup)

    def _serve(self) -> None:
        while True:
            ready = self._selector.select(self._pause())
            if any(key.fileobj == self._wakeup for key, _ in ready):
                os.eventfd_read(self._wakeup)
                if self._closing:
                    return
                while not self._orders.empty():
                    self._orders.get()()
                continue
            for key, mask in ready:
                if isinstance(key.data, _Connection):
                    self._served(key.data, self._receive if mask & selectors.EVENT_READ else self._send)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._accept(key.data, key.fileobj)
            for connection in list(self._connections):
                if connection.until < time.monotonic():
                    self._end(connection)
                elif connection.scans:
                    self._served(connection, self._finish_scans)

    def _pause(self) -> float | None:
        """Seconds until the next timeout; None if there is none."""
        if any(connection.scans for connection in self._connections):
            return GLANCE
        ends = [connection.until for connection in self._connections]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _served(self, connection: _Connection, act: Callable[[_Connection], None]) -> None:
        """Serves a connection; an error closes only this connection."""
        try:
            act(connection)
        except BlockingIOError:
            pass  # it was not ready after all
        except Exception:
            self._end(connection)

    def _accept(self, node: str, listener: socket.socket) -> None:
        try:
            accepted, _ = listener.accept()
        except OSError:  # the client closed before accept, or no descriptor is free
            time.sleep(GLANCE)
            return
        if sum(connection.node == node for connection in self._connections) >= _MOST:
            accepted.close()
            return
        accepted.setblocking(False)
        connection = _Connection(node, accepted)
        self._connections.append(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        line = connection.receive()
        if line is None:
            return
        self._selector.unregister(connection.socket)

        def reply() -> Any:
            request = parse(line)
            if isinstance(request, Search):
                connection.scans = begin_scans(self._world, connection.node, request)
                connection.until = time.monotonic() + AWAY
                return None
            return answer(self._world, connection.node, request)

        found = _said(reply)
        if not connection.scans:
            self._answer(connection, found)

    def _finish_scans(self, connection: _Connection) -> None:
        """Answers the connection if its radios have finished scanning."""
        found = _said(lambda: answer_of(self._world, connection.scans))
        if found != {"answer": None}:
            connection.scans = []
            self._answer(connection, found)

    def _answer(self, connection: _Connection, found: dict[str, Any]) -> None:
        """Sends the answer as the client reads it. A slow client delays only its own node."""
        connection.answer(found)
        self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)

    def _send(self, connection: _Connection) -> None:
        if connection.send():
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        if connection.socket in self._selector.get_map():
            self._selector.unregister(connection.socket)
        connection.socket.close()


def _said(reply: Callable[[], Any]) -> dict[str, Any]:
    """The answer, or the error that the request causes."""
    try:
        return {"answer": reply()}
    except LabError as error:
        return {"error": {"code": error.code, "message": error.message, "cure": error.cure}}
    except Exception as error:
        # An internal error: report it to the node too, and continue to serve the other nodes.
        message = f"the laboratory cannot answer: {type(error).__name__}"
        return {"error": {"code": "radio.failed", "message": message, "cure": None}}


def _open(namespaces: Mapping[str, int]) -> dict[str, socket.socket]:
    """Opens a listening socket in each namespace. A temporary thread enters the namespaces."""
    found: dict[str, socket.socket] = {}
    errors: list[OSError] = []

    def listen() -> None:
        try:
            for name, namespace in namespaces.items():
                enter(namespace)
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                found[name] = listener
                listener.bind(ADDRESS)
                listener.listen(_MOST)
                listener.setblocking(False)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=listen, name="airloom-radio-sockets")
    thread.start()
    thread.join()
    if errors:
        for listener in found.values():
            listener.close()
        raise HostError(
            "host.radio", f"the control socket of a node's radios cannot be opened: {errors[0].strerror}"
        )
    return found


def _chosen(world: RadioWorld, node: str, request: Request) -> tuple[list[RadioState], list[RadioState]]:
    """The node's radios that a request selects, and all radios of the run."""
    every = world.radios()
    own = [radio for radio in every if radio["port"].partition(":")[0] == node]
    name = request.radio
    chosen = [radio for radio in own if name is None or _name(radio) == name]
    if not chosen:
        names = ", ".join(_name(radio) for radio in own) or "none"
        raise RunError("radio.unknown", f"this node has no radio {name}", cure=f"its radios are: {names}")
    return chosen, every


def answer(world: RadioWorld, node: str, request: Show | Change) -> Any:
    """Answers a query or applies a change, for the node's own radios only."""
    chosen, every = _chosen(world, node, request)
    if isinstance(request, Change):
        if len(chosen) > 1:
            names = ", ".join(_name(radio) for radio in chosen)
            raise RunError("radio.ambiguous", "the node has several radios", cure=f"name one: {names}")
        _set(world, chosen[0], request.key, request.value)
        return None
    show = {"info": _infos, "link": _links, "station": _stations}[request.do]
    return [one for radio in chosen for one in show(radio, every)]


def begin_scans(world: RadioWorld, node: str, request: Search) -> list[Scan]:
    """Starts a scan on the selected radios of a node."""
    chosen, _ = _chosen(world, node, request)
    for radio in chosen:
        _must_not_be_wlan(radio, "what it searches for")
    channels = request.channels
    for radio in chosen:
        grant = timed_changes.grant_at(world.plan, radio["port"], world.now())
        # Without channels the radio would scan all of them, which a sliver's grant may not allow.
        channels = channels or list(grant.channels if grant is not None else ())
        permitted(world, radio, [{"channel": channel} for channel in channels])
    return [Scan(world, radio, channels, passive=request.passive) for radio in chosen]


def answer_of(world: RadioWorld, scans: list[Scan]) -> list[dict[str, Any]] | None:
    """Scan results of the radios; None while one of them is still scanning."""
    found = [scan.found() for scan in scans]
    if None in found:
        return None
    every = world.radios()
    return [one for scan, seen in zip(scans, found, strict=True) if seen for one in shown(scan, seen, every)]


def _name(radio: Mapping[str, Any]) -> str:
    name: str = radio["port"].partition(":")[2]
    return name


def _mac(radio: Mapping[str, Any]) -> str:
    return ":".join(f"{octet:02x}" for octet in radio["settings"]["mac"])


def _membership(radio: Mapping[str, Any]) -> tuple[str, str]:
    """Mode and SSID; the SSID of a wireless device is known to its node's kernel alone."""
    said = radio["settings"]["membership"]
    if isinstance(said, str):
        return said, ""
    ((mode, settings),) = said.items()
    return {"access-point": "ap"}.get(mode, mode), settings["ssid"]


def must_be_free(radio: RadioState, key: str) -> None:
    """Raises an error if the node's own 802.11 stack decides this setting of the radio."""
    if key in media.TUNED_BY_THE_STACK:
        _must_not_be_wlan(radio, key)


def _must_not_be_wlan(radio: RadioState, what: str) -> None:
    if _membership(radio)[0] == "wlan":
        raise RunError(
            "radio.device",
            f"the kernel of the node decides {what} of the radio {_name(radio)}",
            cure="use iw, hostapd or wpa_supplicant in the node",
        )


def _infos(radio: RadioState, _: Sequence[RadioState]) -> Iterator[dict[str, Any]]:
    settings = radio["settings"]
    rate = settings["rate"]
    mode, ssid = _membership(radio)
    yield {
        "radio": _name(radio),
        "mac": _mac(radio),
        "medium": radio["medium"],
        "up": radio["on"],
        "mode": mode,
        "ssid": ssid,
        "phy": settings["phy"],
        "channel": settings["channel"],
        "mhz": radio["mhz"],
        "width_mhz": settings["width_mhz"],
        "power_dbm": settings["power_dbm"],
        "rate": rate if isinstance(rate, str) else "fixed",
        "mcs": None if isinstance(rate, str) else rate.get("mcs"),
        "rate_bit_s": None if isinstance(rate, str) or "mcs" in rate else next(iter(rate.values())),
        "rts_octets": settings["rts_octets"],
        "queued": radio["queued"],
        "counts": radio["counts"],
        "airtime_ns": radio["airtime"],
    }


def _links(radio: RadioState, every: Sequence[RadioState]) -> Iterator[dict[str, Any]]:
    mode, ssid = _membership(radio)
    joined = next((other for other in every if other["port"] == radio["access_point"]), None)
    found: dict[str, Any] = {"radio": _name(radio), "mode": mode, "ssid": ssid, "connected": None}
    if mode == "station" and joined is not None:
        peer: Mapping[str, Any] = radio["peers"].get(joined["port"], {})
        found |= {
            "connected": _mac(joined),
            "mhz": joined["mhz"],
            "signal_dbm": peer.get("signal_dbm"),
            "rate_bit_s": peer.get("rate") or None,
        }
    yield found


def _stations(radio: RadioState, every: Sequence[RadioState]) -> Iterator[dict[str, Any]]:
    macs = {other["port"]: _mac(other) for other in every}
    for port, peer in radio["peers"].items():
        yield {
            "radio": _name(radio),
            "mac": macs[port],
            "received": peer["received"],
            "attempts": peer["attempts"],
            "unanswered": peer["unanswered"],
            "signal_dbm": peer["signal_dbm"],
            "rate_bit_s": peer["rate"] or None,
        }


def changes_of(key: str, value: Any, phy: str | None) -> list[dict[str, Any]]:
    """Converts a change to the engine's changes. Raises an error if it is invalid.

    ``phy``: the radio's physical layer; None if its medium has no channel access.
    """
    if key == "up":
        if not isinstance(value, bool):
            raise RunError("radio.value", f"{value!r} is neither true nor false")
        return [{"on": value}]
    if key == "channel" and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if key not in Tuning.KEYS:
        raise RunError(
            "radio.key", f"{key!r} is no setting of a radio", cure=f"allowed: {', '.join(Tuning.KEYS)}, up"
        )
    return media.tuning(Tuning(**{key: value}), phy)


def _phy(radio: RadioState) -> str | None:
    """Returns a radio's physical layer; None if its medium has no channel access."""
    settings = radio["settings"]
    return None if "unmodulated" in settings["rate"] else settings["phy"]


def held(grant: GrantPlan | None, changes: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """The changes if the grant of the radio's slice permits them all ``now``; otherwise an error."""
    for change in changes if grant is not None else ():
        assert grant is not None
        channel, power = change.get("channel"), change.get("power")
        if change.get("on") and not within(grant.held, now):
            raise RunError(
                "slice.grant",
                f"{grant.slice!r} does not have the radio {grant.radio} now",
                cure="it is on as soon as the grant has it",
            )
        if channel is not None and channel not in grant.channels:
            channels = ", ".join(str(one) for one in grant.channels)
            raise RunError(
                "slice.grant",
                f"channel {channel} is outside the grant of {grant.slice!r}",
                cure=f"granted: {channels}",
            )
        if power is not None and grant.power_dbm is not None and power > grant.power_dbm:
            raise RunError(
                "slice.grant",
                f"{power:g} dBm is more than the grant of {grant.slice!r} allows",
                cure=f"at most {grant.power_dbm:g} dBm",
            )
    return changes


def permitted(world: RadioWorld, radio: RadioState, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes if the grant of the radio's slice permits them all now; otherwise they are recorded as
    refused, and an error is raised.
    """
    now = world.now()
    grant = timed_changes.grant_at(world.plan, radio["port"], now)
    try:
        return held(grant, changes, now)
    except RunError:
        assert grant is not None
        asked = (
            change["channel"] for change in changes if change.get("channel") not in (None, *grant.channels)
        )
        world.refusals.add(grant.slice, radio["port"], next(asked, radio["settings"]["channel"]), now)
        raise


def _set(world: RadioWorld, radio: RadioState, key: str, value: Any) -> None:
    must_be_free(radio, key)
    for change in permitted(world, radio, changes_of(key, value, _phy(radio))):
        world.set_radio(radio["port"], change)
