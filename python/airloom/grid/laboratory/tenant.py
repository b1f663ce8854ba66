"""The part of the shared laboratory that belongs to one run: its radios, and what it may do with them.

A run knows its ports by its own names and can name no others. Each of its radios is one of the
testbed's that its reservation holds, stands where the inventory has it, and is held to channels,
power and slots of the reservation: settings are checked here, and transmissions by the medium.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from airloom import _engine
from airloom.errors import LabError, RunError, translated
from airloom.grid.answers import Lent
from airloom.grid.grants import Outside
from airloom.grid.inventory import MEDIUM, Testbed, gain_dbi
from airloom.grid.laboratory.messages import Add, Change
from airloom.grid.laboratory.names import Announced, Names
from airloom.grid.laboratory.since import histogram
from airloom.grid.messages import Violation
from airloom.planning.plan import GrantPlan
from airloom.planning.radio import media
from airloom.runs.refusals import Refusals
from airloom.runs.slice_monitor import UNITS

MOST_FRAMES, FRAMES_OF_A_RADIO = 2048, 50
"""Transmit buffers of all radios of a run together: so many, or so many for each radio of its reservation
if that is more. A buffer takes 2 KiB, and 64 KiB if its frame was part of a TCP super-segment."""
MOST_PENDING = 10_000
"""Changes of a run that are not due yet."""
_FORBIDDEN = ("grid.grant", "slice.ssid")
"""Codes of what the reservation forbids."""
_MOST_CHANNEL = 1000
"""Largest number of a channel that the grid manager keeps."""
_SETTINGS = frozenset(
    ("mac", "phy", "channel", "power_dbm", "gain_dbi", "noise_figure_db", "carrier_sense_dbm", "receive_dbm",
     "preamble_db", "capture_db", "capture_ns", "rate", "basic_rates", "control_rate", "short_retries",
     "long_retries", "rts_octets", "fragment_octets", "transmit_buffers", "tail_drop", "qos",
     "coverage_class", "slots", "membership")
)  # fmt: skip
"""Settings of a radio that a run chooses. All others are the laboratory's, among them new ones of the
engine: ``hops``, for example, moves a radio to channels that are not granted."""
_MEMBERSHIPS = {
    "ad-hoc": frozenset(("ssid", "beacon_ns")),
    "access-point": frozenset(("ssid", "beacon_ns")),
    "station": frozenset(("ssid", "channels", "dwell_ns", "active", "leave_dbm", "better_db", "lost_ns")),
}
"""The same of its membership, by mode."""
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
    names: Names = field(default_factory=Names)
    """SSIDs in use."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Tenant:
    """One run in the laboratory; ``lent``: its reservation, as the grid manager describes it."""

    def __init__(self, shared: Shared, lent: Lent, number: int) -> None:
        self._shared = shared
        self._grant = lent.grant
        self._slice = lent.slice
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
        self._buffers: dict[str, int] = {}
        """Transmit buffers of each port."""
        self._pending: list[int] = []
        """Engine times in ns of changes that were not due when it was looked at last."""
        self._refusals = Refusals()
        """Settings that the reservation forbids; their times are the engine's."""
        self._names = Announced(self._slice, frozenset(lent.booked))
        self.macs = b"\x02" + number.to_bytes(3, "big")
        """First four octets of its radios' addresses."""
        _must_agree(shared.testbed, lent)
        renamed = shared.names.join(self._names)
        if renamed is None:
            raise RunError("lab.slice", f"the slice {self._slice!r} is in the laboratory")
        for name, ports in renamed.items():
            for port in ports:
                with contextlib.suppress(LabError, _engine.EngineError):
                    shared.engine.set_radio(port, {"ssid": name})

    def add(self, message: Add, descriptor: int) -> None:
        """Adds a radio with the TAP of its node."""
        if message.port in self._ports:
            raise RunError("lab.port", f"there is a port {message.port} already")
        with self._recorded(message.lent, message.settings.get("channel")):
            self._add(message, descriptor)

    def _add(self, message: Add, descriptor: int) -> None:
        node, _, radio = message.lent.partition(":")
        self._must_be_inside(self._grant.outside_radio(node, radio))
        engine, name = self._shared.engine, f"{self._number}/{message.port}"
        settings = self._held(message.settings)
        with translated():
            _engine.check_radio(message.port, settings)
        buffers = self._within_memory(name, settings)
        self._claim_radio(message.lent)
        ((_, cell),) = settings["membership"].items()
        self._rename(name, cell["ssid"], None)
        self._buffers[name] = buffers
        place = {"static": media.place(self._shared.testbed.nodes[node].position)}
        with translated():
            engine.add_tap_port(name, descriptor)
            self._ports[message.port] = name
            self._lent[name] = message.lent
            engine.add_radio(MEDIUM, name, settings, place, name)
            engine.police(name, self._policed().engine())
            if not message.up:
                engine.set_radio(name, {"on": False})

    def change(self, message: Change) -> None:
        """Changes one of its radios."""
        name = self._own(message.port)
        asked = message.change.get("channel")
        with self._recorded(self._lent[name], asked):
            self._change(name, message)

    def _change(self, name: str, message: Change) -> None:
        ((key, value),) = message.change.items()
        if key == "channel":
            self._must_be_granted(value)
        elif key == "power":
            self._must_be_within(value)
        elif key == "ssid":
            self._rename(name, value, message.at)
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
                self._may_wait(at)
                self._shared.engine.schedule_radio(at, name, message.change)
                self._pending.append(at)

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
                # A radio that no slice has stays off, whatever change of the run is still to come.
                self._shared.engine.police(name, dataclasses.replace(self._policed(), held=()).engine())
            with contextlib.suppress(LabError, _engine.EngineError):
                self._shared.engine.detach(name)
        self._shared.names.leave(self._names)
        with self._shared.lock:
            for key in [key for key, whose in self._shared.radios.items() if whose is self]:
                del self._shared.radios[key]

    def forget(self) -> None:
        """Frees the records of its violations, after they were reported."""
        with contextlib.suppress(LabError, _engine.EngineError):
            self._shared.engine.forget_violations(self._slice)

    def reported(self) -> list[Violation]:
        """Returns its violations and refused settings so far, as the grid manager keeps them."""
        refused = [
            Violation(
                at=self._wall(one.t_ns),
                until=self._wall(one.until_ns),
                **one.model_dump(include={"radio", "what", "amount", "unit", "frames", "channel"}),
            )
            for one in self._refusals.found()[0]
        ]
        return refused + [
            Violation.model_validate(
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
            )
            for one in self._shared.engine.violations()["found"]
            if one["port"] in self._lent
        ]

    def unrecorded(self) -> int:
        """Returns how many of its violations have no record."""
        lost = int(self._shared.engine.violations()["unrecorded_by_slice"].get(self._slice, 0))
        return lost + self._refusals.found()[1]

    def _wall(self, at: int) -> datetime:
        """Returns the time of an engine time in ns."""
        return datetime.fromtimestamp(self._zero + at / 1e9, UTC)

    @contextlib.contextmanager
    def _recorded(self, lent: str, channel: Any) -> Iterator[None]:
        """Context manager: records what is refused because the reservation forbids it.

        ``channel``: what the message says, which may be anything.
        """
        try:
            yield
        except LabError as error:
            if error.code in _FORBIDDEN:
                known = channel if type(channel) is int and 0 <= channel <= _MOST_CHANNEL else 0
                self._refusals.add(self._slice, lent, known, int(self._shared.engine.now()))
            raise

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
        names = self._port_names()
        return {
            "times": state["times"],
            "found": [{**one, "port": names[one["port"]]} for one in state["found"] if one["port"] in names],
        }

    def _radios(self) -> list[dict[str, Any]]:
        names = self._port_names()
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
        granted = self._grant.channels
        return [one for one in self._shared.engine.channels() if one["channel"] in granted]

    def _violations(self) -> dict[str, Any]:
        names = self._port_names()
        state = self._shared.engine.violations()
        found = [
            {
                **one,
                "port": names[one["port"]],
                "from": one["from"] - self._began,  # type: ignore[typeddict-item]
                "until": one["until"] - self._began,
                "concerned": [],
            }
            for one in state["found"]
            if one["port"] in names
        ]
        lost = state["unrecorded_by_slice"].get(self._slice, 0)
        return {
            "found": found,
            "unrecorded": lost,
            "unrecorded_by_slice": {self._slice: lost} if lost else {},
        }

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
        names, before = self._port_names(), self._before
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

    def _port_names(self) -> dict[str, str]:
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
        _must_know(settings, _SETTINGS, self._refused)
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
        if mode not in _MEMBERSHIPS or not isinstance(cell, dict):
            raise self._refused(f"a membership {str(mode)[:32]!r} is not granted")
        _must_know(cell, _MEMBERSHIPS[mode], self._refused)
        cell = {**cell, "ssid": cell.get("ssid") or self._slice}
        self._may_announce(cell["ssid"])
        if mode == "station":
            cell.setdefault("channels", list(self._grant.channels))
            if not isinstance(cell["channels"], list) or not cell["channels"]:
                raise self._refused("a scan of all channels is not granted")
            for channel in cell["channels"]:
                self._must_be_granted(channel)
        slots = self._slots(settings.get("slots"))
        return {**settings, "gain_dbi": gain, "membership": {mode: cell}, **slots}

    def _slots(self, said: Any) -> dict[str, Any]:
        """Returns the slots of a radio: those of the grant, or those of them that the run asks for."""
        frame = self._shared.testbed.inventory.slots
        part = media.slots(frame, self._grant.slots)
        if said is None:
            return {"slots": part} if len(part["own"]) < frame.frame else {}
        if not isinstance(said, dict) or not isinstance(said.get("own"), list):
            raise self._refused("the slots are not understood")
        _must_know(said, part, self._refused)
        self._must_be_inside(next(self._grant.outside_slots(said, part), None))
        return {"slots": said}

    def _must_be_granted(self, channel: Any) -> None:
        self._must_be_inside(self._grant.outside_channel(channel))

    def _must_be_within(self, power: Any) -> None:
        self._must_be_inside(self._grant.outside_power(power))

    def _must_be_inside(self, outside: Outside | None) -> None:
        if outside is not None:
            raise RunError("grid.grant", outside.message, cure=outside.cure)

    def _rename(self, name: str, ssid: Any, at: int | None) -> None:
        """Lets a port announce an SSID, now or from a time of the host's clock on."""
        self._may_announce(ssid)
        when = None if at is None else max(0, at - self._shared.zero)
        with translated():
            now = self._shared.engine.now()
        self._announced(self._shared.names.claim(self._names, name, when, now, ssid))

    def _may_announce(self, ssid: Any) -> None:
        if not isinstance(ssid, str):
            raise self._refused("the SSID is no text")
        self._announced(self._shared.names.refusal(self._names, ssid))

    def _announced(self, refusal: str | None) -> None:
        if refusal is not None:
            cure = f"announce {self._slice!r}, or a name that begins with it and is free"
            raise RunError("slice.ssid", refusal, cure=cure)

    def _claim_radio(self, lent: str) -> None:
        with self._shared.lock:
            if self._shared.radios.setdefault(lent, self) is not self:
                raise RunError("lab.radio", f"the radio {lent} is in use")

    def _within_memory(self, name: str, settings: Mapping[str, Any]) -> int:
        """Returns a new radio's transmit buffers; raises an error if the run has no right to them."""
        radios = sum(len(radios) for radios in self._grant.radios.values())
        most = max(MOST_FRAMES, FRAMES_OF_A_RADIO * radios)
        said = (settings.get("transmit_buffers", FRAMES_OF_A_RADIO), settings.get("tail_drop", 0))
        buffers = max(map(int, said))
        others = sum(each for port, each in self._buffers.items() if port != name)
        if others + buffers > most:
            message = f"{buffers} transmit buffers are not granted: a run's radios have {most} together"
            raise RunError("grid.grant", message, cure="give the radios smaller 'buffers' and 'queue'")
        return buffers

    def _may_wait(self, at: int) -> None:
        now = self._shared.engine.now()
        if len(self._pending) >= MOST_PENDING:
            self._pending = [each for each in self._pending if each > now]
        if len(self._pending) >= MOST_PENDING:
            raise RunError("lab.changes", f"{MOST_PENDING} changes of the run are waiting to be due")

    def _policed(self) -> GrantPlan:
        """Returns what the medium holds its radios to."""
        return GrantPlan(self._slice, self._grant.channels, self._grant.power_dbm, police="enforce")

    def _refused(self, message: str) -> LabError:
        grant = self._grant
        cure = f"granted: channels {', '.join(map(str, grant.channels))}, {grant.power_dbm:g} dBm"
        return RunError("grid.grant", message, cure=cure)


def _must_know(said: Mapping[str, Any], allowed: Collection[str], refused: Callable[[str], LabError]) -> None:
    """Raises an error for a setting that is not the run's."""
    for key in said:
        if key not in allowed:
            raise refused(f"the setting {key[:32]!r} is not granted")


def _must_agree(testbed: Testbed, lent: Lent) -> None:
    """Raises an error for a reservation of another testbed than the laboratory's."""
    for node, radios in lent.grant.radios.items():
        known = testbed.nodes.get(node)
        there = known is not None and testbed.place(node) == lent.positions.get(node)
        if known is None or not there or not set(radios) <= set(known.radios):
            raise RunError("lab.inventory", f"the node {node!r} is not that of the laboratory's inventory")
