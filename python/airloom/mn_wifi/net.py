"""The network: :class:`Mininet_wifi` adds stations, access points and what moves them."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from airloom.errors import LabError, translated
from airloom.mininet.errors import Misused, Unsupported, line_of_script
from airloom.mininet.link import Link
from airloom.mininet.log import info
from airloom.mininet.net import Mininet
from airloom.mininet.parameters import note
from airloom.mininet.session import session
from airloom.mn_wifi import air
from airloom.mn_wifi import link as links
from airloom.mn_wifi.node import OVSAP, Car, Station, WirelessNode
from airloom.mn_wifi.radio import (
    ACTIVE,
    BEACON,
    GAIN,
    POWER,
    SENSITIVITY,
    Place,
    WirelessIntf,
    channel_of,
    phy_of,
    place_of,
    power_for,
)
from airloom.mn_wifi.wmediumdConnector import error_prob as ERROR_PROB
from airloom.mn_wifi.wmediumdConnector import interference as INTERFERENCE

_OF_RADIO = frozenset(
    (
        "position",
        "range",
        "txpower",
        "antennaGain",
        "antennaHeight",
        "channel",
        "mode",
        "ssid",
        "wlans",
        "encrypt",
        "passwd",
        "speed",
        "min_x",
        "max_x",
        "min_y",
        "max_y",
        "min_v",
        "max_v",
    )
)
"""Parameters of a node that its radios take."""
_WITHOUT_EFFECT = {
    "disable_tcp_checksum": "interfaces have the offloads of their links",
    "ifb": "the engine shapes both directions",
    "client_isolation": "stations of an access point reach each other",
    "plot": "there is no window",
    "roads": "there is no map",
    "json_file": "no file is written",
    "rec_rssi": "`wintfs[0].associatedTo` and get_distance_to() say where a station is",
    "set_socket_ip": "`airloom exec` reaches the nodes",
    "set_socket_port": "`airloom exec` reaches the nodes",
    "docker": "nodes are network namespaces",
    "container": "nodes are network namespaces",
}
_REFUSED = ("iot_module", "sensor", "bgscan_module", "apsensor", "btdevice", "config4addr", "encrypt")
_ASSOCIATED = 3.0
"""Seconds for which the start waits until stations in range have associated."""
_LOOK = 0.5
"""Seconds between two decisions of the association control."""
_BETTER = 3.0
"""Decibels by which another access point must be stronger."""


class Mininet_wifi(Mininet):
    """A network of hosts, switches, stations and access points."""

    def __init__(
        self,
        topo: Any = None,
        accessPoint: Any = OVSAP,
        station: Any = Station,
        car: Any = Car,
        link: Any = None,
        mode: str = "g",
        channel: Any = None,
        ssid: str = "new-ssid",
        freq: float | None = None,
        wmediumd_mode: Any = INTERFERENCE,
        noise_th: float = -91,
        cca_th: float | None = None,
        fading_cof: float = 0,
        autoAssociation: bool = True,
        allAutoAssociation: bool = True,
        autoSetPositions: bool = False,
        build: bool = True,
        **params: Any,
    ) -> None:
        for word in sorted(params.keys() & _WITHOUT_EFFECT.keys()):
            value = params.pop(word)
            if value:
                note(f"Mininet_wifi: {word}={value!r} has no effect: {_WITHOUT_EFFECT[word]}")
        for word in _REFUSED:
            if params.get(word):
                raise Unsupported(f"Mininet_wifi({word}=...)", "its nodes have no 802.11 stack of their own")
            params.pop(word, None)
        if wmediumd_mode not in (INTERFERENCE, ERROR_PROB):
            raise Unsupported(f"wmediumd_mode={wmediumd_mode!r}", "the modes are interference and error_prob")
        if freq is not None:
            note(f"Mininet_wifi: freq={freq!r} has no effect: the channel says it")
        wired = link if isinstance(link, type) and issubclass(link, Link) else Link
        self.accessPoint, self.station, self.car = accessPoint, station, car
        self.mode, self.channel, self.ssid = mode, channel, ssid
        self.wmediumd_mode = wmediumd_mode
        self.noise_th, self.cca_th, self.fading_cof = float(noise_th), cca_th, float(fading_cof)
        self.autoAssociation = bool(autoAssociation and allAutoAssociation)
        self.stations: list[Any] = []
        self.cars: list[Any] = []
        self.aps: list[Any] = []
        self._model: dict[str, Any] = {}
        self._cells: dict[str, dict[str, Any]] = {}
        """Ad hoc cells by the interface that joins them."""
        self._wanted: dict[str, tuple[Any, dict[str, Any]]] = {}
        """Access points that a script links stations to, by the station's interface."""
        self._paths: dict[Any, list[tuple[float, Place]]] = {}
        self._random: dict[str, Any] | None = None
        self._start: dict[str, Any] = {}
        self._until: float | None = None
        self._control: str | None = None
        self._over = threading.Event()
        self._controller: threading.Thread | None = None
        self._on_air = False
        self._autoplace = autoSetPositions
        super().__init__(topo=topo, link=wired, build=build, **params)

    # Nodes

    def addStation(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Adds a station; ``position`` is in metres, ``range`` sets its power."""
        made = self._addWireless(cls or self.station, name, params)
        self.stations.append(made)
        return made

    def addCar(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Adds a car: a station."""
        made = self._addWireless(cls or self.car, name, params)
        self.cars.append(made)
        self.stations.append(made)
        return made

    def addAccessPoint(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Adds an access point, which bridges its radio to its wires."""
        wireless = self._split(name, params)
        made = (cls or self.accessPoint)(name, **params)
        made.equip(wireless)
        self.aps.append(made)
        self.switches.append(made)
        self.nameToNode[name] = made
        return made

    addAP = addBaseStation = addAccessPoint

    def _addWireless(self, cls: Any, name: str, params: dict[str, Any]) -> Any:
        wireless = self._split(name, params)
        made = self.addHost(name, cls=cls, **params)
        made.equip(wireless)
        return made

    def _split(self, name: str, params: dict[str, Any]) -> dict[str, Any]:
        """Takes the parameters of radios from the others."""
        found = {word: params.pop(word) for word in sorted(_OF_RADIO & params.keys())}
        if found.get("encrypt"):
            raise Unsupported(
                f"{name}: encrypt={found['encrypt']!r}",
                "WPA is of a node's own 802.11 stack",
                cure="a scenario with radios of 'device: wlan', where hostapd and wpa_supplicant run",
            )
        return found

    # Radios

    def configureNodes(self) -> None:
        """Creates the wireless interfaces: sta1-wlan0 of a station, ap1-wlan1 of an access point."""
        for node in (*self.stations, *self.aps):
            if node.wintfs:
                continue
            first = 1 if node in self.aps else 0
            for number in range(int(node.wireless.get("wlans", 1))):
                name = f"{node.name}-wlan{number + first}"
                node.wintfs[number] = WirelessIntf(name, node)

    configureWifiNodes = configureNodes

    def setPropagationModel(self, **said: Any) -> None:
        """Sets the propagation: ``model`` and its parameters, such as ``exp`` of logDistance."""
        self._model = said
        air.propagation(said)

    def setAssociationCtrl(self, ac: str = "ssf") -> None:
        """Lets stations change to the strongest access point (``ssf``), whatever its name."""
        if ac != "ssf":
            raise Unsupported(f"setAssociationCtrl({ac!r})", "stations choose by signal", cure="'ssf'")
        self._control = ac

    setAssociationControl = associationControl = setAssociationCtrl

    def plotGraph(self, **_: Any) -> None:
        """Notes that there is no window; the positions are those of get_xyz()."""
        note("plotGraph: no window is opened; node.get_xyz() says where a node is")

    def plotNode(self, *_: Any, **__: Any) -> None:
        """Does nothing: there is no window."""

    def addLink(
        self,
        node1: Any,
        node2: Any = None,
        port1: int | None = None,
        port2: int | None = None,
        cls: Any = None,
        **params: Any,
    ) -> Any:
        """Adds a wire, joins an ad hoc cell (``cls=adhoc``), or associates a station."""
        first, second = (self[one] if isinstance(one, str) and one in self else one for one in (node1, node2))
        if cls is links.adhoc:
            return self._join(first, params)
        if isinstance(first, WirelessNode) and isinstance(second, WirelessNode):
            ends = {one in self.aps for one in (first, second)}
            if ends == {True, False} and (cls is None or cls is links.WirelessLink):
                station, point = (second, first) if first in self.aps else (first, second)
                return self._associate(station, point, params)
        if cls is links.WirelessLink:
            raise Misused(
                "link", f"{first} and {second}: a link through the air joins a station and its access point"
            )
        return super().addLink(first, second, port1, port2, cls=cls, **params)

    def _join(self, node: Any, params: dict[str, Any]) -> None:
        if params.pop("proto", None):
            raise Unsupported(
                "addLink(cls=adhoc, proto=...)",
                "routing daemons are programs of the script",
                cure="start it by cmd(), such as babeld",
            )
        self.configureNodes()
        names = [intf.name for intf in node.wintfs.values()]
        name = str(params.pop("intf", names[0]))
        if name not in names:
            raise Misused("interface", f"{node} has no wireless interface {name}", cure=", ".join(names))
        for word in sorted(params.keys() - {"ssid", "mode", "channel", "txpower", "range"}):
            note(f"addLink(cls=adhoc): {word}={params[word]!r} has no effect")
        self._cells[name] = params

    def _associate(self, station: Any, point: Any, params: dict[str, Any]) -> None:
        self.configureNodes()
        free = [intf.name for intf in station.wintfs.values() if intf.name not in self._wanted]
        if not free:
            raise Misused("interface", f"all wireless interfaces of {station} have an access point")
        self._wanted[free[0]] = (point, params)

    # Motion

    def mobility(self, node: Any, stage: str = "start", **params: Any) -> None:
        """Says where a node is at ``time`` seconds: ``mobility(sta1, "start", time=1, position="1,2,0")``."""
        node = self[node] if isinstance(node, str) else node
        if stage not in ("start", "stop"):
            raise Misused("mobility", f"stage {stage!r}", cure="'start' or 'stop'")
        if "time" not in params:
            raise Misused("mobility", f"mobility({node}, {stage!r}) has no time", cure="time=1")
        place = place_of(params["position"]) if "position" in params else node.position
        self._paths.setdefault(node, []).append((float(params["time"]), place))

    def startMobility(self, **params: Any) -> None:
        """Begins the motion: of ``mobility()``, or of all stations by ``model``."""
        self._start = params
        if params.get("model"):
            self._random = params

    def setMobilityModel(self, **params: Any) -> None:
        """Moves all stations by a model that draws their ways, such as RandomWayPoint."""
        self.startMobility(**params)

    def stopMobility(self, **params: Any) -> None:
        """Ends the motion at ``time`` seconds: paths end where the last stage says."""
        self._until = float(params["time"]) if "time" in params else None

    def _motion(self, node: Any, begin: int) -> dict[str, Any]:
        begin += round(float(self._start.get("time", 0)) * 1e9) if self._random else 0
        if node in self._paths:
            repeats = int(self._start.get("mob_rep", 1) or 1)
            return air.path(self._paths[node], begin, repeats, bool(self._start.get("reverse")))
        if self._random is not None and node in self.stations and not node.placed:
            own = {word: node.wireless[word] for word in node.wireless if word[:4] in ("min_", "max_")}
            return air.motion({**self._random, **own}, begin)
        return {"static": dict(zip("xyz", node.position, strict=True))}

    # Start and stop

    def build(self) -> None:
        """Creates the topology, configures the nodes and puts the radios on the air."""
        self.configureNodes()
        super().build()
        self._enter_air()

    def start(self) -> None:
        """Starts controllers, switches and access points, and waits for stations in range."""
        super().start()
        self._await_stations()

    def _enter_air(self) -> None:
        if self._on_air or not (self.stations or self.aps):
            return
        self._on_air = True
        world = session().world
        medium = f"air.{id(self):x}"
        settings = air.propagation(self._model)
        if self.wmediumd_mode == ERROR_PROB:
            settings = air.without_interference()
        world.engine.add_medium(medium, {**settings, "fading": air.fading(self.fading_cof)})
        begin = world.now()
        channels = sorted({self._tuned(point)[1] for point in self.aps})
        for node in (*self.aps, *self.stations):
            motion = self._motion(node, begin)
            for intf in node.wintfs.values():
                own = self._radio(node, intf, channels)
                with translated(line_of_script()):
                    world.engine.add_radio(medium, intf.radio.port.name, own, motion, node.name)
                intf.radio.settings = own
        self._fail_frames()
        if self._control or len({self._name_of(point) for point in self.aps}) > 1:
            self._controller = threading.Thread(target=self._associations, name="airloom-ac", daemon=True)
            self._controller.start()

    def _name_of(self, point: Any) -> str:
        return str(point.wireless.get("ssid", self.ssid)).split(",")[0]

    def _tuned(self, node: Any, said: dict[str, Any] | None = None) -> tuple[str, int]:
        """Returns the physical layer and channel of a node, or of a cell."""
        words = {**node.wireless, **(said or {})}
        phy = phy_of(words.get("mode", self.mode))
        return phy, channel_of(words.get("channel", self.channel), phy)

    def _radio(self, node: Any, intf: WirelessIntf, channels: list[int]) -> dict[str, Any]:
        """Returns the engine's settings of a radio."""
        cell = self._cells.get(intf.name)
        phy, channel = self._tuned(node, cell)
        words = {**node.wireless, **(cell or {})}
        membership: Any
        if node in self.aps:
            membership = {"access-point": {"ssid": self._name_of(node), "beacon_ns": BEACON}}
        elif cell is not None:
            membership = {"ad-hoc": {"ssid": str(cell.get("ssid", "adhocNet")), "beacon_ns": BEACON}}
        else:
            point = self._point_of(intf, node)
            if point is not None:
                phy, channel = self._tuned(point)
            station: dict[str, Any] = {"ssid": self.ssid if point is None else self._name_of(point)}
            if self.autoAssociation and channels:
                station |= {"channels": channels, "active": True, "dwell_ns": ACTIVE}
            if self._control:
                station["leave_dbm"] = SENSITIVITY + 20
            membership = {"station": station}
        gain = float(words.get("antennaGain", GAIN))
        exponent = float(self._model.get("exp", 3.0))
        power = float(words.get("txpower", POWER))
        if "range" in words and self.wmediumd_mode == INTERFERENCE:
            power = power_for(float(words["range"]), channel, 2.0 if self._is_free() else exponent, gain)
        intf.radio.exponent = 2.0 if self._is_free() else exponent
        found: dict[str, Any] = {
            "mac": [int(octet, 16) for octet in str(intf.mac).split(":")],
            "phy": phy,
            "channel": channel,
            "power_dbm": power,
            "gain_dbi": gain,
            "noise_figure_db": min(40.0, max(0.0, self.noise_th - air.THERMAL)),
            "rate": "minstrel",
            "membership": membership,
        }
        if self.cca_th is not None:
            found["carrier_sense_dbm"] = float(self.cca_th)
        return found | ({"bridged": True} if node in self.aps else {})

    def _is_free(self) -> bool:
        return self._model.get("model") == "friis"

    def _point_of(self, intf: WirelessIntf, node: Any) -> Any:
        """Returns the access point that a station begins with: its own, or the nearest."""
        if intf.name in self._wanted:
            return self._wanted[intf.name][0]
        return min(self.aps, key=node.get_distance_to, default=None)

    def _fail_frames(self) -> None:
        for name, (point, params) in self._wanted.items():
            share = params.get("error_prob")
            if share is None:
                continue
            if self.wmediumd_mode != ERROR_PROB:
                note(f"addLink: error_prob={share!r} has no effect: wmediumd_mode is interference")
                continue
            station = next(one for one in self.stations if name in one.params_wlan)
            here = next(one for one in station.wintfs.values() if one.name == name).radio.port.name
            there = next(iter(point.wintfs.values())).radio.port.name
            for sender, receiver in ((here, there), (there, here)):
                session().world.engine.set_frame_error(sender, receiver, float(share))

    def _await_stations(self) -> None:
        """Waits until the stations that can hear their access point have associated."""
        until = time.monotonic() + _ASSOCIATED
        left = [intf for one in self.stations for intf in one.wintfs.values() if intf.name not in self._cells]
        while left and self.aps and time.monotonic() < until:
            left = [intf for intf in left if intf.associatedTo is None and self._hears(intf)]
            time.sleep(0.05 if left else 0)

    def _hears(self, intf: WirelessIntf) -> bool:
        return any(self._signal(point, intf) >= SENSITIVITY for point in self.aps)

    def _signal(self, point: Any, intf: WirelessIntf) -> float:
        sender = next(iter(point.wintfs.values())).radio.port.name
        return session().world.engine.signal(sender, intf.radio.port.name)

    def _associations(self) -> None:
        """Changes stations to another network: to a stronger one, or when they have left theirs."""
        while not self._over.wait(_LOOK):
            with contextlib.suppress(LabError, StopIteration, KeyError):
                for station in self.stations:
                    for intf in station.wintfs.values():
                        if intf.name not in self._cells and self._is_free_to_go(intf):
                            self._choose(intf)

    def _is_free_to_go(self, intf: WirelessIntf) -> bool:
        return self.autoAssociation and bool(intf.radio.settings)

    def _choose(self, intf: WirelessIntf) -> None:
        signals = {point: self._signal(point, intf) for point in self.aps}
        best = max(signals, key=lambda point: signals[point])
        station = intf.radio.settings["membership"]["station"]
        same = [signals[point] for point in self.aps if self._name_of(point) == station["ssid"]]
        present = max(same, default=float("-inf"))
        lost = present < SENSITIVITY <= signals[best]
        better = self._control == "ssf" and signals[best] > present + _BETTER
        if self._name_of(best) != station["ssid"] and (lost or better):
            info(f"*** {intf.name}: {station['ssid']} -> {self._name_of(best)}\n")
            station["ssid"] = self._name_of(best)
            intf.radio.change({"ssid": station["ssid"]})

    def stop(self) -> None:
        """Ends the network."""
        self._over.set()
        if self._controller is not None:
            self._controller.join()
        super().stop()

    def __getattr__(self, name: str) -> Any:
        if name in ("useExternalProgram", "addSensor", "addAPSensor", "telemetry", "setModule", "seed"):
            raise Unsupported(f"Mininet_wifi.{name}", "it has no counterpart here")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


__all__ = ["Mininet_wifi"]
