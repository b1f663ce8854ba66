"""Links and interfaces. The engine emulates every link, without traffic control in the nodes.

:mod:`airloom.mininet.parameters` lists the parameters, :mod:`airloom.mininet.traffic_control` says what
those of a :class:`TCLink` mean.
"""

from __future__ import annotations

import re
from ipaddress import ip_interface
from typing import Any

from airloom.mininet import interfaces, traffic_control
from airloom.mininet.emulation import Port
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.log import debug, warn
from airloom.mininet.parameters import OF_INTERFACE, OF_SHAPED_INTERFACE, call_with, note, note_unused
from airloom.mininet.session import session
from airloom.mininet.standing import SWITCHES
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import OffloadsPlan
from airloom.runs.link_loads import LinkLoad, load_of


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
        self._offloads = OffloadsPlan()
        self._shaped = LinkSettings()
        """What the link was last set to in this direction."""
        if link is not None:
            self._way, self._engine_port = link.adopt(self)
        elif getattr(node, "is_switch", False):
            engine = session().world.engine
            outside = f"{node.name}:{name}"
            engine.add_interface_port(outside, name)
            if node.in_engine:
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

    @property
    def way(self) -> str:
        """The direction of its link in which it sends: ``forward`` or ``backward``."""
        return self._way

    @property
    def shaped(self) -> LinkSettings:
        """What the link was last set to in this direction."""
        return self._shaped

    def shapeAs(self, settings: LinkSettings) -> None:
        """Applies settings to the link in the direction in which the interface sends."""
        assert self.link is not None
        self._shaped = settings
        self.link.shape(self._way, settings)

    def load(self) -> LinkLoad:
        """Returns what its link carries, drops and holds back in the direction in which it sends."""
        assert self.link is not None
        opened = session()
        return load_of(opened.world.engine, opened.link_numbers(), self.link.engineName, self._way)

    def reconnect(self) -> None:
        """Gives the port of a switch, which has become a node, an interface there."""
        end = "a" if self._way == "forward" else "b"
        if self.link is None:
            link, end = f"{self.node.name}:{self.name}", "b"
        else:
            link = self.link.engineName
        self._engine_port = session().reconnect(link, end, self.node.name, self.name)
        self.mac = self._engine_port.tap.mac
        offloads, self._offloads = self._offloads, OffloadsPlan()
        self.setOffloads(offloads)

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
            found = ip_interface(f"{address}/{length or prefixLen}")
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
        if up is False and ip is None:
            self.carry(False)
        self._note_unused(params)
        return results

    def _note_unused(self, params: dict[str, Any]) -> None:
        shapes = sorted(set(params) & OF_SHAPED_INTERFACE)
        if shapes:
            note(f"{self.name}: {', '.join(shapes)} has no effect on a Link; use TCLink")
        note_unused("Link", params, OF_SHAPED_INTERFACE)

    @property
    def offloads(self) -> OffloadsPlan:
        """The offloads of the interface; a port of the engine's switch has those of the other end."""
        return self._offloads

    def setOffloads(self, offloads: OffloadsPlan) -> None:
        """Sets the offloads of the interface.

        A port of the engine's switch sends without offloads if the other end receives without them.
        """
        if offloads == self._offloads:
            return
        self._offloads = offloads
        if self._engine_port is not None:
            session().set_offloads(self._engine_port, self.name, offloads)
        elif self.link is not None and not offloads.transmit:
            self.link.receiveAsOnWire(self)

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
    """An interface whose link has a rate, delay, loss and queue."""

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Configures the interface.

        New shaping parameters replace all previous ones, and without any the link stays as it is, both as
        in Mininet. Offloads stay unless they are given.
        """
        given = {name: value for name, value in params.items() if value is not None}
        shaping = {name: given[name] for name in given if name in traffic_control.SHAPES}
        own = OF_SHAPED_INTERFACE - OF_INTERFACE
        rest = {name: value for name, value in params.items() if name not in own}
        results = super().config(**rest)
        self.params.update({name: params[name] for name in params if name not in rest})
        self._offload(given)
        for word in traffic_control.idle_words(shaping):
            beside = "bw" if word in traffic_control.RATE else "bw, a delay, a loss or a max_queue_size"
            note(f"{self.name}: {word}={shaping[word]!r} has no effect without {beside}, as in Mininet")
        if self.link is not None and traffic_control.shapes(shaping):
            if not self.node.name.startswith("s"):
                shaping.pop("speedup", None)
            self._shape(traffic_control.direction(**shaping))
        return results

    def _note_unused(self, params: dict[str, Any]) -> None:
        note_unused("TCLink", params, OF_SHAPED_INTERFACE)

    def _shape(self, settings: LinkSettings) -> None:
        """Applies settings to the interface, and says what they take away."""
        old = self._shaped
        lost = [
            word
            for word, before, now in (
                ("rate", old.rate, settings.rate),
                ("delay", old.delay, settings.delay),
                ("jitter", old.jitter, settings.jitter),
                ("loss", old.loss, settings.loss),
                ("queue", old.queue, settings.queue),
            )
            if before and not now
        ]
        if lost:
            warn(
                f"*** {self.name}: no {', '.join(lost)} any more: new parameters replace all, as in Mininet\n"
            )
        self.shapeAs(settings)

    def _offload(self, given: dict[str, Any]) -> None:
        transmit, receive = self.offloads.transmit, self.offloads.receive
        if "txo" in given:
            transmit = bool(given["txo"])
        merged = given.get("gro", not given["disable_gro"] if "disable_gro" in given else None)
        if "rxo" in given or merged is not None:
            receive = bool(given.get("rxo", True)) and (merged is None or bool(merged))
        self.setOffloads(OffloadsPlan(transmit, receive))


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
            if not hasattr(node, "newPort"):
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
        careless = all(node.floods for node in ends)
        if careless and node2.name in opened.joined(node1.name):
            for name in sorted(opened.joined(node1.name) & SWITCHES.keys()):
                SWITCHES[name].break_loop()
            careless = all(node.floods for node in ends)
        if careless:
            opened.bridge(label, node1.name, node2.name)
        self._bridge = label if careless else None
        self._plugs: list[Port | None] = []
        self._wire_senders: set[str] = set()
        """Ports of the engine's switches that send without offloads."""
        try:
            for node, name in zip(ends, names, strict=True):
                self._plugs.append(None if node.in_engine else opened.plug(node.name, name))
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
        if names[0] in self._wire_senders:
            self.receiveAsOnWire(self.intf1)

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

    def receiveAsOnWire(self, sender: Intf) -> None:
        """Lets the end that hears ``sender`` receive without offloads, now or once it exists."""
        self._wire_senders.add(sender.name)
        for intf in (self.intf1, self.intf2):
            if intf is not None and intf is not sender:
                intf.setOffloads(OffloadsPlan(intf.offloads.transmit, False))

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

    def configStatus(self, up: bool) -> None:
        """Sets the link and the interfaces of its nodes up or down."""
        self.carry(up)
        for intf in (self.intf1, self.intf2):
            if not intf.node.in_engine:
                intf.carry(up)
                if up:
                    intf.awaitCarrier()

    @property
    def isCut(self) -> bool:
        """True if the link never carries frames again."""
        return self._cut

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


class TCLink(Link):
    """A link with a rate, delay, loss and queue."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("cls1", TCIntf)
        kwargs.setdefault("cls2", TCIntf)
        super().__init__(*args, **kwargs)


class TCULink(TCLink):
    """A :class:`TCLink` without offloads of sent and received frames."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(txo=False, rxo=False)
        super().__init__(*args, **kwargs)


class OVSIntf(Intf):
    """A port of a switch."""


class OVSLink(Link):
    """A link between two switches; the same as :class:`Link`."""


__all__ = ["Intf", "Link", "OVSIntf", "OVSLink", "TCIntf", "TCLink", "TCULink"]
