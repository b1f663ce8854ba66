"""The part of the shared laboratory that belongs to one run: its radios, and what it may do with them.

A run knows its ports by its own names and can name no others. Each of its radios is one of the
testbed's that its reservation holds, stands where the inventory has it, and is held to channels,
power and slots of the reservation: settings are checked here, and transmissions by the medium.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from airloom import _engine
from airloom.errors import LabError, RunError, translated
from airloom.grid.inventory import MEDIUM, Testbed, gain_dbi
from airloom.grid.laboratory.messages import Add, Change
from airloom.grid.laboratory.since import histogram
from airloom.planning import media
from airloom.planning.plan import GrantPlan
from airloom.runs.slice_monitor import UNITS

OTHERS = "(another run)"
"""Port of another run, where a histogram names its latest frames."""
_SUMS = ("offered", "delivered", "missed")


@dataclass(slots=True)
class Shared:
    """What all runs of a laboratory share."""

    testbed: Testbed
    engine: _engine.Engine
    zero: int
    """CLOCK_MONOTONIC in ns at the engine's time zero."""
    radios: dict[str, Tenant] = field(default_factory=dict)
    """Radios in use, as ``node:radio``."""
    names: dict[str, Tenant] = field(default_factory=dict)
    """SSIDs in use."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Tenant:
    """One run in the laboratory; ``lent``: its reservation, as the grid manager describes it."""

    def __init__(self, shared: Shared, lent: dict[str, Any], number: int) -> None:
        self._shared = shared
        self._grant = lent["grant"]
        self._slice: str = lent["slice"]
        self._number = number
        self._ports: dict[str, str] = {}
        """The engine's name of each port."""
        self._lent: dict[str, str] = {}
        """The testbed's ``node:radio`` of each port, by the engine's name."""
        self._began = 0
        """Engine time in ns of its time zero."""
        self._zero = (shared.zero + _engine.realtime_offset()) / 1e9
        """Time of the engine's time zero in seconds since 1970."""
        self._before: Mapping[str, Any] | None = None
        self.macs = b"\x02" + number.to_bytes(3, "big")
        """First four octets of its radios' addresses."""
        _must_agree(shared.testbed, lent)
        self._claim(shared.names, self._slice, "lab.slice", f"the slice {self._slice!r} is in the laboratory")

    def add(self, message: Add, descriptor: int) -> None:
        """Adds a radio with the TAP of its node."""
        if message.port in self._ports:
            raise RunError("lab.port", f"there is a port {message.port} already")
        node, _, radio = message.lent.partition(":")
        if radio not in self._grant["radios"].get(node, ()):
            raise self._refused(f"the radio {message.lent} is not granted")
        settings = self._held(message.settings)
        self._claim(self._shared.radios, message.lent, "lab.radio", f"the radio {message.lent} is in use")
        engine, name = self._shared.engine, f"{self._number}/{message.port}"
        place = {"static": media.place(self._shared.testbed.nodes[node].position)}
        with translated():
            _engine.check_radio(message.port, settings)
            engine.add_tap_port(name, descriptor)
            self._ports[message.port] = name
            self._lent[name] = message.lent
            engine.add_radio(MEDIUM, name, settings, place, name)
            channels, power = tuple(self._grant["channels"]), self._grant["power_dbm"]
            engine.police(name, GrantPlan(self._slice, channels, power, police="enforce").engine())
            if not message.up:
                engine.set_radio(name, {"on": False})

    def change(self, message: Change) -> None:
        """Changes one of its radios."""
        name = self._own(message.port)
        ((key, value),) = message.change.items()
        if key == "channel":
            self._must_be_granted(value)
        elif key == "power":
            self._must_be_within(value)
        elif key == "ssid":
            self._name(value)
        elif key == "scan":
            channels = value.get("channels") if isinstance(value, dict) else None
            if not isinstance(channels, list) or not channels:
                raise self._refused("a scan of all channels is not granted")
            for channel in channels:
                self._must_be_granted(channel)
        elif key not in ("rate", "rts-octets", "on"):
            raise self._refused(f"a change of {key[:32]!r} is not granted")
        with translated():
            if message.at is None:
                self._shared.engine.set_radio(name, message.change)
            else:
                at = max(0, message.at - self._shared.zero)
                self._shared.engine.schedule_radio(at, name, message.change)

    def begin(self) -> None:
        """Its time zero is now."""
        with translated():
            self._before = self._shared.engine.lateness()
            self._began = self._shared.engine.now()

    def leave(self) -> None:
        """Takes its radios off the air and releases what it held. A second call has no effect."""
        ports, self._ports = self._ports, {}
        for name in ports.values():
            with contextlib.suppress(LabError, _engine.EngineError):
                self._shared.engine.set_radio(name, {"on": False})
            with contextlib.suppress(LabError, _engine.EngineError):
                self._shared.engine.detach(name)
        with self._shared.lock:
            for held in (self._shared.radios, self._shared.names):
                for key in [key for key, whose in held.items() if whose is self]:
                    del held[key]

    def reported(self) -> list[dict[str, Any]]:
        """Returns its violations so far, as the grid manager keeps them."""
        return [
            {
                "at": self._wall(one["from"]),  # type: ignore[typeddict-item]
                "until": self._wall(one["until"]),
                "radio": self._lent[one["port"]],
                "what": one["what"],
                "amount": one["amount"],
                "unit": UNITS.get(one["what"], ""),
                "frames": one["frames"],
                "channel": one["channel"],
            }
            for one in self._shared.engine.violations()["found"]
            if one["port"] in self._lent
        ]

    def _wall(self, at: int) -> str:
        """Returns an engine time in ns as a call to the manager writes it."""
        return datetime.fromtimestamp(self._zero + at / 1e9, UTC).isoformat()

    # What it may read: its own part, with times that count from its time zero

    def read(self, what: str) -> Any:
        """Returns what a message of type ``read`` asks for."""
        with translated():
            found: Any = getattr(self, f"_{what}")()
        return found

    def scanned(self, port: str) -> dict[str, Any]:
        """Returns the scans of a radio; it finds radios of the run only."""
        with translated():
            state = self._shared.engine.scanned(self._own(port))
        names = self._names()
        return {
            "times": state["times"],
            "found": [{**one, "port": names[one["port"]]} for one in state["found"] if one["port"] in names],
        }

    def _radios(self) -> list[dict[str, Any]]:
        names = self._names()
        return [
            {
                **radio,
                "port": names[radio["port"]],
                "access_point": names.get(radio["access_point"] or ""),
                "peers": {names[peer]: state for peer, state in radio["peers"].items() if peer in names},
            }
            for radio in self._shared.engine.radios()
            if radio["port"] in names
        ]

    def _channels(self) -> list[Any]:
        granted = self._grant["channels"]
        return [one for one in self._shared.engine.channels() if one["channel"] in granted]

    def _violations(self) -> dict[str, Any]:
        names = self._names()
        found = [
            {
                **one,
                "port": names[one["port"]],
                "from": one["from"] - self._began,  # type: ignore[typeddict-item]
                "until": one["until"] - self._began,
                "concerned": [],
            }
            for one in self._shared.engine.violations()["found"]
            if one["port"] in names
        ]
        return {"found": found, "unrecorded": 0}

    def _ledger(self) -> dict[str, Any]:
        """Returns the ledger of its ports.

        The engine counts copies of group frames and frames in flight for all ports together; those
        of the run are what balances its account.
        """
        ports: Mapping[str, Any] = self._shared.engine.ledger()["ports"]
        own = {port: ports[name] for port, name in self._ports.items()}
        found: dict[str, Any] = {key: sum(one[key] for one in own.values()) for key in _SUMS}
        for key in ("dropped", "host_lost"):
            found[key] = {}
            for one in own.values():
                for reason, frames in one[key].items():
                    found[key][reason] = found[key].get(reason, 0) + frames
        fates = found["delivered"] + sum(found["dropped"].values()) + sum(found["host_lost"].values())
        octets = {way: sum(one[f"{way}_octets"] for one in own.values()) for way in ("offered", "delivered")}
        return {
            **found,
            "copies": max(0, fates - found["offered"]),
            "in_flight": max(0, found["offered"] - fates),
            "octets": {**octets, "copies": 0, "in_flight": 0},
            "ports": own,
            "links": {},
            "switches": {},
        }

    def _lateness(self) -> dict[str, Any]:
        """Returns the lateness of the laboratory since its time zero: all runs share the engine."""
        now: Mapping[str, Any] = self._shared.engine.lateness()
        names, before = self._names(), self._before
        found: dict[str, Any] = {
            key: histogram(now[key], before[key] if before is not None else None, self._began)
            for key in ("delivery", "ingress", "wakes")
        }
        for one in found.values():
            one["worst"] = [
                (at - self._began, late, names.get(port, OTHERS)) for at, late, port in one["worst"]
            ]
        status = [
            {**second, "start": second["start"] - self._began, "end": second["end"] - self._began}
            for second in now["status"]
            if second["start"] >= self._began
        ]
        return {**found, "status": status, "preferred": now["preferred"], "capture": None}

    def _names(self) -> dict[str, str]:
        return {name: port for port, name in self._ports.items()}

    # What it may ask for

    def _own(self, port: str) -> str:
        try:
            return self._ports[port]
        except KeyError:
            raise RunError("lab.port", f"the run has no port {port}") from None

    def _held(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Returns a radio's settings with what the reservation says; refuses others than granted."""
        bed = self._shared.testbed
        if settings.get("phy") != bed.phy:
            raise self._refused(f"the physical layer is not the testbed's: {bed.phy}")
        gain = gain_dbi(bed)
        if settings.get("gain_dbi", gain) != gain:
            raise self._refused("the antenna gain is not the testbed's")
        self._must_be_granted(settings.get("channel"))
        self._must_be_within(settings.get("power_dbm", float(media.DEFAULT_POWER)))
        mac = settings.get("mac")
        if not isinstance(mac, list) or mac[:4] != list(self.macs):
            raise self._refused(f"the address does not begin with {self.macs.hex(':')}")
        member = settings.get("membership", {"ad-hoc": {"ssid": "", "beacon_ns": media.BEACON}})
        if not isinstance(member, dict) or len(member) != 1:
            raise self._refused("a wireless device of a guest's own kernel is not granted")
        ((mode, cell),) = member.items()
        if not isinstance(cell, dict):
            raise self._refused("the membership has no settings")
        cell = {**cell, "ssid": cell.get("ssid") or self._slice}
        self._name(cell["ssid"])
        if mode == "station":
            cell.setdefault("channels", self._grant["channels"])
            if not isinstance(cell["channels"], list) or not cell["channels"]:
                raise self._refused("a scan of all channels is not granted")
            for channel in cell["channels"]:
                self._must_be_granted(channel)
        slots = self._slots(settings.get("slots"))
        return {**settings, "gain_dbi": gain, "membership": {mode: cell}, **slots}

    def _slots(self, said: Any) -> dict[str, Any]:
        """Returns the slots of a radio: those of the grant, or those of them that the run asks for."""
        frame = self._shared.testbed.inventory.slots
        part = media.slots(frame, self._grant["slots"])
        if said is None:
            return {"slots": part} if len(part["own"]) < frame.frame else {}
        if not isinstance(said, dict) or not isinstance(said.get("own"), list):
            raise self._refused("the slots are not understood")
        if {**said, "own": []} != {**part, "own": []} or not set(said["own"]) <= set(part["own"]):
            raise self._refused("the slots are not granted")
        return {"slots": said}

    def _must_be_granted(self, channel: Any) -> None:
        if type(channel) is not int or channel not in self._grant["channels"]:
            raise self._refused(f"channel {str(channel)[:16]} is not granted")

    def _must_be_within(self, power: Any) -> None:
        if type(power) not in (int, float) or not power <= self._grant["power_dbm"]:
            raise self._refused(f"{str(power)[:16]} dBm are not granted")

    def _name(self, ssid: Any) -> None:
        if not isinstance(ssid, str) or not 1 <= len(ssid.encode()) <= 32:
            raise self._refused("the SSID has 1 to 32 octets")
        self._claim(self._shared.names, ssid, "slice.ssid", f"the SSID {ssid!r} is in use")

    def _claim(self, held: MutableMapping[str, Tenant], key: str, code: str, why: str) -> None:
        """Takes something that one run has at a time."""
        with self._shared.lock:
            if held.setdefault(key, self) is not self:
                raise RunError(code, why)

    def _refused(self, message: str) -> LabError:
        grant = self._grant
        cure = f"granted: channels {', '.join(map(str, grant['channels']))}, {grant['power_dbm']:g} dBm"
        return RunError("grid.grant", message, cure=cure)


def _must_agree(testbed: Testbed, lent: Mapping[str, Any]) -> None:
    """Raises an error for a reservation of another testbed than the laboratory's."""
    for node, radios in lent["grant"]["radios"].items():
        known = testbed.nodes.get(node)
        there = known is not None and list(testbed.place(node)) == lent["positions"][node]
        if known is None or not there or not set(radios) <= set(known.radios):
            raise RunError("lab.inventory", f"the node {node!r} is not that of the laboratory's inventory")
