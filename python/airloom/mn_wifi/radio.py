"""A wireless interface, and the radio of the engine behind it."""

from __future__ import annotations

import math
import re
from typing import Any

from airloom.errors import LabError, translated
from airloom.mininet.emulation import Port
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.link import Intf
from airloom.mininet.session import session
from airloom.planning.radio.channels import default_number, mhz_of

Place = tuple[float, float, float]
"""x, y and z in metres."""

POWER = 14.0
"""Transmit power in dBm, as in Mininet-WiFi."""
GAIN = 5.0
"""Antenna gain in dBi, as in Mininet-WiFi."""
SENSITIVITY = -82.0
"""Least power of a frame in dBm that a receiver detects (IEEE 802.11-2016, 17.3.10.6)."""
_LIGHT = 299_792_458.0
_PHYS = {"a": "802.11a", "b": "802.11b", "g": "802.11g"}
BEACON = 102_400_000
"""Beacon interval in nanoseconds: 100 TU of 1024 us."""
ACTIVE = 30_000_000
"""Nanoseconds on each channel of an active scan."""


def place_of(said: Any) -> Place:
    """Returns a place written as ``"10,20,0"``, or as a sequence, in metres."""
    parts = said.split(",") if isinstance(said, str) else list(said)
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise Misused("position", f"{said!r} is no position", cure="write it as '10,20,0', in metres")
    return (numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0.0)


def phy_of(mode: Any) -> str:
    """Returns the physical layer of a mode: ``a``, ``b`` or ``g``."""
    if mode not in _PHYS:
        raise Unsupported(
            f"mode={mode!r}", "the layers are those of 802.11a, b and g", cure="mode='g' or 'a'"
        )
    return _PHYS[mode]


def channel_of(said: Any, phy: str) -> int:
    """Returns a channel number; by default that of the physical layer."""
    if said is None:
        return default_number(phy)
    if not re.fullmatch(r"[1-9][0-9]{0,2}", str(said)):
        raise Misused("channel", f"channel={said!r} is no channel number")
    return int(said)


def power_for(reach: float, channel: int, exponent: float, gain: float) -> float:
    """Returns the transmit power in dBm at which a frame is just detected at ``reach`` metres.

    The loss is that of free space at 1 m and ``10 exponent log10(distance)`` beyond.
    """
    first = 20 * math.log10(4 * math.pi * mhz_of(channel) * 1e6 / _LIGHT)
    loss = first + 10 * exponent * math.log10(max(1.0, reach))
    return min(60.0, max(-30.0, SENSITIVITY + loss - 2 * gain))


class Radio:
    """What is behind a wireless interface, in place of a link."""

    isUp = True

    def __init__(self, node: Any, name: str) -> None:
        self.node = node
        self.name = name
        self.port: Port = session().plug(node.name, name)
        self.engineName = self.port.name
        self.intf1: Any = None
        self.intf2: Any = None
        self.exponent = 3.0
        self.settings: dict[str, Any] = {}
        """Those of the engine; empty until it is on the air."""

    def adopt(self, intf: Intf) -> tuple[str, Port | None]:
        """Takes its interface."""
        self.intf1 = self.intf2 = intf
        return "forward", self.port

    def receiveAsOnWire(self, sender: Intf) -> None:
        """Does nothing: radios carry the frames of the air."""

    def carry(self, up: bool) -> None:
        """Turns the radio on or off."""
        if self.settings:
            self.change({"on": up})

    def cut(self) -> None:
        """Turns the radio off for good."""
        if self.settings and session().world.running:
            self.carry(False)
        self.settings = {}

    def move(self, place: Place) -> None:
        """Moves it to a place, where it rests."""
        if self.settings:
            self.change({"position": dict(zip("xyz", place, strict=True))})

    def place(self) -> Place | None:
        """Returns where it is; None while it is not on the air."""
        state = self.state()
        return None if state is None else state["position"]

    def state(self) -> Any:
        """Returns its state in the engine; None while it is not on the air."""
        if not self.settings:
            return None
        return next((one for one in session().world.radios() if one["port"] == self.port.name), None)

    def reach(self, metres: float) -> None:
        """Sets the transmit power for a range."""
        channel = int(self.settings.get("channel", 1))
        self.change({"power": power_for(metres, channel, self.exponent, GAIN)})

    def change(self, change: dict[str, Any]) -> None:
        """Changes the radio now, with the keys of engine/src/medium/change.rs."""
        if not self.settings:
            raise Misused("radio", f"{self.name} is not on the air yet", cure="build() or start() before")
        try:
            with translated():
                session().world.engine.set_radio(self.port.name, change)
        except LabError as error:
            raise Misused("radio", f"{self.name}: {error.message}") from None


class WirelessIntf(Intf):
    """The Ethernet interface of a radio."""

    def __init__(self, name: str, node: Any, **params: Any) -> None:
        self.radio = Radio(node, name)
        super().__init__(name, node=node, link=self.radio, **params)  # type: ignore[arg-type]

    def setTxPower(self, txpower: float) -> None:
        """Sets the transmit power in dBm."""
        self.radio.change({"power": float(txpower)})

    def setRange(self, range: float) -> None:
        """Sets the transmit power for a range in metres."""
        self.radio.reach(float(range))

    @property
    def associatedTo(self) -> str | None:
        """The name of the access point that a station is associated with; None without one."""
        state = self.radio.state()
        port = None if state is None else state["access_point"]
        return None if port is None else str(port).partition(":")[0]
