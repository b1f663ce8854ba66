"""A node's way to its own radios: what ``airloom radio`` in a node talks to.

Every node with radios has a listening socket of the name :data:`ADDRESS` in its own network namespace.
Names of that kind are seen in their namespace alone, so whoever reaches the socket is in the node, and
the socket knows no radios but the node's. A guest has a network of its own: its first process listens
there under the same name, and the node's passes on what is said (``init/src/door.rs``).

One request and one answer are a line of JSON each: ``{"do": "info", "radio": "wlan0"}`` gives
``{"answer": ...}`` or ``{"error": {"code", "message", "cure"}}``. Whoever has a radio look around
waits for its answer until the radio is back; nobody else waits.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airloom.errors import HostError, LabError, RunError
from airloom.host.network_namespace import enter
from airloom.nodes.kinds.netns import NetnsNode
from airloom.planning import media
from airloom.planning.plan import GrantPlan
from airloom.runs.radio_scan import GLANCE, Scan, shown
from airloom.scenario.model import Tuning

if TYPE_CHECKING:
    from airloom.runs.emulation import World

ADDRESS = "\0airloom/radio"
_LONGEST = 4096
"""Octets of a request."""
_MOST = 16
"""Visitors of one node at a time."""


class RadioDoors:
    """The sockets of all nodes with radios, served by one thread while the world is open."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._selector = selectors.DefaultSelector()
        self._guests: dict[str, int] = {}
        self._waiting: list[tuple[str, socket.socket, list[Scan]]] = []
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._bell, selectors.EVENT_READ)
        nodes = dict.fromkeys(radio.node for medium in world.plan.media.values() for radio in medium.radios)
        namespaces = {}
        for name in nodes:
            handle = world.nodes[name]
            if isinstance(handle, NetnsNode):
                namespaces[name] = handle.namespace.fileno()
        for name, door in _open(namespaces).items():
            self._selector.register(door, selectors.EVENT_READ, (self._admit, name, bytearray()))
        self._thread = threading.Thread(target=self._serve, name="airloom-radio", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes all doors: an open one would keep its node's namespace alive."""
        os.eventfd_write(self._bell, 1)
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        for _, guest, _ in self._waiting:
            guest.close()
        self._selector.close()
        os.close(self._bell)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select(GLANCE if self._waiting else None):
                if key.fileobj == self._bell:
                    return
                assert isinstance(key.fileobj, socket.socket)
                act, node, text = key.data
                act(node, key.fileobj, text)
            self._look_after_scans()

    def _admit(self, node: str, door: socket.socket, _: bytearray) -> None:
        try:
            guest, _ = door.accept()
        except OSError:  # it went away before it was let in
            return
        if self._guests.get(node, 0) >= _MOST:
            guest.close()
            return
        guest.setblocking(False)
        self._guests[node] = self._guests.get(node, 0) + 1
        self._selector.register(guest, selectors.EVENT_READ, (self._hear, node, bytearray()))

    def _hear(self, node: str, guest: socket.socket, text: bytearray) -> None:
        try:
            piece = guest.recv(_LONGEST)
        except OSError:
            piece = b""
        text += piece
        if piece and b"\n" not in text and len(text) < _LONGEST:
            return
        self._selector.unregister(guest)
        scans: list[Scan] = []

        def reply() -> Any:
            request = json.loads(text)
            if isinstance(request, Mapping) and request.get("do") == "scan":
                scans.extend(begin_scans(self._world, node, request))
                return None
            return answer(self._world, node, request)

        found = _said(reply)
        if scans:
            self._waiting.append((node, guest, scans))
        else:
            self._tell(node, guest, found)

    def _look_after_scans(self) -> None:
        """Tells those whose radios have come back."""
        for waiting in list(self._waiting):
            node, guest, scans = waiting
            found = _said(lambda scans=scans: answer_of(self._world, scans))  # type: ignore[misc]
            if found != {"answer": None}:
                self._waiting.remove(waiting)
                self._tell(node, guest, found)

    def _tell(self, node: str, guest: socket.socket, found: dict[str, Any]) -> None:
        """Begins to; whoever does not read is waited for, and holds up nobody but its own node."""
        text = bytearray(json.dumps(found).encode() + b"\n")
        self._selector.register(guest, selectors.EVENT_WRITE, (self._write, node, text))

    def _write(self, node: str, guest: socket.socket, text: bytearray) -> None:
        try:
            del text[: guest.send(text)]
        except OSError:  # it went away
            text.clear()
        if not text:
            self._selector.unregister(guest)
            guest.close()
            self._guests[node] -= 1


def _said(reply: Callable[[], Any]) -> dict[str, Any]:
    """What is answered, or what is wrong with the request."""
    try:
        return {"answer": reply()}
    except LabError as error:
        return {"error": {"code": error.code, "message": error.message, "cure": error.cure}}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"error": {"code": "radio.request", "message": "not understood", "cure": None}}


def _open(namespaces: Mapping[str, int]) -> dict[str, socket.socket]:
    """A listening socket in each of the namespaces, made by a thread that visits them and ends."""
    found: dict[str, socket.socket] = {}
    errors: list[OSError] = []

    def visit() -> None:
        try:
            for name, namespace in namespaces.items():
                enter(namespace)
                door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                found[name] = door
                door.bind(ADDRESS)
                door.listen(_MOST)
                door.setblocking(False)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=visit, name="airloom-doors")
    thread.start()
    thread.join()
    if errors:
        for door in found.values():
            door.close()
        raise HostError("host.radio", f"a node's radio cannot be opened to it: {errors[0].strerror}")
    return found


def _chosen(
    world: World, node: str, request: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The node's radios that a request is about, and all radios that there are."""
    if not isinstance(request, Mapping):
        raise RunError("radio.request", "a request is an object")
    every = world.radios()
    own = [radio for radio in every if radio["port"].partition(":")[0] == node]
    name = request.get("radio")
    chosen = [radio for radio in own if name is None or _name(radio) == name]
    if not chosen:
        names = ", ".join(_name(radio) for radio in own) or "none"
        raise RunError("radio.unknown", f"this node has no radio {name}", cure=f"its radios are: {names}")
    return chosen, every


def answer(world: World, node: str, request: Mapping[str, Any]) -> Any:
    """What a node is told, or what it changes; about its own radios only."""
    chosen, every = _chosen(world, node, request)
    match request.get("do"):
        case "info":
            return [_info(radio) for radio in chosen]
        case "link":
            return [_link(radio, every) for radio in chosen]
        case "station":
            return [station for radio in chosen for station in _stations(radio, every)]
        case "set":
            if len(chosen) > 1:
                names = ", ".join(_name(radio) for radio in chosen)
                raise RunError("radio.ambiguous", "the node has several radios", cure=f"name one: {names}")
            _set(world, chosen[0], str(request.get("key")), request.get("value"))
            return None
        case other:
            raise RunError("radio.request", f"a radio cannot {other!r}")


def begin_scans(world: World, node: str, request: Mapping[str, Any]) -> list[Scan]:
    """Has a node's radios look around."""
    chosen, _ = _chosen(world, node, request)
    channels = [int(channel) for channel in request.get("channels") or ()]
    if not all(0 < channel <= 200 for channel in channels):
        raise RunError("radio.channel", "a channel has a number from 1 to 200")
    for radio in chosen:
        grant = _grant(world, radio["port"])
        # Without channels it looks on all, which a sliver may not.
        channels = channels or list(grant.channels if grant is not None else ())
        held(grant, [{"channel": channel} for channel in channels])
    passive = request.get("passive") is True
    return [Scan(world, radio, channels, passive=passive) for radio in chosen]


def answer_of(world: World, scans: list[Scan]) -> list[dict[str, Any]] | None:
    """What radios found; none while one of them is away."""
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
    """Mode and SSID."""
    said = radio["settings"]["membership"]
    ((mode, settings),) = said.items()
    return {"access-point": "ap"}.get(mode, mode), settings["ssid"]


def _info(radio: Mapping[str, Any]) -> dict[str, Any]:
    settings = radio["settings"]
    rate = settings["rate"]
    mode, ssid = _membership(radio)
    return {
        "radio": _name(radio),
        "mac": _mac(radio),
        "medium": radio["medium"],
        "up": radio["on"],
        "mode": mode,
        "ssid": ssid,
        "phy": settings["phy"],
        "channel": settings["channel"],
        "mhz": radio["mhz"],
        "power_dbm": settings["power_dbm"],
        "rate": rate if isinstance(rate, str) else "fixed",
        "rate_bit_s": None if isinstance(rate, str) else rate["constant"],
        "rts_octets": settings["rts_octets"],
        "queued": radio["queued"],
        "counts": radio["counts"],
        "airtime_ns": radio["airtime"],
    }


def _link(radio: Mapping[str, Any], every: list[dict[str, Any]]) -> dict[str, Any]:
    mode, ssid = _membership(radio)
    joined = next((other for other in every if other["port"] == radio["access_point"]), None)
    found: dict[str, Any] = {"radio": _name(radio), "mode": mode, "ssid": ssid, "connected": None}
    if mode == "station" and joined is not None:
        peer = radio["peers"].get(joined["port"], {})
        found |= {
            "connected": _mac(joined),
            "mhz": joined["mhz"],
            "signal_dbm": peer.get("signal_dbm"),
            "rate_bit_s": peer.get("rate") or None,
        }
    return found


def _stations(radio: Mapping[str, Any], every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    macs = {other["port"]: _mac(other) for other in every}
    return [
        {
            "radio": _name(radio),
            "mac": macs[port],
            "received": peer["received"],
            "attempts": peer["attempts"],
            "unanswered": peer["unanswered"],
            "signal_dbm": peer["signal_dbm"],
            "rate_bit_s": peer["rate"] or None,
        }
        for port, peer in radio["peers"].items()
    ]


def changes_of(key: str, value: Any, phy: str) -> list[dict[str, Any]]:
    """A change in the scenario's words, as the engine's changes; refuses what is none."""
    if key == "up":
        if not isinstance(value, bool):
            raise RunError("radio.value", f"{value!r} is neither true nor false")
        return [{"on": value}]
    if key == "channel" and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if key not in Tuning.KEYS:
        raise RunError(
            "radio.key", f"a radio has no {key!r} to set", cure=f"allowed: {', '.join(Tuning.KEYS)}, up"
        )
    return media.tuning(Tuning(**{key: value}), phy)


def held(grant: GrantPlan | None, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes, if the grant of the radio's slice holds them all; else they are refused."""
    for change in changes if grant is not None else ():
        assert grant is not None
        channel, power = change.get("channel"), change.get("power")
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


def _grant(world: World, port: str) -> GrantPlan | None:
    plans = (plan for medium in world.plan.media.values() for plan in medium.radios)
    return next((plan.grant for plan in plans if plan.port == port), None)


def _set(world: World, radio: Mapping[str, Any], key: str, value: Any) -> None:
    grant = _grant(world, radio["port"])
    for change in held(grant, changes_of(key, value, radio["settings"]["phy"])):
        world.set_radio(radio["port"], change)
