"""The switch of a network that names no class: of the engine until its flow table is used.

Mininet's default is an Open vSwitch with a learning controller. A switch of the engine forwards as that
does, faster, and has no flow table, no bridge and no shell. The first command in the switch, or for its
bridge, makes an Open vSwitch of it: with the same ports, links and datapath ID, standalone, so that it goes
on to learn beside the rules that it is given. In a loop of switches, where learning would flood for ever,
such switches become Open vSwitches at once, and forward by their rules alone.
"""

from __future__ import annotations

import threading
from typing import Any

from airloom.mininet.controllers import DefaultControllers
from airloom.mininet.errors import Misused
from airloom.mininet.log import info
from airloom.mininet.parameters import note
from airloom.mininet.session import session
from airloom.mininet.shell import Shell
from airloom.mininet.switches import LearningSwitch, OVSSwitch
from airloom.nodes.kinds.netns import NetnsNode

_opening = threading.RLock()
"""Another terminal and the script may use a switch at once."""


class OpenedSwitch(OVSSwitch):
    """What a :class:`DefaultSwitch` is once its flow table is used."""

    def start(self, controllers: Any) -> None:
        """Creates the bridge. It learns by itself, unless it has a controller of the script."""
        own = [one for one in controllers or () if type(one) not in DefaultControllers]
        if own:
            self.failMode = "secure"
        super().start(own)


class DefaultSwitch(LearningSwitch):
    """A learning switch of the engine, which becomes an :class:`OpenedSwitch` when it has to."""

    def become_open(self, secure: bool = False) -> OpenedSwitch:
        """Makes an Open vSwitch of it; ``secure``: it forwards by its rules alone."""
        with _opening:
            opened: Any = self
            if not isinstance(opened, OpenedSwitch):
                self._become_open(secure)
        assert isinstance(opened, OpenedSwitch)
        return opened

    def break_loop(self) -> None:
        """Makes an Open vSwitch without learning of it."""
        self.become_open(secure=True)
        note(
            f"{self.name} is in a loop of switches: it forwards by its flow table alone, because learning "
            "would flood the loop for ever"
        )

    def open_for_program(self) -> None:
        """Makes an Open vSwitch of it, in which a program can run."""
        self.become_open()

    def _become_open(self, secure: bool) -> None:
        if not self.engineName:
            raise Misused("gone", f"node {self.name} is not up")
        info(f"*** {self.name}: an Open vSwitch from now on, as its flow table or shell is used\n")
        started = self.started
        self._handle = session().open_switch(self.name)
        self.engineName = ""
        self.__class__ = OpenedSwitch  # type: ignore[assignment]
        opened: Any = self
        opened.failMode = "secure" if secure else "standalone"
        opened.datapath, opened.protocols = "kernel", None
        opened.stp, opened.rstp = False, False
        opened.standing[self.name] = self
        session().unbridge_all(self.name)
        for intf in self.intfList():
            if intf is not self.controlIntf:
                intf.reconnect()
        if started:
            opened.start([])

    def start(self, controllers: Any) -> None:
        """Starts forwarding; a controller of the script makes an Open vSwitch of it."""
        if any(type(one) not in DefaultControllers for one in controllers or ()):
            self.become_open().start(controllers)
        else:
            super().start(controllers)

    @property
    def handle(self) -> NetnsNode:
        """Airloom's handle of the node, which it becomes."""
        return self.become_open().handle

    @property
    def shell(self) -> Shell:
        """The shell of the node, which it becomes."""
        return self.become_open().shell

    def otherCmd(self, *args: Any, **kwargs: Any) -> str:
        """Runs a command in the Open vSwitch."""
        return self.become_open().cmd(*args, **kwargs)

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Sends a command to the shell of the Open vSwitch."""
        self.become_open().sendCmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Starts a program in the Open vSwitch."""
        return self.become_open().popen(*args, **kwargs)

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None, **kwargs: Any) -> Any:
        """Sets the address of an interface of the Open vSwitch."""
        return self.become_open().setIP(ip, prefixLen, intf, **kwargs)

    def dpctl(self, *args: Any) -> str:
        """Runs ``ovs-ofctl COMMAND`` on the bridge of the Open vSwitch."""
        return self.become_open().dpctl(*args)

    def vsctl(self, *args: Any, **kwargs: Any) -> str:
        """Runs ``ovs-vsctl`` in the Open vSwitch."""
        return self.become_open().vsctl(*args, **kwargs)
