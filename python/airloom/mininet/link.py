"""Links and interfaces. The engine emulates every link, without traffic control in the nodes.

Parameters of a :class:`TCLink`, for the direction that the interface sends:

==================  ===========================================================================
``bw``              Mbit/s, Ethernet overhead included; any value above 0
``delay``           such as ``"5ms"``; a bare number is microseconds, as for tc
``jitter``          half the width of a uniform distribution around the delay; frames keep
                    their order
``loss``            percent of frames, independently
``max_queue_size``  frames; 1000 by default
``enable_red``      RED from 30,000 to 35,000 octets with probability 1, ``enable_ecn`` marks
==================  ===========================================================================
"""

from __future__ import annotations

import re
from ipaddress import IPv4Interface
from typing import Any

from airloom.mininet import interfaces
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.hosts import Node, call_with
from airloom.mininet.log import debug, warn
from airloom.mininet.session import Port, session
from airloom.mininet.switches import LearningSwitch, OVSSwitch, Switch
from airloom.planning.link_settings import Law, LinkSettings, QueueSettings

_SHAPERS = frozenset(
    (
        "use_hfsc",
        "use_tbf",
        "latency_ms",
        "r2q",
        "burst",
        "speedup",
        "gro",
        "txo",
        "rxo",
        "use_htb",
        "xmit_hash",
    )
)
"""Options of tc or of the network card, which have no effect on an emulated link."""
_SHAPES = frozenset(("bw", "delay", "jitter", "loss", "max_queue_size", "enable_ecn", "enable_red"))
_UNITS = {"": 1e3, "us": 1e3, "usec": 1e3, "usecs": 1e3, "ms": 1e6, "msec": 1e6, "msecs": 1e6}
_UNITS |= {"s": 1e9, "sec": 1e9, "secs": 1e9, "ns": 1.0}
_LONGEST = 3600e9
"""Maximum delay in nanoseconds."""
_MOST_FRAMES = 10**9
"""Maximum queue length in frames."""


def nanoseconds(value: Any) -> int:
    """Returns a time in tc's notation, in nanoseconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", str(value))
    if match is None or match.group(2) not in _UNITS:
        raise Misused("time", f"{value!r} is no time", cure="write it as '5ms', '10us' or '1s'")
    found = float(match.group(1)) * _UNITS[match.group(2)]
    if found > _LONGEST:
        raise Misused("time", f"{str(value)[:40]!r} is longer than an hour")
    return round(found)


def _number(word: str, value: Any, example: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misused("number", f"{word}={value!r} is no number", cure=f"write it as {example}") from None


def direction(
    bw: float | None = None,
    delay: Any = None,
    jitter: Any = None,
    loss: float | None = None,
    max_queue_size: int | None = None,
    enable_ecn: bool = False,
    enable_red: bool = False,
) -> LinkSettings:
    """Returns the settings of one direction of a link."""
    settings: dict[str, Any] = {}
    if bw is not None:
        rate = _number("bw", bw, "10, in Mbit/s")
        if not 0 < rate <= 1e6:
            raise Misused("bw", f"bw={bw}: a link has more than 0 and at most 1,000,000 Mbit/s")
        settings["rate"] = round(rate * 1e6)
    if delay is not None:
        settings["delay"] = nanoseconds(delay)
    if jitter is not None and nanoseconds(jitter):
        settings["jitter"] = Law("uniform", {"spread_ns": nanoseconds(jitter)})
    if loss is not None and (share := _number("loss", loss, "1, in percent")):
        if not 0 <= share <= 100:
            raise Misused("loss", f"loss={loss}: percent, from 0 to 100")
        settings["loss"] = share / 100
    frames = 1000.0 if max_queue_size is None else _number("max_queue_size", max_queue_size, "100, in frames")
    if not 1 <= frames <= _MOST_FRAMES:
        raise Misused("queue", f"max_queue_size={max_queue_size}: at least 1 frame, at most {_MOST_FRAMES}")
    if max_queue_size is not None or enable_ecn or enable_red:
        red = {"min_octets": 30_000, "max_octets": 35_000, "probability": 1.0, "weight": 0.002}
        discipline = Law("red", red) if enable_ecn or enable_red else None
        settings["queue"] = QueueSettings(int(frames), discipline=discipline, ecn=bool(enable_ecn))
    return LinkSettings(**settings)


class Intf:
    """An interface of a node, or a port of a switch."""

    def __init__(
        self,
        name: str,
        node: Any = None,
        port: int | None = None,
        link: Link | None = None,
        mac: str | None = None,
        **params: Any,
    ) -> None:
        self.node = node
        self.name = name
        self.link = link
        self.mac = mac
        self.ip: str | None = None
        self.prefixLen: str | None = None
        self.params: dict[str, Any] = {}
        self._way = "forward"
        self._engine_port: Port | None = None
        self._gone = False
        if link is not None:
            self._way, self._engine_port = link.adopt(self)
        elif isinstance(node, Switch):
            engine = session().world.engine
            outside = f"{node.name}:{name}"
            engine.add_interface_port(outside, name)
            if isinstance(node, LearningSwitch):
                inner = node.engineName
            else:
                self._engine_port = session().plug(node.name, name)
                inner = self._engine_port.name
            session().join(outside, outside, inner, {}, {})
        else:
            raise Unsupported(
                f"Intf({name!r}, node={node})", "only a switch can take an interface of the machine"
            )
        if self._engine_port is not None and self.mac is None:
            self.mac = self._engine_port.tap.mac
        node.addIntf(self, port=port)
        if mac:
            params["mac"] = mac
        self.config(**params)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __str__(self) -> str:
        return self.name

    # Operations in the node

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Runs a command in the node."""
        found: str = self.node.cmd(*args, **kwargs)
        return found

    def ifconfig(self, *args: Any) -> str:
        """Sets the interface ``up`` or ``down``, or runs ifconfig on it in the node."""
        if args in (("up",), ("down",)):
            self.carry(args == ("up",))
            return ""
        return self.cmd("ifconfig", self.name, *args)

    def carry(self, up: bool) -> None:
        """Sets the interface up or down."""
        if self._engine_port is not None:
            interfaces.set_up(self._namespace(), self.name, up)
        elif self.link is not None:
            self.link.carry(up)

    def awaitCarrier(self) -> None:
        """Waits until the kernel sends frames, after the link and the interface were set up."""
        if self._engine_port is not None:
            interfaces.await_carrier(self._namespace(), self.name)

    def setIP(self, ipstr: str, prefixLen: int | None = None, **_kwargs: Any) -> str:
        """Sets the IP address, ``"10.0.0.1/8"``."""
        address, slash, length = str(ipstr).partition("/")
        if not slash and prefixLen is None:
            raise Misused("prefix", f"{self.name}: no prefix length in {ipstr!r}", cure="write 10.0.0.1/8")
        try:
            found = IPv4Interface(f"{address}/{length or prefixLen}")
        except ValueError as error:
            raise Misused("address", f"{self.name}: {error}") from None
        self.ip, self.prefixLen = address, length or str(prefixLen)
        interfaces.set_address(self._namespace(), self.name, found)
        return ""

    def setMAC(self, macstr: str) -> str:
        """Sets the MAC address."""
        if re.fullmatch(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}", str(macstr)) is None:
            raise Misused("mac", f"{self.name}: {macstr!r} is no hardware address")
        self.mac = macstr
        if self._engine_port is not None:
            interfaces.set_mac(self._namespace(), self.name, macstr)
        return ""

    def updateIP(self) -> str | None:
        """Reads the IP address from the node."""
        found = re.search(r"inet (\S+?)/(\d+)", self.cmd(f"ip -4 -o addr show dev {self.name}"))
        if found:
            self.ip, self.prefixLen = found.groups()
        else:
            self.ip = None
        return self.ip

    def updateMAC(self) -> str | None:
        """Reads the MAC address from the node."""
        found = re.search(r"link/ether (\S+)", self.cmd(f"ip -o link show dev {self.name}"))
        if found:
            self.mac = found.group(1)
        return self.mac

    def updateAddr(self) -> tuple[str | None, str | None]:
        """Reads both addresses from the node."""
        return self.updateIP(), self.updateMAC()

    def IP(self) -> str | None:
        """Returns the IP address."""
        return self.ip

    def MAC(self) -> str | None:
        """Returns the MAC address."""
        return self.mac

    def isUp(self, setUp: bool = False) -> bool:
        """True if the interface is up; with ``setUp`` sets it up first."""
        if setUp:
            self.carry(True)
        if self._engine_port is not None:
            return interfaces.is_up(self._namespace(), self.name)
        return self.link is None or self.link.isUp

    def move(self, node: Any) -> None:
        """Moves the interface, with its end of the link, to another node's namespace."""
        if self._engine_port is not None:
            session().move(self._engine_port, self.name, node.name)

    def rename(self, newname: str) -> str:
        """Renames the interface."""
        if self._engine_port is not None:
            self.carry(False)
            said = self.cmd("ip link set", self.name, "name", newname)
            if said.strip():
                raise Misused("interface-name", f"{self.name}: {said.strip()}")
        self.node.nameToIntf.pop(self.name, None)
        self.name = newname
        self.node.nameToIntf[newname] = self
        self.carry(True)
        return newname

    # Configuration

    def setParam(self, results: dict[str, Any], method: str, **param: Any) -> Any:
        """Calls a method with a parameter's value unless the value is None."""
        return call_with(self, results, method, **param)

    def config(
        self,
        mac: str | None = None,
        ip: Any = None,
        ifconfig: Any = None,
        up: bool = True,
        **params: Any,
    ) -> dict[str, Any]:
        """Configures the interface by its parameters; subclasses override it."""
        self.params.update(params)
        results: dict[str, Any] = {}
        self.setParam(results, "setMAC", mac=mac)
        self.setParam(results, "setIP", ip=ip)
        self.setParam(results, "ifconfig", ifconfig=ifconfig)
        shapes = sorted(set(params) & _SHAPES)
        if shapes and not isinstance(self, TCIntf):
            warn(f"*** {self.name}: {', '.join(shapes)} has no effect on a Link; use TCLink\n")
        return results

    # Teardown

    def delete(self) -> None:
        """Removes the interface from its node; its link then carries no frames."""
        self._leave(keep=False)

    def detach(self) -> None:
        """Leaves the removal of the interface to the end of its node."""
        self._leave(keep=True)

    def _leave(self, keep: bool) -> None:
        if self._gone:
            return
        self._gone = True
        if self.node is not None:
            self.node.delIntf(self)
        if self.link is not None:
            self.link.cut()
        if self._engine_port is not None:
            (session().release if keep else session().unplug)(self._engine_port)

    def status(self) -> str:
        """``OK`` or ``MISSING``."""
        return "MISSING" if self._gone else "OK"

    def _namespace(self) -> int:
        if self._engine_port is None:
            raise Unsupported(f"{self.name}: an address", "a port of a switch has none")
        number: int = self.node.handle.namespace.fileno()
        return number


class TCIntf(Intf):
    """An interface whose link has a rate, delay, loss and queue; see the module header."""

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Configures the interface; new shaping parameters replace all previous ones."""
        shapes = {name: value for name, value in params.items() if name in _SHAPES and value is not None}
        rest = {name: value for name, value in params.items() if name not in _SHAPES and name not in _SHAPERS}
        results = super().config(**rest)
        self.params.update({name: params[name] for name in params if name in _SHAPES | _SHAPERS})
        if self.link is not None and shapes:
            self.link.shape(self._way, direction(**shapes))
        return results


class Link:
    """Connects two nodes by a pair of interfaces."""

    def __init__(
        self,
        node1: Any,
        node2: Any,
        port1: int | None = None,
        port2: int | None = None,
        intfName1: str | None = None,
        intfName2: str | None = None,
        addr1: str | None = None,
        addr2: str | None = None,
        intf: Any = None,
        cls1: Any = None,
        cls2: Any = None,
        params1: dict[str, Any] | None = None,
        params2: dict[str, Any] | None = None,
        fast: bool = True,
        **params: Any,
    ) -> None:
        ends = (node1, node2)
        for node in ends:
            if not isinstance(node, Node):
                raise Unsupported(f"a link to {node}", f"{type(node).__name__} has no interfaces here")
        port1 = node1.newPort() if port1 is None else port1
        if port2 is None:
            port2 = node2.newPort() + (1 if node1 is node2 else 0)
        for node, port in ((node1, port1), (node2, port2)):
            if port in node.intfs:
                raise Misused("port", f"{node}: port {port} has an interface already")
        names = (intfName1 or self.intfName(node1, port1), intfName2 or self.intfName(node2, port2))
        self.intf1: Any = None
        self.intf2: Any = None
        self.isUp = True
        self._cut = False
        opened = session()
        label = f"{names[0]}-{names[1]}"
        careless = all(isinstance(node, Switch) and _floods(node) for node in ends)
        if careless:
            opened.bridge(label, node1.name, node2.name)
        self._bridge = label if careless else None
        self._plugs: list[Port | None] = []
        try:
            for node, name in zip(ends, names, strict=True):
                self._plugs.append(None if isinstance(node, LearningSwitch) else opened.plug(node.name, name))
            a, b = (
                node.engineName if plug is None else plug.name
                for node, plug in zip(ends, self._plugs, strict=True)
            )
            self.engineName = opened.join(label, a, b, {}, {})
        except BaseException:
            for plug in self._plugs:
                if plug is not None:
                    opened.unplug(plug)
            opened.unbridge(label)
            raise
        self.intf1 = (cls1 or intf or Intf)(
            names[0], node=node1, port=port1, link=self, mac=addr1, **{**params, **(params1 or {})}
        )
        self.intf2 = (cls2 or intf or Intf)(
            names[1], node=node2, port=port2, link=self, mac=addr2, **{**params, **(params2 or {})}
        )

    @staticmethod
    def intfName(node: Any, n: int) -> str:
        """Returns the name of a node's interface: h1-eth0."""
        return f"{node.name}-eth{n}"

    def adopt(self, intf: Intf) -> tuple[str, Port | None]:
        """Returns the sending direction and the port of an interface in construction."""
        if self.intf1 is None:
            self.intf1 = intf
            return "forward", self._plugs[0]
        self.intf2 = intf
        return "backward", self._plugs[1]

    def shape(self, way: str, settings: LinkSettings) -> None:
        """Applies settings to one direction."""
        session().world.set_link(self.engineName, way, settings)
        debug(f"*** {self.engineName}: {way} {settings}\n")

    def carry(self, up: bool) -> None:
        """Lets the link carry frames, or blocks them."""
        if not self._cut:
            self.isUp = up
            session().world.engine.set_link_up(self.engineName, up)
            debug(f"*** {self.engineName}: {'up' if up else 'down'}\n")

    def cut(self) -> None:
        """Disconnects the link permanently; the interfaces remain."""
        if self._cut:
            return
        self.carry(False)
        self._cut = True
        if self._bridge is not None:
            session().unbridge(self._bridge)

    def delete(self) -> None:
        """Removes the link and its interfaces."""
        for intf in (self.intf1, self.intf2):
            if intf is not None:
                intf.delete()

    def stop(self) -> None:
        """Removes the link and its interfaces."""
        self.delete()

    def status(self) -> str:
        """Returns the state of both interfaces."""
        return f"({self.intf1.status()} {self.intf2.status()})"

    def __str__(self) -> str:
        return f"{self.intf1}<->{self.intf2}"


def _floods(switch: Switch) -> bool:
    """True if a switch floods broadcasts without loop protection."""
    if isinstance(switch, OVSSwitch):
        return switch.failMode == "standalone" and not (switch.stp or switch.rstp)
    return True


class TCLink(Link):
    """A link with a rate, delay, loss and queue."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("cls1", TCIntf)
        kwargs.setdefault("cls2", TCIntf)
        super().__init__(*args, **kwargs)


class TCULink(TCLink):
    """The same as :class:`TCLink`: there are no offloads to switch off."""


class OVSIntf(Intf):
    """A port of a switch."""


class OVSLink(Link):
    """A link between two switches; the same as :class:`Link`."""


__all__ = ["Intf", "Link", "OVSIntf", "OVSLink", "TCIntf", "TCLink", "TCULink"]
