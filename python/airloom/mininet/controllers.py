"""OpenFlow controllers of Open vSwitch nodes: programs in their own nodes, or at an address.

Switches reach them out of band (see :mod:`airloom.nodes.network.controller_proxy`). A default
controller is needed only by Open vSwitches: the engine's switches learn addresses without a
controller.
"""

from __future__ import annotations

from typing import Any

from airloom.errors import ScenarioError
from airloom.host import programs
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.host_process import path_of
from airloom.mininet.hosts import Node
from airloom.mininet.loopback import Loopback
from airloom.mininet.parameters import OF_CONTROLLER, OF_NODE
from airloom.mininet.session import session
from airloom.mininet.util import waitListening
from airloom.nodes.kinds.openvswitch import reach
from airloom.planning.plan import ControllerPlan

_PORT = 6653
"""OpenFlow's registered TCP port."""
_OLD_PORT = 6633
"""Controllers' port before OpenFlow had a registered one."""
_OWN, _MOST, _STEP = "ovs-testcontroller", 16, 1000
"""Default program, its maximum number of switches, and the port distance between instances."""
_READY = 20.0
"""Timeout in seconds until a controller listens."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Controller(Node):
    """A controller in its own node; by default Open vSwitch's test controller (learning)."""

    _parameters = OF_NODE | OF_CONTROLLER

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
        """Ports of the started programs."""
        self._served = 0
        super().__init__(name, ip=ip, **params)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.IP()}:{self.port}> "

    def start(self) -> None:
        """Starts the program, if a switch needs it, and waits until it listens."""
        if not session().open_switches():
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
            # A control socket would outlive a killed script where the node shares the host's files.
            own = " --unixctl=none"
            # As Mininet's reference controller, unless a switch sets otherwise: `del-flows`
            # then removes the learnt flows, but not the flow that sends packets to the
            # controller.
            if not any(getattr(node, "protocols", None) for node in Node.standing.values()):
                own += " -O OpenFlow10"
        self.cmd(f"{self.command} {arguments}{own} > {log} 2>&1 &")
        if not waitListening(server=self, port=port, timeout=_READY):
            said = self.cmd(f"tail -n 3 {log}").strip()
            raise Misused("controller", f"controller {self.name} does not listen on port {port}: {said}")
        self._listening.append(port)

    def stop(self, deleteIntfs: bool = False) -> None:
        """Ends the program."""
        self.terminate()

    def IP(self, intf: Any = None) -> str:
        """Returns the controller's address."""
        return super().IP(intf) or self.ip

    def place(self) -> ControllerPlan:
        """Returns the address for the next switch. Several instances run if one cannot take all."""
        port = self.port
        if self._listening and self.command == _OWN:
            group, self._served = self._served // _MOST, self._served + 1
            if group == len(self._listening):
                self._launch(self.port + _STEP * group)
            port = self._listening[group]
        own = super().IP()
        if own and session().reaches_machine:
            return ControllerPlan(own, port)  # over the network that was created for it
        return ControllerPlan("127.0.0.1", port, self.name)

    def checkListening(self) -> None:
        """Does nothing: the controller has its own network, so its port is free."""

    @classmethod
    def isAvailable(cls) -> bool:
        """True if the program is installed."""
        return programs.find(_OWN) is not None


class OVSController(Controller):
    """Open vSwitch's test controller, a learning switch."""


class NullController(Controller):
    """No controller."""

    def _stand(self) -> None:
        pass

    def start(self) -> None:
        """Does nothing."""

    @classmethod
    def isAvailable(cls) -> bool:
        """Always true."""
        return True


class RemoteController(Controller):
    """A controller at an address: of this machine, a remote one, a host, or another controller."""

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **kwargs: Any) -> None:
        self._ports = (_PORT, _OLD_PORT) if port is None else (int(port),)
        super().__init__(name, ip=ip, port=port, **kwargs)

    def _stand(self) -> None:
        """Creates no node: the controller exists already."""

    def start(self) -> None:
        """Does nothing."""

    def place(self) -> ControllerPlan:
        """Returns the address for switches; raises an error if an external one does not answer."""
        if self.ip in _LOOPBACK:
            for node in Node.standing.values():
                if isinstance(node, Controller) and node.port in self._ports:
                    return node.place()
        for node in Node.standing.values():
            if any(not isinstance(intf, Loopback) and intf.IP() == self.ip for intf in node.intfList()):
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
        """Always true."""
        return True


class Ryu(Controller):
    """Ryu's ``ryu-manager`` with the named apps."""

    def __init__(self, name: str, *ryuArgs: Any, **kwargs: Any) -> None:
        apps = " ".join(str(word) for word in ryuArgs) or "ryu.app.simple_switch"
        super().__init__(name, command="ryu-manager", cargs=f"--ofp-tcp-listen-port %d {apps}", **kwargs)


class NOX(Controller):
    """Not supported."""

    def __init__(self, name: str, *noxArgs: Any, **kwargs: Any) -> None:
        raise Unsupported(f"NOX({name!r})", "no system packages it any more", cure="RemoteController, or Ryu")


DefaultControllers = (Controller, OVSController)


def findController(controllers: Any = DefaultControllers) -> type[Controller] | None:
    """Returns the first installed controller class."""
    return next((one for one in controllers if one.isAvailable()), None)


def DefaultController(name: str, controllers: Any = DefaultControllers, **kwargs: Any) -> Controller:
    """Returns a controller of the default class."""
    found = findController(controllers) or Controller
    return found(name, **kwargs)
