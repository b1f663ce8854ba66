"""Switches: the engine's own, which learn addresses; behind them is no node and no program."""

from __future__ import annotations

import re
from typing import Any

from airloom.mininet.ground import current, ground
from airloom.mininet.hosts import Node
from airloom.mininet.refusal import NO_FLOW_TABLES, Misused, Unsupported
from airloom.mininet.shell import Shell


class Switch(Node):
    """A learning switch of the engine; there is no node behind it, so it runs no programs."""

    portBase = 1
    dpidLen = 16

    def __init__(
        self, name: str, dpid: str | None = None, opts: str = "", listenPort: int | None = None, **params: Any
    ) -> None:
        self.engineName = ""
        params.pop("inNamespace", None)
        for word in ("stp", "rstp"):
            if params.get(word):
                raise Unsupported(f"{type(self).__name__}({name!r}, {word}=...)", "no spanning tree here")
        self.dpid = self.defaultDpid(name, dpid)
        self.opts, self.listenPort = opts, listenPort
        self.controlIntf = None
        self.started = False
        super().__init__(name, **params)

    def _stand(self) -> None:
        self.engineName = ground().add_switch(self.name)

    def defaultDpid(self, name: str, dpid: str | None = None) -> str:
        """The datapath id: as given, or the number in the name; 16 hexadecimal digits."""
        if dpid is None:
            digits = re.search(r"\d+", name)
            if digits is None:
                raise Misused(
                    "dpid",
                    f"switch {name} has no number in its name to make a datapath id of",
                    cure="dpid='1'",
                )
            dpid = f"{int(digits.group()):x}"
        dpid = str(dpid).replace(":", "")
        return "0" * (self.dpidLen - len(dpid)) + dpid

    def __repr__(self) -> str:
        intfs = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {intfs}> "

    @property
    def pid(self) -> int | None:
        """None: there is no process."""
        return None

    @property
    def shell(self) -> Shell:
        """Not here."""
        raise Unsupported(
            f"{self.name}: a command in a switch", "switches are part of the engine and have no shell"
        )

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Not here."""
        what = " ".join(str(arg) for arg in args)
        raise Unsupported(
            f"{self.name}.cmd({what!r})",
            "a switch is part of the engine and has no shell"
            + (f"; {NO_FLOW_TABLES}" if re.search(r"\b(ovs-|dpctl)", what) else ""),
        )

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Not here."""
        self.sendCmd(*args)

    def addIntf(self, intf: Any, port: int | None = None, moveIntfFn: Any = None) -> None:
        """Takes an interface in."""
        super().addIntf(intf, port)

    def defaultIntf(self) -> Any:
        """The first port."""
        return super().defaultIntf()

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None, **kwargs: Any) -> Any:
        """Not here."""
        raise Unsupported(f"{self.name}.setIP({ip!r})", "a switch of the engine has no address")

    def start(self, controllers: Any) -> None:
        """Begins to work. It learns addresses, as it would with any of the controllers accepted here."""
        self.started = True

    def stop(self, deleteIntfs: bool = True) -> None:
        """Takes its links away."""
        self.started = False
        if deleteIntfs:
            self.deleteIntfs()

    def terminate(self) -> None:
        """Takes the switch away."""
        if self.engineName:
            self.engineName = ""
            self.deleteIntfs()
            stands = current()
            if stands is not None:
                stands.drop(self.name)

    def dpctl(self, *args: Any) -> str:
        """Not here: there are no flow tables."""
        raise Unsupported(f"{self.name}.dpctl({' '.join(map(str, args))!r})", NO_FLOW_TABLES)


class OVSSwitch(Switch):
    """A switch of the engine in the place of Open vSwitch, as far as it forwards like one that learns."""

    learns_alone = False

    def __init__(self, name: str, failMode: str = "secure", **params: Any) -> None:
        protocols = params.get("protocols")
        if params.get("datapath", "kernel") not in ("kernel", "user"):
            raise Misused("datapath", f"switch {name}: datapath is kernel or user")
        for word in ("datapath", "inband", "reconnectms", "batch", "protocols"):
            params.pop(word, None)
        super().__init__(name, **params)
        self.failMode, self.protocols = failMode, protocols

    def start(self, controllers: Any) -> None:
        """Begins to work; refused where Open vSwitch would forward nothing for want of a controller."""
        if not controllers and self.failMode == "secure" and not self.learns_alone:
            raise Unsupported(
                f"switch {self.name} without a controller",
                "in fail mode secure it would forward nothing, and " + NO_FLOW_TABLES,
                cure="use OVSBridge, failMode='standalone', or a Controller",
            )
        super().start(controllers)

    def attach(self, intf: Any) -> None:
        """Not here: an interface stays where its link was made."""
        raise Unsupported(f"{self.name}.attach({intf})", "an interface stays where its link was made")

    def detach(self, intf: Any) -> None:
        """Not here: an interface stays where its link was made."""
        raise Unsupported(
            f"{self.name}.detach({intf})",
            "an interface stays where its link was made",
            cure="net.delLink(), and net.addLink() to the other switch, also while the network runs",
        )

    @classmethod
    def isOldOVS(cls) -> bool:
        """Whether Open vSwitch is older than 1.10."""
        return False


OVSKernelSwitch = OVSSwitch


class OVSBridge(OVSSwitch):
    """A switch that learns by itself."""

    learns_alone = True

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("failMode", "standalone")
        super().__init__(name, *args, **kwargs)


class UserSwitch(OVSSwitch):
    """A switch of the engine in the place of the user-space reference switch."""

    def __init__(self, name: str, dpopts: str = "", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)


class LinuxBridge(Switch):
    """A switch that learns by itself, in the place of the kernel's bridge."""


class IVSSwitch:
    """Not here."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        raise Unsupported(f"IVSSwitch({name!r})", NO_FLOW_TABLES)
