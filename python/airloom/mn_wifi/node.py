"""Stations, cars and access points: nodes with radios."""

from __future__ import annotations

from typing import Any

from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.hosts import Node
from airloom.mininet.node import (
    Controller,
    CPULimitedHost,
    DefaultController,
    DefaultControllers,
    Host,
    NullController,
    OVSBridge,
    OVSController,
    OVSKernelSwitch,
    OVSSwitch,
    RemoteController,
    Ryu,
    Switch,
    UserSwitch,
)
from airloom.mn_wifi.radio import Place, place_of


class WirelessNode:
    """Mixin of a node with radios."""

    name: str
    wintfs: dict[int, Any]
    position: Place
    wireless: dict[str, Any]
    """Its radio parameters, as the script gave them."""

    def equip(self, wireless: dict[str, Any]) -> None:
        """Takes its radio parameters, of which ``position`` is one."""
        self.wireless = wireless
        self.wintfs = {}
        said = wireless.get("position")
        self.position = (0.0, 0.0, 0.0) if said is None else place_of(said)
        self.placed = said is not None

    @property
    def params_wlan(self) -> list[str]:
        """Names of its wireless interfaces."""
        return [intf.name for intf in self.wintfs.values()]

    def setPosition(self, pos: Any) -> None:
        """Moves the node to ``"x,y,z"`` in metres, where it rests."""
        self.position, self.placed = place_of(pos), True
        for intf in self.wintfs.values():
            intf.radio.move(self.position)

    def get_xyz(self) -> Place:
        """Returns where it is now, in metres."""
        for intf in self.wintfs.values():
            now = intf.radio.place()
            if now is not None:
                self.position = now
        return self.position

    getxyz = get_xyz

    def get_distance_to(self, other: WirelessNode) -> float:
        """Returns the distance to another node in metres."""
        here, there = self.get_xyz(), other.get_xyz()
        return float(sum((a - b) ** 2 for a, b in zip(here, there, strict=True)) ** 0.5)

    def setTxPower(self, txpower: float, intf: Any = None) -> None:
        """Sets the transmit power in dBm."""
        for one in self._chosen(intf):
            one.radio.change({"power": float(txpower)})

    def setRange(self, range: float, intf: Any = None) -> None:
        """Sets the transmit power for a range in metres."""
        for one in self._chosen(intf):
            one.radio.reach(float(range))

    def setChannel(self, channel: int, intf: Any = None) -> None:
        """Sets the channel."""
        for one in self._chosen(intf):
            one.radio.change({"channel": int(channel)})

    def _chosen(self, intf: Any) -> list[Any]:
        found = [one for one in self.wintfs.values() if intf is None or str(intf) == one.name]
        if not found:
            raise Misused("interface", f"{self.name} has no wireless interface {intf or ''}".rstrip())
        return found


class Station(WirelessNode, Host):
    """A host with radios."""


class Car(Station):
    """A station of a vehicle; the same as a station."""


class OVSAP(WirelessNode, OVSSwitch):
    """An access point: an Open vSwitch that bridges a radio to its wires.

    Without a controller of the script it learns by itself.
    """

    def start(self, controllers: Any) -> None:
        """Creates the bridge with its ports, and connects to the controllers of the script."""
        own = [one for one in controllers or () if not isinstance(one, NullController)]
        learning = all(type(one) in DefaultControllers for one in own)
        if learning:
            self.failMode = "standalone"
        super().start([] if learning else own)


OVSKernelAP = AP = OVSAP
"""With the userspace datapath, as every Open vSwitch in Airloom."""


class OVSBridgeAP(OVSAP):
    """An access point that always learns by itself."""

    def start(self, controllers: Any) -> None:
        """Creates the bridge, without controllers."""
        super().start([])


class UserAP(OVSAP):
    """An Open vSwitch in place of the user-space reference switch."""


class PhysicalAP:
    """Not supported."""

    def __init__(self, name: str, **_: Any) -> None:
        raise Unsupported(f"PhysicalAP({name!r})", "the radios are those of the engine")


__all__ = [
    "AP",
    "OVSAP",
    "CPULimitedHost",
    "Car",
    "Controller",
    "DefaultController",
    "Host",
    "Node",
    "NullController",
    "OVSBridge",
    "OVSBridgeAP",
    "OVSController",
    "OVSKernelAP",
    "OVSKernelSwitch",
    "OVSSwitch",
    "PhysicalAP",
    "RemoteController",
    "Ryu",
    "Station",
    "Switch",
    "UserAP",
    "UserSwitch",
    "WirelessNode",
]
