"""What a node is to the rest of Airloom, whatever it is made of.

::

    with Keeper() as keeper, Nodes(plan, keeper, visible=[folder]) as world:
        nodes = world.bring_up()                      # {name: NodeHandle}; all or none
        engine.add_tap_port("h1:eth0", nodes["h1"].taps["eth0"])
        process = nodes["h1"].start(["ping", "h2"], stdout=log.fileno(), on_exit=print)
        process.wait(10.0).code                       # seconds; TimeoutError
        nodes["h1"].exec(["ip", "addr"], timeout=5.0).stdout

A kind is one class beside :class:`Kind` in a module of its own, named in ``all_nodes.KINDS``: it says
what it can do, and makes :class:`NodeHandle` objects from plans. Handles may be used from any
thread. TAP descriptors belong to the handle and are closed by ``Nodes.close``: stop the engine
before. Callbacks (``on_exit``, ``on_failure``) come from a thread of this package and must return
soon.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from airloom.errors import HostError
from airloom.measure.clock import ClockReading

if TYPE_CHECKING:
    from airloom.nodes.process.supervisor import Keeper
    from airloom.planning.plan import LinkPlan, NodePlan

State = Literal["up", "paused", "stopped", "failed", "closed"]
"""``stopped``: by :meth:`NodeHandle.stop` or ``kill``; ``failed``: its first process died unasked."""


@dataclass(frozen=True, slots=True)
class Properties:
    """What a kind of node can do."""

    programs: bool
    """Unmodified programs of the host's file system can be started in it."""
    own_kernel: bool
    """It has a kernel of its own, not the host's."""
    engine: bool
    """Its interfaces are ports of the engine."""
    cpu_share: bool
    """Its share of a processor can be limited (with root)."""
    pause: bool
    """It can be halted and resumed."""
    virtual_time: bool
    """Its clock can be the engine's."""


@dataclass(frozen=True, slots=True)
class Nature:
    """What a kind of node is among the ways to virtualize, and its known trade, in the papers' words."""

    taxonomy: Literal[
        "full emulation",
        "native virtualization",
        "partial virtualization",
        "paravirtualization",
        "OS-level virtualization",
        "none",
    ]
    """ORBIT's thesis; ``none`` is the hosting system itself."""
    backend: Literal["virtual routing", "hosted VMM", "unhosted VMM", "the host itself"]
    """NET's class of back end: who divides the machine."""
    own_files: bool
    """What it writes never is the host's."""
    start: str
    """Time to its first program, and where that is measured."""
    memory: str
    """Memory of a node beside its programs, and so how many there can be."""
    porting: str
    """What of an operating system had to be made fit for it."""
    isolation: str
    """What a node cannot do to the host and to the others."""
    transparency: str
    """Which code under test runs unmodified."""
    flexibility: str
    """Which execution environments there can be side by side."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: an exit code, or the number of the signal that ended it.

    A process that went away with its node counts as killed, with times of 0. The times are
    processor time of the process and of the children that it waited for.
    """

    code: int | None = None
    signal: int | None = None
    user_ns: int = 0
    system_ns: int = 0

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that was run to its end, or to its time limit, and then was killed."""

    stdout: str
    stderr: str
    exit: Exit
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processor time of all that ran in a node; None where this machine does not count it."""

    user_ns: int
    system_ns: int
    throttled_ns: int | None = None
    """Time in which the node was held back by its own share."""
    wait_ns: int | None = None
    """Time in which something in the node was ready to run and no processor was free."""


class Process(ABC):
    """A program in a node, with all that it starts in its process group."""

    node: str
    argv: tuple[str, ...]
    pid: int
    """In the node's own numbering."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> Exit:
        """Waits for its end, in seconds; :class:`TimeoutError`."""

    @abstractmethod
    def poll(self) -> Exit | None:
        """How it ended; None while it runs."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Sends its process group a signal; nothing happens if it has ended."""


class NodeHandle(ABC):
    """One node while the run lasts."""

    name: str
    kind: str
    taps: Mapping[str, int]
    """Interface name: descriptor of the TAP's far end; empty where the kind has no engine ports."""
    doors: Mapping[str, int] = {}
    """Interface name: listening socket at which a guest asks the engine for its network device."""

    @property
    @abstractmethod
    def state(self) -> State:
        """What has become of it."""

    @property
    @abstractmethod
    def notes(self) -> Sequence[str]:
        """What this machine does not do for it (such as holding its processor share)."""

    @property
    @abstractmethod
    def failure(self) -> str | None:
        """Why it failed; None while it has not."""

    @abstractmethod
    def wake(self) -> None:
        """Gets ready to run programs, without waiting for it; the first program would do so."""

    @abstractmethod
    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        bare: bool = False,
        folder: str | None = None,
        stdin: int | None = None,
        stdout: int | Path | None = None,
        stderr: int | Path | None = None,
        tty: bool = False,
        on_exit: Callable[[Exit], None] | None = None,
    ) -> Process:
        """Starts a program; raises :class:`~airloom.errors.RunError` if it cannot be executed.

        ``env`` is added to the node's own environment; with ``bare`` it is all there is. ``folder``
        is the working folder as the node sees it, its own /tmp by default. Streams are descriptors
        (which stay the caller's) or files that are appended to; None is /dev/null, and for
        ``stderr`` the same as ``stdout``. With ``tty`` the descriptor ``stdin`` is a terminal that
        becomes the program's own.
        """

    @abstractmethod
    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> Completed:
        """Runs a command to its end, at most ``timeout`` seconds, and gives its output."""

    @abstractmethod
    def listens(self, protocol: Literal["tcp", "udp"], port: int) -> bool:
        """Whether some program in the node listens on a port."""

    def datagrams_refused(self) -> int:
        """UDP datagrams that came to the node since it was switched on and found no room in their socket."""
        return 0

    @abstractmethod
    def stop(self, grace: float = 2.0, *, ended: Callable[[], None] | None = None) -> None:
        """Switches the node off: programs get SIGTERM, after ``grace`` seconds SIGKILL; its
        interfaces go down. ``ended`` is called between the two, from this thread.
        """

    @abstractmethod
    def kill(self) -> None:
        """Switches the node off at once."""

    @abstractmethod
    def restart(self) -> None:
        """Switches a stopped or failed node on again, with the addresses and routes of the plan."""

    @abstractmethod
    def pause(self) -> None:
        """Halts all programs; the network stack goes on where it is the host's, and halts where
        it is the node's own.
        """

    @abstractmethod
    def resume(self) -> None:
        """Lets the programs go on."""

    @abstractmethod
    def cpu(self) -> Cpu:
        """Processor time since the node came up."""

    def within(self) -> Cpu | None:
        """Processor time as the node's own kernel counts it; None where the host's kernel is its kernel."""
        return None

    def clock(self) -> ClockReading:
        """How its clock stands to the host's now."""
        return ClockReading(time.monotonic_ns())

    @abstractmethod
    def counters(self) -> dict[str, dict[str, int]]:
        """Interface name: rx/tx packets, octets, errors, dropped, as the node's kernel counts."""


@dataclass(frozen=True, slots=True)
class Site:
    """What all nodes of a run share."""

    keeper: Keeper
    visible: tuple[Path, ...] = ()
    """Folders and files of the host that nodes see even below /tmp, /run, /var/tmp or /dev/shm."""
    own: tuple[Path, ...] = ()
    """Where Airloom itself is, if it is below one of these: seen by nodes that have the host's files."""
    on_failure: Callable[[NodeHandle], None] | None = None
    """Called when a node's first process has died unasked."""
    links: tuple[LinkPlan, ...] = ()
    """All links of the plan."""
    namespace_of: Callable[[str], int | None] = lambda name: None
    """The network namespace of a node by its name, as a descriptor; None while it is not up."""
    log_path: Callable[[str, str], Path] | None = None
    """Node, what it says: the file of the run that keeps it; None keeps it in memory."""


class Kind(ABC):
    """A way to make nodes."""

    name: ClassVar[str]
    properties: ClassVar[Properties]
    nature: ClassVar[Nature]

    def __init__(self, site: Site) -> None:
        self.site = site
        self.notes: list[str] = []
        """What this machine, or this kind, does not do of what the plan says."""

    @classmethod
    def lacks(cls) -> list[HostError]:
        """What this machine lacks for nodes of this kind, beside what all nodes need; found by trying."""
        return []

    @classmethod
    def found(cls) -> str:
        """What it is made with on this machine, where nothing is lacking."""
        return "with this kernel"

    @abstractmethod
    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        """Makes nodes, beside those that it made before; after an error nothing is left of them."""

    @abstractmethod
    def settle(self) -> None:
        """Waits until all its nodes can run programs and are reachable; the engine has their ports by now."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Ends one of its nodes."""

    @abstractmethod
    def close(self) -> list[Exception]:
        """Ends all of them in one act; gives what went wrong; a second call does nothing."""
