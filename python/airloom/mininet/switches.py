"""Switches: the engine's learning switches, and Open vSwitches in their own nodes."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any, ClassVar, TextIO

from airloom.mininet import link_queue
from airloom.mininet.controllers import DefaultControllers
from airloom.mininet.errors import NO_FLOW_TABLES, Misused, Unsupported
from airloom.mininet.hosts import Node
from airloom.mininet.log import warn
from airloom.mininet.loopback import Loopback
from airloom.mininet.parameters import OF_NODE, OF_OPEN_SWITCH, OF_SWITCH, note, note_unused
from airloom.mininet.session import current, session
from airloom.mininet.shell import Shell
from airloom.mininet.standing import SWITCHES
from airloom.nodes.kinds.netns import NetnsNode
from airloom.nodes.kinds.openvswitch import OpenVSwitchNode
from airloom.nodes.network.controller_proxy import Line
from airloom.planning.plan import BridgePlan, BridgePortPlan

_RECONNECT = 1000
_LEAST_BACKOFF = 1000
"""Least value of ``max_backoff`` in ms that Open vSwitch's database accepts."""
_LOGS = Path("/tmp")
_REAL = "switch=OVSSwitch"
_UNDECIDED = re.compile(
    r"^\s*\S+\s+(?:root|designated)\s+(?!forwarding\b)\w+\s", re.IGNORECASE | re.MULTILINE
)
"""In a spanning tree, a port that does not forward yet: interface, role, state."""


class Switch(Node):
    """Base class of all switches."""

    portBase = 1
    dpidLen = 16
    is_switch = True
    standing_switches: ClassVar[dict[str, Switch]] = SWITCHES
    """All switches that have not been terminated, by name."""
    _parameters = OF_NODE | OF_SWITCH

    def __init__(
        self, name: str, dpid: str | None = None, opts: str = "", listenPort: int | None = None, **params: Any
    ) -> None:
        params.pop("inNamespace", None)
        self.name = name
        self.dpid = self.defaultDpid(dpid)
        self.opts, self.listenPort = opts, listenPort
        self.started = False
        super().__init__(name, **params)
        note_unused(
            f"{type(self).__name__} {name}", {"opts": opts or None, "listenPort": listenPort}, self._read
        )
        self.controlIntf = Loopback(self)
        Node.addIntf(self, self.controlIntf, port=0)
        self.standing_switches[self.name] = self

    _read: ClassVar[frozenset[str]] = frozenset()
    """Parameters beside its common ones that it reads."""

    @property
    def floods(self) -> bool:
        """True: it learns."""
        return True

    def break_loop(self) -> None:
        """Ends its flooding in a loop of switches if only a default made it flood: nothing is to be done."""

    def open_for_program(self) -> None:
        """Prepares the switch for a program of another terminal: nothing is to be done."""

    def defaultDpid(self, dpid: str | None = None) -> str:
        """Returns the datapath ID: as given, or the number in the name; 16 hexadecimal digits."""
        if dpid is None:
            digits = re.search(r"[0-9]+", self.name)
            if digits is None:
                raise Misused(
                    "dpid",
                    f"switch {self.name} has no number in its name to make a datapath id of",
                    cure="dpid='1'",
                )
            dpid = f"{int(digits.group()):x}"
        dpid = str(dpid).replace(":", "")
        if len(dpid) > self.dpidLen or not re.fullmatch(r"[0-9A-Fa-f]+", dpid):
            raise Misused(
                "dpid", f"{dpid[:40]!r} is no datapath id", cure=f"at most {self.dpidLen} hexadecimal digits"
            )
        return "0" * (self.dpidLen - len(dpid)) + dpid

    def __repr__(self) -> str:
        intfs = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {intfs}> "

    def defaultIntf(self) -> Any:
        """Returns the loopback interface."""
        return self.controlIntf

    def terminate(self) -> None:
        """Removes the switch."""
        self.standing_switches.pop(self.name, None)
        super().terminate()


class LearningSwitch(Switch):
    """A learning switch of the engine; without a node, so it runs no programs."""

    in_engine = True

    def __init__(self, name: str, **params: Any) -> None:
        self.engineName = ""
        for word in sorted(OF_OPEN_SWITCH & params.keys()):
            note(f"{type(self).__name__} {name}: {word} has no effect: only an Open vSwitch has it")
            del params[word]
        for word in ("stp", "rstp"):
            if params.get(word):
                raise Unsupported(
                    f"{type(self).__name__}({name!r}, {word}=...)",
                    "the engine's switches have no spanning tree protocol",
                    cure="OVSBridge",
                )
        super().__init__(name, **params)

    def _stand(self) -> None:
        self.engineName = session().add_switch(self.name)

    @property
    def pid(self) -> int | None:
        """None: there is no process."""
        return None

    @property
    def handle(self) -> NetnsNode:
        """Not supported."""
        raise Unsupported(
            f"{self.name}: a program in a switch", "switches of the engine run none", cure=_REAL
        )

    @property
    def shell(self) -> Shell:
        """Not supported."""
        raise Unsupported(
            f"{self.name}: a command in a switch", "switches of the engine have no shell", cure=_REAL
        )

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Runs ``tc qdisc show``, which the engine answers, or another command as :meth:`otherCmd` does."""
        words = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        request = link_queue.request_of(link_queue.words_of(" ".join(map(str, words))))
        if request is None:
            return self.otherCmd(*args, **kwargs)
        intfs = [one for one in self.intfList() if one.link is not None]
        intfs = [one for one in intfs if request.device in (None, one.name)]
        if not intfs:
            return f'Cannot find device "{request.device}"\n'
        return link_queue.answer(request, intfs)

    def otherCmd(self, *args: Any, **kwargs: Any) -> str:
        """Not supported: any command but those that the engine answers."""
        return super().cmd(*args, **kwargs)

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Not supported."""
        what = " ".join(str(arg) for arg in args)
        raise Unsupported(f"{self.name}.cmd({what!r})", "switches of the engine have no shell", cure=_REAL)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Not supported."""
        self.sendCmd(*args)

    def setIP(self, ip: str, prefixLen: int = 8, intf: Any = None, **kwargs: Any) -> Any:
        """Not supported."""
        raise Unsupported(f"{self.name}.setIP({ip!r})", "a switch of the engine has no address")

    def start(self, controllers: Any) -> None:
        """Starts forwarding. The switch learns addresses, as with a default controller."""
        for controller in controllers or ():
            if type(controller) not in DefaultControllers:
                raise Unsupported(f"{controller!r} for switch {self.name}", NO_FLOW_TABLES, cure=_REAL)
        self.started = True

    def stop(self, deleteIntfs: bool = True) -> None:
        """Removes its links."""
        self.started = False
        if deleteIntfs:
            self.deleteIntfs()

    def terminate(self) -> None:
        """Removes the switch."""
        self.standing_switches.pop(self.name, None)
        if self.engineName:
            self.engineName = ""
            self.deleteIntfs()
            stands = current()
            if stands is not None:
                stands.drop(self.name)

    def attach(self, intf: Any) -> None:
        """Lets a port, which exists as long as its link, forward again."""
        self._port(intf).carry(True)

    def detach(self, intf: Any) -> None:
        """Blocks forwarding at a port."""
        self._port(intf).carry(False)

    def _port(self, intf: Any) -> Any:
        found = self.nameToIntf.get(str(intf))
        if found is None:
            raise Misused("interface", f"switch {self.name} has no port {intf}")
        return found

    def dpctl(self, *args: Any) -> str:
        """Not supported: there are no flow tables."""
        raise Unsupported(f"{self.name}.dpctl({' '.join(map(str, args))!r})", NO_FLOW_TABLES, cure=_REAL)


class OVSSwitch(Switch):
    """A real Open vSwitch in its own node; its bridge has the switch's name."""

    failover: ClassVar[bool] = False
    """Whether it has one controller at a time, and not all of them."""

    def __init__(
        self,
        name: str,
        failMode: str = "secure",
        datapath: str = "kernel",
        inband: bool = False,
        protocols: str | None = None,
        reconnectms: int = _RECONNECT,
        stp: bool = False,
        rstp: bool = False,
        batch: bool = False,
        **params: Any,
    ) -> None:
        if datapath not in ("kernel", "user"):
            raise Misused("datapath", f"switch {name}: datapath is kernel or user")
        if inband:
            raise Unsupported(f"{type(self).__name__}({name!r}, inband=True)", "controllers are out of band")
        self.failMode, self.datapath, self.protocols = failMode, datapath, protocols
        self.stp, self.rstp = bool(stp), bool(rstp)
        if reconnectms != _RECONNECT:
            note_unused(f"{type(self).__name__} {name}", {"reconnectms": reconnectms}, ())
        super().__init__(name, **params)

    def _stand(self) -> None:
        self._handle = session().add_openvswitch(self.name)

    @property
    def floods(self) -> bool:
        """True if it forwards by itself, and has no spanning tree."""
        return self.failMode == "standalone" and not (self.stp or self.rstp)

    @property
    def handle(self) -> OpenVSwitchNode:
        """Airloom's handle of the node."""
        found = super().handle
        assert isinstance(found, OpenVSwitchNode)
        return found

    def start(self, controllers: Any) -> None:
        """Creates the bridge with its ports, and connects to the controllers."""
        settings = {
            "fail_mode": self.failMode,
            "other_config:datapath-id": self.dpid,
            "stp_enable": "true" if self.stp else "false",
            "rstp_enable": "true" if self.rstp else "false",
        }
        if self.protocols:
            settings["protocols"] = f"[{self.protocols}]"
        ports = tuple(
            BridgePortPlan(intf.name, self.ports[intf])
            for intf in self.intfList()
            if intf is not self.controlIntf
        )
        places = tuple(controller.place() for controller in controllers or ())
        plan = BridgePlan(self.name, ports, places, settings, self.failover, self._channel())
        self.handle.vsctl(self.handle.bridge_words(plan))
        self.started = True

    def _channel(self) -> dict[str, str]:
        """Returns columns of the table Controller."""
        return {}

    def stop(self, deleteIntfs: bool = True) -> None:
        """Removes the bridge and the links."""
        if self.started:
            self.started = False
            self.handle.forget_controllers()
            self.handle.vsctl(["del-br", self.name])
        if deleteIntfs:
            self.deleteIntfs()

    def connected(self) -> bool:
        """True if it forwards: a controller is connected or not needed, and no port is pending."""
        if not (self.started and self.handle.has_met_controller()):
            return False
        tree = "rstp" if self.rstp else "stp" if self.stp else None
        return tree is None or _UNDECIDED.search(self.cmd(f"ovs-appctl {tree}/show {self.name}")) is None

    def dpctl(self, *args: Any) -> str:
        """Runs ``ovs-ofctl COMMAND`` on the bridge."""
        return self.cmd("ovs-ofctl", args[0], self, *args[1:])

    def vsctl(self, *args: Any, **kwargs: Any) -> str:
        """Runs ``ovs-vsctl``."""
        return self.cmd("ovs-vsctl", *args, **kwargs)

    def addIntf(self, intf: Any, port: int | None = None, moveIntfFn: Any = None) -> None:
        """Adds an interface, which may be one of another node."""
        super().addIntf(intf, port)
        intf.move(self)
        if self.started and intf.node is self:
            self.attach(intf)

    def attach(self, intf: Any) -> None:
        """Adds an interface to the bridge as a port."""
        name = str(intf)
        asked = f"ofport_request={self.ports[self.nameToIntf[name]]}"
        self.handle.vsctl(["--may-exist", "add-port", self.name, name, "--", "set", "interface", name, asked])

    def detach(self, intf: Any) -> None:
        """Removes a port from the bridge; the interface remains."""
        self.handle.vsctl(["del-port", self.name, str(intf)])

    def delIntf(self, intf: Any) -> None:
        """Removes an interface from the switch's tables."""
        if self.started and intf in self.ports:
            self.handle.vsctl(["--if-exists", "del-port", self.name, str(intf)])
        super().delIntf(intf)

    @classmethod
    def isOldOVS(cls) -> bool:
        """True if Open vSwitch is older than 1.10."""
        return False


OVSKernelSwitch = OVSSwitch
"""With the userspace datapath, as every Open vSwitch in Airloom."""


class OVSBridge(OVSSwitch):
    """An Open vSwitch as a standalone learning switch."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("failMode", "standalone")
        super().__init__(name, *args, **kwargs)

    def start(self, controllers: Any) -> None:
        """Creates the bridge, without controllers."""
        super().start([])


class UserSwitch(OVSSwitch):
    """An Open vSwitch in place of the user-space reference switch.

    It has one controller at a time, like that switch: the first that answers, and the next one when
    it has gone. ``opts`` may have ``--inactivity-probe=SECONDS`` and ``--max-backoff=SECONDS``. The
    log of its channel is ``/tmp/NAME-ofp.log`` while it runs.
    """

    failover = True
    _read = frozenset(("opts",))

    def __init__(self, name: str, dpopts: str = "", **kwargs: Any) -> None:
        self._log: Path | None = None
        self._told: TextIO
        super().__init__(name, **kwargs)
        note_unused(f"UserSwitch {name}", {"dpopts": dpopts or None}, ())

    def start(self, controllers: Any) -> None:
        """Creates the bridge with its ports, and connects to the first controller."""
        log = _LOGS / f"{self.name}-ofp.log"
        # Exclusively: in a folder of all users, somebody else's link must not be followed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            log.unlink(missing_ok=True)
            self._told = os.fdopen(os.open(log, flags, 0o644), "w", buffering=1)
        except OSError as error:
            warn(f"*** {self.name}: no log {log}: {error.strerror}\n")
        else:
            self._log = log
            self.handle.on_channel(self._tell)
        super().start(controllers)

    def stop(self, deleteIntfs: bool = True) -> None:
        """Removes the bridge, the links and the log."""
        super().stop(deleteIntfs)
        self._forget_log()

    def terminate(self) -> None:
        """Ends the node and all its programs."""
        super().terminate()
        self._forget_log()

    def _tell(self, line: Line) -> None:
        state = "connected" if line.connected else f"connection lost: {line.why}"
        with contextlib.suppress(ValueError):  # the log is closed
            print(
                f"{time.strftime('%H:%M:%S')} tcp:{line.controller.host}:{line.controller.port}: {state}",
                file=self._told,
            )

    def _channel(self) -> dict[str, str]:
        found = {}
        for word, column in (("inactivity-probe", "inactivity_probe"), ("max-backoff", "max_backoff")):
            given = re.search(rf"--{word}=([0-9]{{1,5}})(?![\w.])", self.opts)
            if given:
                found[column] = str(max(_LEAST_BACKOFF, 1000 * int(given.group(1))))
        return found

    def _forget_log(self) -> None:
        if self._log is not None:
            # A switch of this name in another network may have replaced it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(self._log.lstat(), os.fstat(self._told.fileno())):
                    self._log.unlink()
            self._told.close()
            self._log = None


class LinuxBridge(LearningSwitch):
    """A switch of the engine in place of the kernel's bridge."""


class IVSSwitch:
    """Not supported."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        raise Unsupported(f"IVSSwitch({name!r})", "no system packages it", cure="OVSSwitch")
