"""Controllers: names for the learning that the engine's switches do by themselves."""

from __future__ import annotations

from typing import Any

from airloom.mininet.refusal import NO_FLOW_TABLES, Unsupported


class Controller:
    """Stands for Mininet's reference controller, which makes a switch learn: the engine's switches do.

    No program runs; controllers of one's own are refused, since they could only be pretended.
    """

    def __init__(
        self,
        name: str,
        inNamespace: bool = False,
        command: str | None = None,
        cargs: str | None = None,
        cdir: str | None = None,
        ip: str = "127.0.0.1",
        port: int | None = None,
        protocol: str = "tcp",
        **params: Any,
    ) -> None:
        known = ("controller", "ovs-controller", "ovs-testcontroller", "test-controller", None)
        if command not in known:
            raise Unsupported(f"controller {name} ({command})", NO_FLOW_TABLES)
        if type(self)._runs() or inNamespace:
            raise Unsupported(f"controller {name} ({type(self).__name__})", NO_FLOW_TABLES)
        self.name, self.ip, self.protocol = name, ip, protocol
        self.port = 6653 if port is None else port
        self.params = params
        self.intfs: dict[int, Any] = {}
        self.waiting = False

    @classmethod
    def _runs(cls) -> bool:
        """Whether a subclass starts a program of its own."""
        return cls.start is not Controller.start

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.ip}:{self.port}> "

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Nothing to start."""

    def stop(self, deleteIntfs: bool = False) -> None:
        """Nothing to stop."""

    terminate = stop

    def IP(self, intf: Any = None) -> str:
        """Where it would listen."""
        return self.ip

    def connected(self) -> bool:
        """Always."""
        return True

    def intfList(self) -> list[Any]:
        """None."""
        return []

    def checkListening(self) -> None:
        """Nothing listens."""

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Not here."""
        raise Unsupported(
            f"{self.name}.cmd({' '.join(map(str, args))!r})", "a controller runs no programs here"
        )

    popen = sendCmd = cmdPrint = cmd

    @classmethod
    def isAvailable(cls) -> bool:
        """Always."""
        return True


class OVSController(Controller):
    """Stands for Open vSwitch's test controller, which makes a switch learn."""


class NullController(Controller):
    """No controller."""


class RemoteController(Controller):
    """Not here: a controller at an address decides by itself, over OpenFlow."""

    def __init__(self, name: str, ip: str = "127.0.0.1", port: int | None = None, **kwargs: Any) -> None:
        raise Unsupported(f"{type(self).__name__}({name!r}, ip={ip!r})", NO_FLOW_TABLES)


class NOX(RemoteController):
    """Not here."""


class Ryu(RemoteController):
    """Not here."""


DefaultControllers = (Controller, OVSController)


def findController(controllers: Any = DefaultControllers) -> type[Controller]:
    """The first controller there is."""
    found: type[Controller] = controllers[0]
    return found


def DefaultController(name: str, controllers: Any = DefaultControllers, **kwargs: Any) -> Controller:
    """A controller of the default kind."""
    return findController(controllers)(name, **kwargs)
