"""Controllers: programs in nodes of their own, or at an address, that tell Open vSwitches what to do.

The switches reach them out of band (see :mod:`airloom.nodes.network.controller_proxy`). A controller
of the default kind has something to do only where there is an Open vSwitch: the engine's switches learn
by themselves.
"""

from __future__ import annotations

import shutil
from typing import Any

from airloom.errors import ScenarioError
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.host_process import path_of
from airloom.mininet.hosts import Node
from airloom.mininet.session import ground
from airloom.mininet.util import waitListening
from airloom.nodes.kinds.openvswitch import reach
from airloom.planning.plan import ControllerPlan

_PORT = 6653
"""That of OpenFlow."""
_OLD_PORT = 6633
"""Where controllers listened before OpenFlow had a port of its own."""
_OWN, _MOST, _STEP = "ovs-testcontroller", 16, 1000
"""The default program, how many switches it takes, and how far apart the ports of several are."""
_READY = 20.0
"""Seconds that a controller may take until it listens."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Controller(Node):
    """A controller that runs in a node of its own: by default Open vSwitch's, which makes switches learn."""

    def __init__(
        self,
        name: str,
        inNamespace: bool = False,
        command: str = _OWN,
        cargs: str = "ptcp:%d",
        cdir: str | None = None,
        ip: str = "127.0.0.1",
        port: int | None = None,
        protocol: str = "tcp",
        **params: Any,
    ) -> None:
        if protocol != "tcp":
            raise Unsupported(
                f"{type(self).__name__}({name!r}, protocol={protocol!r})", "channels are TCP here"
            )
        if command in ("controller", "ovs-controller", "test-controller"):
            command = _OWN
        self.command, self.cargs, self.cdir = command, cargs, cdir
        self.ip, self.protocol = ip, protocol
        self.port = _PORT if port is None else int(port)
        self._listening: list[int] = []
        """Ports of the programs that were started."""
        self._served = 0
        super().__init__(name, ip=ip, **params)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.IP()}:{self.port}> "

    def start(self) -> None:
        """Starts the program, if there is an Open vSwitch for it, and waits until it listens."""
        if not ground().open_switches():
            return
        path_of(
            self.command,
            f"controller {self.name}",
            None if self.command == _OWN else "install it, or start it elsewhere and use RemoteController",
        )
        if self.cdir is not None:
            self.cmd("cd", self.cdir)
        self._launch(self.port)

    def _launch(self, port: int) -> None:
        """Starts the program on a port, and waits until it listens."""
        arguments = self.cargs % port if "%" in self.cargs else self.cargs
        log = f"/run/{self.name}-{port}.log"
        own = ""
        if self.command == _OWN:
            # A socket to be asked at would outlive a killed script, where the node has the machine's files.
            own = " --unixctl=none"
            # As Mininet's reference controller, unless a switch wants another: then `del-flows` takes
            # away what was learnt, and not that the switch asks.
            if not any(getattr(node, "protocols", None) for node in Node.standing.values()):
                own += " -O OpenFlow10"
        self.cmd(f"{self.command} {arguments}{own} > {log} 2>&1 &")
        if not waitListening(server=self, port=port, timeout=_READY):
            said = self.cmd(f"tail -n 3 {log}").strip()
            raise Misused("controller", f"controller {self.name} does not listen on port {port}: {said}")
        self._listening.append(port)

    def stop(self, deleteIntfs: bool = False) -> None:
        """Ends it."""
        self.terminate()

    def IP(self, intf: Any = None) -> str:
        """Where it listens."""
        return super().IP(intf) or self.ip

    def place(self) -> ControllerPlan:
        """Where the next switch finds it: as many programs run as its kind of program needs for all."""
        port = self.port
        if self._listening and self.command == _OWN:
            group, self._served = self._served // _MOST, self._served + 1
            if group == len(self._listening):
                self._launch(self.port + _STEP * group)
            port = self._listening[group]
        own = super().IP()
        if own and ground().reaches_machine:
            return ControllerPlan(own, port)  # over the network that was made for it
        return ControllerPlan("127.0.0.1", port, self.name)

    def checkListening(self) -> None:
        """Nothing: it has a network of its own, where nobody else can listen."""

    @classmethod
    def isAvailable(cls) -> bool:
        """Whether its program is installed."""
        return shutil.which(_OWN) is not None


class OVSController(Controller):
    """Open vSwitch's test controller, which makes switches learn."""


class NullController(Controller):
    """No controller."""

    def _stand(self) -> None:
        pass

    def start(self) -> None:
        """Nothing to start."""

    @classmethod
    def isAvailable(cls) -> bool:
        """Always."""
        return True


class RemoteController(Controller):
    """A controller at an address: of this machine or beyond, of a host, or of another controller here."""

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **kwargs: Any) -> None:
        self._ports = (_PORT, _OLD_PORT) if port is None else (int(port),)
        super().__init__(name, ip=ip, port=port, **kwargs)

    def _stand(self) -> None:
        """No node: it is there already."""

    def start(self) -> None:
        """Nothing to start."""

    def place(self) -> ControllerPlan:
        """Where switches find it; refused if nobody answers outside."""
        from airloom.mininet.link import Intf

        if self.ip in _LOOPBACK:
            for node in Node.standing.values():
                if isinstance(node, Controller) and node.port in self._ports:
                    return node.place()
        for node in Node.standing.values():
            if any(isinstance(intf, Intf) and intf.IP() == self.ip for intf in node.intfList()):
                return ControllerPlan(self.ip, self.port, node.name)
        refused = None
        for port in self._ports:
            place = ControllerPlan(self.ip, port)
            try:
                reach(place)
            except ScenarioError as error:
                refused = refused or error
            else:
                self.port = port
                return place
        assert refused is not None
        raise Misused("controller", f"{self.name}: {refused.message}", cure="start it before the switches")

    @classmethod
    def isAvailable(cls) -> bool:
        """Always."""
        return True


class Ryu(Controller):
    """Ryu's own ``ryu-manager`` with the apps that are named."""

    def __init__(self, name: str, *ryuArgs: Any, **kwargs: Any) -> None:
        apps = " ".join(str(word) for word in ryuArgs) or "ryu.app.simple_switch"
        super().__init__(name, command="ryu-manager", cargs=f"--ofp-tcp-listen-port %d {apps}", **kwargs)


class NOX(Controller):
    """Not here."""

    def __init__(self, name: str, *noxArgs: Any, **kwargs: Any) -> None:
        raise Unsupported(f"NOX({name!r})", "no system packages it any more", cure="RemoteController, or Ryu")


DefaultControllers = (Controller, OVSController)


def findController(controllers: Any = DefaultControllers) -> type[Controller] | None:
    """The first controller that is installed."""
    return next((one for one in controllers if one.isAvailable()), None)


def DefaultController(name: str, controllers: Any = DefaultControllers, **kwargs: Any) -> Controller:
    """A controller of the default kind."""
    found = findController(controllers) or Controller
    return found(name, **kwargs)
