"""The network: :class:`Mininet` makes nodes and links, starts, tests and stops them."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from airloom.mininet import checks, verdict_files
from airloom.mininet.default_switch import DefaultSwitch
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.link import Intf, Link
from airloom.mininet.log import debug, info, lg, output, warn
from airloom.mininet.node import (
    Controller,
    DefaultController,
    DefaultControllers,
    Host,
    Node,
    NullController,
    OVSSwitch,
    Switch,
)
from airloom.mininet.nodelib import NAT
from airloom.mininet.parameters import OF_OPEN_SWITCH, note_unused
from airloom.mininet.session import current
from airloom.mininet.term import makeTerms
from airloom.mininet.topo import Topo
from airloom.mininet.util import ipAdd, macColonHex, netParse

VERSION = "2.3"
"""The Mininet release whose API this package implements."""


class Mininet:
    """A network of hosts and switches."""

    def __init__(
        self,
        topo: Topo | None = None,
        switch: Any = None,
        host: Any = Host,
        controller: Any = DefaultController,
        link: Any = Link,
        intf: Any = Intf,
        build: bool = True,
        xterms: bool = False,
        cleanup: bool = False,
        ipBase: str = "10.0.0.0/8",
        inNamespace: bool = False,
        autoSetMacs: bool = False,
        autoStaticArp: bool = False,
        autoPinCpus: bool = False,
        listenPort: int | None = None,
        waitConnected: bool | float = False,
    ) -> None:
        for word, asked, why in (
            ("inNamespace", inNamespace, "switches are part of the engine, which needs no control network"),
            ("autoPinCpus", autoPinCpus, "hosts are not bound to processors"),
        ):
            if asked:
                raise Unsupported(f"Mininet({word}={asked})", why)
        note_unused("Mininet", {"listenPort": listenPort}, ())
        self.topo, self.switch, self.host, self.controller = topo, switch, host, controller
        self.link, self.intf = link, intf
        self.ipBase = ipBase
        self.ipBaseNum, self.prefixLen = netParse(ipBase)
        self.nextIP = (0xFFFFFFFF >> self.prefixLen) & self.ipBaseNum or 1
        self.autoSetMacs, self.autoStaticArp = autoSetMacs, autoStaticArp
        self.waitConn, self.xterms = waitConnected, xterms
        self.hosts: list[Any] = []
        self.switches: list[Any] = []
        self.controllers: list[Any] = []
        self.links: list[Any] = []
        self.nameToNode: dict[str, Any] = {}
        self.terms: list[Any] = []
        self.built = False
        self._stopped = False
        if topo and build:
            self.build()

    @classmethod
    def init(cls) -> None:
        """Does nothing: there is nothing to prepare."""

    # Nodes

    def addHost(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Adds a host, with the next free address unless ``ip`` sets one."""
        defaults: dict[str, Any] = {
            "ip": f"{ipAdd(self.nextIP, self.prefixLen, self.ipBaseNum)}/{self.prefixLen}"
        }
        if self.autoSetMacs:
            defaults["mac"] = macColonHex(self.nextIP)
        self.nextIP += 1
        defaults.update(params)
        made = (cls or self.host)(name, **defaults)
        self.hosts.append(made)
        self.nameToNode[name] = made
        return made

    def addSwitch(self, name: str, cls: Any = None, **params: Any) -> Any:
        """Adds a switch."""
        made = (cls or self.switch or self._defaultSwitch(params))(name, **params)
        self.switches.append(made)
        self.nameToNode[name] = made
        return made

    def _defaultSwitch(self, params: dict[str, Any]) -> type[Switch]:
        """Returns the switch that is of the engine until its flow table is used, or Open vSwitch if
        ``controller`` is set (even to None) or a parameter needs it.
        """
        if any(params.get(word) for word in ("stp", "rstp", *OF_OPEN_SWITCH)):
            return OVSSwitch
        chosen = self.controller is not DefaultController
        chosen |= any(type(one) not in DefaultControllers for one in self.controllers)
        return OVSSwitch if chosen else DefaultSwitch

    def addController(self, name: Any = "c0", controller: Any = None, **params: Any) -> Any:
        """Adds a controller; returns it, or None without one."""
        controller = controller or self.controller
        if isinstance(name, Controller):
            label = name.name
            made: Any = name
        elif not isinstance(name, str):
            raise Misused("controller", f"{name!r} is neither a name nor a Controller")
        else:
            label = name
            made = controller(name, **params) if controller else None
        if made is None or isinstance(made, NullController):
            return None
        self.controllers.append(made)
        self.nameToNode[label] = made
        return made

    def addNAT(
        self, name: str = "nat0", connect: Any = True, inNamespace: bool = False, **params: Any
    ) -> Any:
        """Adds a NAT router to the host's network or, in a namespace, to networks of the script.

        ``connect``: the node that the router is linked to, by default the first switch; hosts then
        use the router as their default gateway.
        """
        if isinstance(connect, str):
            if connect not in self:
                raise Misused("node", f"there is no node {connect}")
            connect = self[connect]
        elif connect and not isinstance(connect, Node):
            if not self.switches:
                raise Misused("nat", f"addNAT: there is no switch for {name}", cure="addSwitch before")
            connect = self.switches[0]
        nat = self.addHost(name, cls=NAT, inNamespace=inNamespace, **{"subnet": self.ipBase, **params})
        if connect:
            self.addLink(nat, connect)
            route = f"via {nat.params['ip'].partition('/')[0]}"
            for host in self.hosts:
                if host is not nat and host.inNamespace:
                    host.params.setdefault("defaultRoute", route)
                    if host.IP():
                        host.setDefaultRoute(route)
        return nat

    def delNode(self, node: Any, nodes: list[Any] | None = None) -> None:
        """Removes a node and its links."""
        for link in [one for one in self.links if node in (one.intf1.node, one.intf2.node)]:
            self.delLink(link)
        node.stop(deleteIntfs=True)
        node.terminate()
        for group in (self.hosts, self.switches, self.controllers):
            if node in group:
                group.remove(node)
        self.nameToNode.pop(node.name, None)

    delHost = delSwitch = delController = delNode

    def getNodeByName(self, *args: str) -> Any:
        """Returns the node of a name, or a list for several names."""
        found = [self[name] for name in args]
        return found[0] if len(found) == 1 else found

    get = getNodeByName

    def __getitem__(self, name: str) -> Any:
        return self.nameToNode[name]

    def __delitem__(self, name: str) -> None:
        self.delNode(self.nameToNode[name])

    def __iter__(self) -> Iterator[str]:
        for node in (*self.hosts, *self.switches, *self.controllers):
            yield node.name

    def __len__(self) -> int:
        return len(self.hosts) + len(self.switches) + len(self.controllers)

    def __contains__(self, name: object) -> bool:
        return name in self.nameToNode

    def keys(self) -> list[str]:
        """Returns the names of all nodes."""
        return list(self)

    def values(self) -> list[Any]:
        """Returns all nodes."""
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, Any]]:
        """Returns (name, node) of all nodes."""
        return list(zip(self.keys(), self.values(), strict=True))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @staticmethod
    def randMac() -> str:
        """Returns a random MAC address; the two lowest bits of its first octet are 0."""
        return macColonHex(random.randrange(1 << 48) & 0xFCFFFFFFFFFF)

    # Links

    def addLink(
        self,
        node1: Any,
        node2: Any,
        port1: int | None = None,
        port2: int | None = None,
        cls: Any = None,
        **params: Any,
    ) -> Any:
        """Adds a link between two nodes, given as objects or names; also in a running network."""
        ends = [self[end] if isinstance(end, str) else end for end in (node1, node2)]
        options = dict(params)
        if port1 is not None:
            options.setdefault("port1", port1)
        if port2 is not None:
            options.setdefault("port2", port2)
        if self.intf is not Intf:
            options.setdefault("intf", self.intf)
        made = (cls or self.link)(*ends, **options)
        self.links.append(made)
        return made

    def delLink(self, link: Any) -> None:
        """Removes a link."""
        link.delete()
        if link in self.links:
            self.links.remove(link)

    def linksBetween(self, node1: Any, node2: Any) -> list[Any]:
        """Returns the links between two nodes."""
        return [link for link in self.links if {link.intf1.node, link.intf2.node} == {node1, node2}]

    def delLinkBetween(self, node1: Any, node2: Any, index: int = 0, allLinks: bool = False) -> list[Any]:
        """Removes one link between two nodes, or all."""
        links = self.linksBetween(node1, node2)
        links = links if allLinks else [links[index]]
        for link in links:
            self.delLink(link)
        return links

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Sets the links between two nodes ``up`` or ``down``."""
        if status not in ("up", "down"):
            raise Misused("status", f"link status {status!r}", cure="up or down")
        for name in (src, dst):
            if name not in self:
                raise Misused("node", f"there is no node {name}")
        links = self.linksBetween(self[src], self[dst])
        if not links:
            raise Misused("link", f"no link joins {src} and {dst}")
        for link in links:
            link.configStatus(status == "up")

    # Start and stop

    def buildFromTopo(self, topo: Topo | None = None) -> None:
        """Creates everything that a topology describes."""
        topo = topo or self.topo
        assert topo is not None
        info("*** Creating network\n")
        if not self.controllers and self.controller:
            info("*** Adding controller\n")
            classes = self.controller if isinstance(self.controller, list) else [self.controller]
            for i, cls in enumerate(classes):
                if isinstance(cls, Controller):
                    self.addController(cls)
                else:
                    self.addController(f"c{i}", cls)
        info("*** Adding hosts:\n")
        for name in topo.hosts():
            self.addHost(name, **topo.nodeInfo(name))
            info(name + " ")
        info("\n*** Adding switches:\n")
        for name in topo.switches():
            params = {key: value for key, value in topo.nodeInfo(name).items() if key != "isSwitch"}
            self.addSwitch(name, **params)
            info(name + " ")
        info("\n*** Adding links:\n")
        for src, dst, params in topo.links(sort=True, withInfo=True):
            self.addLink(**params)
            info(f"({src}, {dst}) ")
        info("\n")

    def build(self) -> None:
        """Creates the topology, if there is one, and configures the hosts."""
        if self.topo:
            self.buildFromTopo(self.topo)
        opened = current()
        if opened is not None:
            opened.wake([host.name for host in self.hosts])
        info("*** Configuring hosts\n")
        self.configHosts()
        if self.autoStaticArp:
            self.staticArp()
        if self.xterms:
            self.startTerms()
        self.built = True

    def configHosts(self) -> None:
        """Configures every host by its parameters."""
        for host in self.hosts:
            info(host.name + " ")
            if host.defaultIntf():
                host.configDefault()
            else:
                host.configDefault(ip=None, mac=None)
        info("\n")

    def staticArp(self) -> None:
        """Adds static ARP entries of all hosts to every host."""
        for src in self.hosts:
            for dst in self.hosts:
                if src is not dst and dst.IP() and dst.MAC():
                    src.setARP(ip=dst.IP(), mac=dst.MAC())

    def start(self) -> None:
        """Starts the controllers and switches."""
        if not self.built:
            self.build()
        info("*** Starting controller\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.start()
        info("\n")
        info(f"*** Starting {len(self.switches)} switches\n")
        for switch in self.switches:
            info(switch.name + " ")
            switch.start(self.controllers)
        info("...\n")
        if self.waitConn:
            self.waitConnected(None if self.waitConn is True else self.waitConn)

    def waitConnected(self, timeout: float | None = None, delay: float = 0.5) -> bool:
        """Waits until all switches have connected to a controller; false after ``timeout`` seconds."""
        info("*** Waiting for switches to connect\n")
        until = None if timeout is None else time.monotonic() + timeout
        left = list(self.switches)
        while True:
            for switch in [one for one in left if one.connected()]:
                info(f"{switch.name} ")
                left.remove(switch)
            if not left or (until is not None and time.monotonic() >= until):
                break
            time.sleep(min(delay, 0.1))
        info("\n")
        if left:
            warn(f"Timed out after {timeout} seconds: {' '.join(one.name for one in left)}\n")
        return not left

    def stop(self) -> None:
        """Ends the network; logs the verdict on its measurements at level info.

        With a folder in the environment variable ``AIRLOOM_VERDICTS``, the verdict is also written there.
        """
        if self._stopped:
            return
        self._stopped = True
        self._tellVerdict()
        self.stopXterms()
        info(f"*** Stopping {len(self.controllers)} controllers\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.stop()
        info(f"\n*** Stopping {len(self.links)} links\n")
        for link in self.links:
            link.cut()
        info(f"*** Stopping {len(self.switches)} switches\n")
        for switch in self.switches:
            info(switch.name + " ")
            switch.stop()
            switch.terminate()
        info(f"\n*** Stopping {len(self.hosts)} hosts\n")
        for host in self.hosts:
            info(host.name + " ")
            host.terminate()
        info("\n*** Done\n")

    def _tellVerdict(self) -> None:
        opened = current()
        if opened is None or not opened.world.running:
            return
        verdict = opened.verdict()
        verdict_files.write(verdict)
        info(f"*** Verdict: {verdict.status}\n")
        for reason in verdict.reasons:
            (info if verdict.status == "degraded" else output)(f"*** {reason}\n")
        if lg.isEnabledFor(logging.DEBUG):
            for line in (*verdict.notes, *opened.counts()):
                debug(f"*** {line}\n")

    def run(self, test: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Starts the network, calls a test, and stops the network."""
        self.start()
        info("*** Running test\n")
        result = test(*args, **kwargs)
        self.stop()
        return result

    def interact(self) -> Any:
        """Starts the network and runs a prompt."""
        from airloom.mininet.cli import CLI

        self.start()
        result = CLI(self)
        self.stop()
        return result

    def startTerms(self) -> None:
        """Opens a terminal window for every node with a shell."""
        info("*** Opening windows\n")
        for nodes, title in (
            (self.controllers, "controller"),
            (self.switches, "switch"),
            (self.hosts, "host"),
        ):
            self.terms += makeTerms([node for node in nodes if node.pid is not None], title)

    def stopXterms(self) -> None:
        """Closes the windows."""
        for window in self.terms:
            window.kill()
            window.wait()
        self.terms = []

    def monitor(self, hosts: list[Any] | None = None, timeoutms: int = -1) -> Iterator[tuple[Any, str]]:
        """Yields output of hosts as it arrives: (host, text), or (None, "") after a timeout."""
        import select

        hosts = hosts or self.hosts
        poller = select.poll()
        for host in hosts:
            poller.register(host.stdout.fileno(), select.POLLIN)
        while True:
            ready = poller.poll(timeoutms if timeoutms >= 0 else None)
            for descriptor, _ in ready:
                host = Node.fdToNode(descriptor)
                yield host, host.monitor() if host is not None else ""
            if not ready:
                yield None, ""

    # Tests

    ping = checks.ping
    pingFull = checks.pingFull
    pingAll = checks.pingAll
    pingPair = checks.pingPair
    pingAllFull = checks.pingAllFull
    pingPairFull = checks.pingPairFull
    iperf = checks.iperf
    runCpuLimitTest = checks.runCpuLimitTest
    _parsePing = staticmethod(checks.parsePing)
    _parsePingFull = staticmethod(checks.parsePingFull)
    _parseIperf = staticmethod(checks.parseIperf)
    _iperfVals = staticmethod(checks.iperfVals)


__all__ = ["VERSION", "Mininet"]
