"""Hosts: nodes with their own network stack and a shell."""

from __future__ import annotations

import ipaddress
import math
import os
from typing import Any, ClassVar

from airloom.mininet.commands import Commands
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.link import Link
from airloom.mininet.parameters import OF_LIMITED_HOST, OF_NODE, call_with, note_unused
from airloom.mininet.session import current, session
from airloom.mininet.standing import NODES
from airloom.mininet.util import numCores
from airloom.nodes.kinds.netns import NetnsNode


class Node(Commands):
    """A virtual node with its own network stack and a shell."""

    portBase = 0
    _parameters: ClassVar[frozenset[str]] = OF_NODE
    """Parameters that have an effect."""
    standing: ClassVar[dict[str, Node]] = NODES
    """All running nodes, by name."""
    is_switch: ClassVar[bool] = False
    in_engine: ClassVar[bool] = False
    """Whether it is a switch of the engine, which has no network stack."""

    def __init__(self, name: str, inNamespace: bool = True, **params: Any) -> None:
        self.name = str(params.get("name", name))
        self.privateDirs = params.get("privateDirs", params.get("privateDir", []))
        self.inNamespace = inNamespace
        self.params: dict[str, Any] = params
        self.intfs: dict[int, Any] = {}
        """Interface by port number."""
        self.ports: dict[Any, int] = {}
        """Port number by interface."""
        self.nameToIntf: dict[str, Any] = {}
        super().__init__()
        self._handle: NetnsNode | None = None
        self._stand()
        if self._handle is not None:
            self.standing[self.name] = self
        self.mountPrivateDirs()
        if type(self).__module__.startswith(__package__):  # others may read what they like
            note_unused(f"{type(self).__name__} {self.name}", params, self._parameters)

    def _stand(self) -> None:
        """Creates the node."""
        self._handle = session().add_host(self.name, self._cpu(), not self.inNamespace)

    def _cpu(self) -> float | None:
        """Returns the node's share of one processor."""
        return None

    def __repr__(self) -> str:
        intfs = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {intfs} pid={self.pid}> "

    def __str__(self) -> str:
        return self.name

    @property
    def handle(self) -> NetnsNode:
        """Airloom's handle of the node."""
        if self._handle is None:
            raise Misused("gone", f"node {self.name} is not up")
        opened = current()
        if opened is not None and opened.process != os.getpid():
            raise Misused(
                "process",
                f"node {self.name} belongs to process {opened.process}; this one was forked from it, and "
                "starts no programs there",
                cure="threading.Thread instead of multiprocessing.Process, or host.popen before the fork",
            )
        return self._handle

    @property
    def pid(self) -> int | None:
        """PID of the node's first process on the host, for tools like ``nsenter``."""
        if self._handle is None:
            return None
        self._handle.wake()
        made = self._handle._made
        return None if made is None else made.pid

    def mountPrivateDirs(self) -> None:
        """Mounts private folders: a path starts empty; (path, other) mounts ``other`` there."""
        for wish in self.privateDirs:
            if isinstance(wish, str):
                act = f"mkdir -p {wish} && mount -t tmpfs n {wish}"
            else:
                path, source = wish[0], wish[1] % self.__dict__
                act = f"mkdir -p {source} {path} && mount --bind {source} {path}"
            said = self.cmd(f"({act}) || echo failed")
            if "failed" in said:
                raise Misused("private-dirs", f"{self.name}: privateDirs {wish}: {said.strip()}")

    def listens(self, port: int) -> bool:
        """True if a program in the node listens on this TCP port."""
        return self.handle.listens("tcp", port)

    # Interfaces

    @property
    def floods(self) -> bool:
        """True if it floods broadcasts without protection from loops."""
        return False

    def newPort(self) -> int:
        """Returns the next free port number."""
        return max(self.ports.values()) + 1 if self.ports else self.portBase

    def addIntf(self, intf: Any, port: int | None = None, moveIntfFn: Any = None) -> None:
        """Adds an interface."""
        port = self.newPort() if port is None else port
        self.intfs[port] = intf
        self.ports[intf] = port
        self.nameToIntf[intf.name] = intf

    def delIntf(self, intf: Any) -> None:
        """Removes an interface from the node's tables."""
        port = self.ports.pop(intf, None)
        if port is not None:
            self.intfs.pop(port, None)
            self.nameToIntf.pop(intf.name, None)

    def defaultIntf(self) -> Any:
        """Returns the interface with the lowest port; None without interfaces."""
        return self.intfs[min(self.intfs)] if self.intfs else None

    def intf(self, intf: Any = None) -> Any:
        """Returns an interface by name; without a name, the default one."""
        if not intf:
            return self.defaultIntf()
        return self.nameToIntf.get(intf) if isinstance(intf, str) else intf

    def connectionsTo(self, node: Node) -> list[tuple[Any, Any]]:
        """Returns the pairs of interfaces that connect this node to another."""
        pairs = []
        for intf in self.intfList():
            link = intf.link
            if link:
                if link.intf1.node is self and link.intf2.node is node:
                    pairs.append((link.intf1, link.intf2))
                elif link.intf1.node is node and link.intf2.node is self:
                    pairs.append((link.intf2, link.intf1))
        return pairs

    def connected(self) -> bool:
        """True: a learning node needs no controller."""
        return True

    def deleteIntfs(self, checkName: bool = True) -> None:
        """Deletes all interfaces."""
        for intf in list(self.intfList()):
            intf.delete()

    def intfList(self) -> list[Any]:
        """Returns the interfaces in port order."""
        return [self.intfs[port] for port in sorted(self.intfs)]

    def intfNames(self) -> list[str]:
        """Returns the names of the interfaces."""
        return [str(intf) for intf in self.intfList()]

    # Addresses and routes

    def IP(self, intf: Any = None) -> str | None:
        """Returns the IP address of an interface, by default of the default interface."""
        found = self.intf(intf)
        return found.IP() if found else None

    def MAC(self, intf: Any = None) -> str | None:
        """Returns the MAC address of an interface."""
        found = self.intf(intf)
        return found.MAC() if found else None

    def intfIsUp(self, intf: Any = None) -> bool:
        """True if the interface is up."""
        found = self.intf(intf)
        return bool(found and found.isUp())

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None, **kwargs: Any) -> Any:
        """Sets the IP address: ``"10.0.0.1/8"``, or an address and a prefix length."""
        if "/" not in ip:
            ip = f"{ip}/{64 if ':' in ip and prefixLen == 8 else prefixLen}"
        return self._its(intf).setIP(ip, **kwargs)

    def setMAC(self, mac: str, intf: Any = None) -> Any:
        """Sets the MAC address of an interface."""
        return self._its(intf).setMAC(mac)

    def setARP(self, ip: str, mac: str) -> str:
        """Adds a static neighbour (ARP) entry."""
        intf = self._its(None)
        for one in self.intfList():
            if one.ip and ipaddress.ip_address(ip) in ipaddress.ip_network(
                f"{one.ip}/{one.prefixLen}", strict=False
            ):
                intf = one
                break
        return self.cmd("ip", "neigh", "replace", ip, "lladdr", mac, "dev", intf, "nud", "permanent")

    def setHostRoute(self, ip: str, intf: Any) -> str:
        """Adds a host route."""
        return self.cmd("ip", "route", "replace", ip, "dev", intf)

    def setDefaultRoute(self, intf: Any = None) -> str:
        """Sets the default route: an interface, or text such as ``via 10.0.0.254``."""
        to = intf if isinstance(intf, str) and " " in intf else f"dev {self._its(intf)}"
        return self.cmd(f"ip route replace default {to}")

    def _its(self, intf: Any) -> Any:
        found = self.intf(intf)
        if found is None:
            raise Misused("interface", f"node {self.name} has no interface {intf or ''}".rstrip())
        return found

    # Configuration

    def setParam(self, results: dict[str, Any], method: str, **param: Any) -> Any:
        """Calls a method with a parameter's value unless the value is None."""
        return call_with(self, results, method, **param)

    def config(
        self,
        mac: str | None = None,
        ip: str | None = None,
        defaultRoute: Any = None,
        lo: str = "up",
        **_params: Any,
    ) -> dict[str, Any]:
        """Configures the node by its parameters; subclasses override it."""
        results: dict[str, Any] = {}
        self.setParam(results, "setMAC", mac=mac)
        self.setParam(results, "setIP", ip=ip)
        self.setParam(results, "setDefaultRoute", defaultRoute=defaultRoute)
        if lo != "up":
            self.cmd("ip link set lo down" if lo == "down" else f"ifconfig lo {lo}")
        return results

    def configDefault(self, **moreParams: Any) -> None:
        """Configures the node by its own parameters and ``moreParams``."""
        self.params.update(moreParams)
        self.config(**self.params)

    def linkTo(self, node: Node, link: Any = None) -> Any:
        """Links this node to another."""
        return (link or Link)(self, node)

    # Teardown

    def stop(self, deleteIntfs: bool = False) -> None:
        """Ends the node."""
        if deleteIntfs:
            self.deleteIntfs()
        self.terminate()

    def terminate(self) -> None:
        """Ends the node and all its programs."""
        self.closeShell()
        opened = current()
        for intf in self.intfList():
            intf.detach()
        if self._handle is not None:
            self._handle = None
            self.standing.pop(self.name, None)
            if opened is not None:
                opened.drop(self.name)

    def cleanup(self) -> None:
        """Ends the node."""
        self.terminate()

    @classmethod
    def setup(cls) -> None:
        """Does nothing: there are no kernel modules to load."""


class Host(Node):
    """A host; the same as a node."""


class CPULimitedHost(Host):
    """A host with a limited share of the processors.

    ``cpu`` is a fraction of all processors; the ``cpu`` cgroup enforces it (CFS bandwidth).
    """

    _parameters = OF_LIMITED_HOST

    def __init__(self, name: str, sched: str = "cfs", **kwargs: Any) -> None:
        if sched != "cfs":
            raise Unsupported(
                f"CPULimitedHost({name!r}, sched={sched!r})",
                "shares are held by the completely fair scheduler",
                cure="sched='cfs'",
            )
        self.sched = sched
        period = kwargs.get("period_us", 100000)
        if not isinstance(period, int) or not 1000 <= period <= 1_000_000:
            raise Misused("cpu", f"period_us={period!r}: a whole number of 1,000 to 1,000,000 microseconds")
        self.period_us = period
        super().__init__(name, **kwargs)

    def _cpu(self) -> float | None:
        fraction = self.params.get("cpu")
        if fraction is None:
            return None
        try:
            share = float(fraction)
        except (TypeError, ValueError, OverflowError):
            share = math.nan
        if share < 0:  # negative: no limit, as in Mininet
            return None
        if not 0 < share <= 1:
            raise Misused("cpu", f"cpu={fraction!r}: a fraction of all processors, above 0 and at most 1")
        return share * numCores()

    def setCPUFrac(self, f: float, sched: str | None = None) -> None:
        """Accepts the share set at creation; raises an error for any other."""
        if f != self.params.get("cpu"):
            raise Unsupported(
                f"{self.name}.setCPUFrac({f})",
                "a host's share is fixed when it is made",
                cure="addHost(name, cpu=...)",
            )

    def setCPUs(self, cores: Any, mems: Any = 0) -> None:
        """Not supported: hosts are not bound to processors."""
        raise Unsupported(f"{self.name}.setCPUs({cores})", "hosts are not bound to processors")

    def config(self, *, cpu: float | None = None, cores: Any = None, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Configures the host by its parameters."""
        results = Node.config(self, **params)
        if cpu is not None:
            self.setParam(results, "setCPUFrac", cpu=cpu)
        if cores is not None:
            self.setParam(results, "setCPUs", cores=cores)
        return results

    def cpuSeconds(self) -> float:
        """Returns the processor time of the host's programs in seconds."""
        used = self.handle.cpu()
        return (used.user_ns + used.system_ns) / 1e9
