"""The interface of nodes, independent of their kind.

::

    with Supervisor() as supervisor, Nodes(plan, supervisor, visible=[folder]) as world:
        nodes = world.bring_up()                      # {name: NodeHandle}; all or none
        engine.add_tap_port("h1:eth0", nodes["h1"].taps["eth0"])
        process = nodes["h1"].start(["ping", "h2"], stdout=log.fileno(), on_exit=print)
        process.wait(10.0).code                       # seconds; TimeoutError
        nodes["h1"].exec(["ip", "addr"], timeout=5.0).stdout

A kind is a subclass of :class:`Kind` in a module of its own, listed in ``all_nodes.KINDS``. It
declares its properties and creates :class:`NodeHandle` objects from plans. Handles may be used from
any thread. TAP descriptors belong to the handle and are closed by ``Nodes.close``: stop the engine
first. Callbacks (``on_exit``, ``on_failure``) are called on a thread of this package and must
return quickly.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from airloom.errors import HostError, RunError
from airloom.measure.clock import ClockReading
from airloom.nodes.kernel_radios import KernelRadios
from airloom.nodes.network.unsent import Passed

if TYPE_CHECKING:
    from airloom import _engine
    from airloom.nodes.network.control_capture import ControlCapture
    from airloom.nodes.process.supervisor import Supervisor
    from airloom.nodes.virtual_time import Pacer
    from airloom.planning.plan import LinkPlan, NodePlan

State = Literal["up", "paused", "stopped", "failed", "closed"]
"""``stopped``: by :meth:`NodeHandle.stop` or ``kill``; ``failed``: ended unexpectedly."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Capabilities of a kind of node."""

    programs: bool
    """Whether unmodified programs of the host's file system can run in it."""
    own_kernel: bool
    """Whether it has its own kernel instead of the host's."""
    engine: bool
    """Whether its interfaces are ports of the engine."""
    cpu_share: bool
    """Whether its processor share can be limited (requires root)."""
    pause: bool
    """Whether it can be suspended and resumed."""
    virtual_time: bool
    """Whether its clock can be the engine's virtual clock."""


@dataclass(frozen=True, slots=True)
class Nature:
    """A node kind among virtualization techniques, and its trade-offs, in the papers' terms."""

    taxonomy: Literal[
        "full emulation",
        "native virtualization",
        "partial virtualization",
        "paravirtualization",
        "OS-level virtualization",
        "none",
    ]
    """Class in the ORBIT thesis; ``none`` is the host system itself."""
    backend: Literal["virtual routing", "hosted VMM", "unhosted VMM", "the host itself"]
    """Class of back end in the NET paper: the layer that partitions the machine."""
    own_files: bool
    """Whether its writes never change the host's files."""
    start: str
    """Time to its first program, and where that is measured."""
    memory: str
    """Memory of a node without its programs, which limits the number of nodes."""
    porting: str
    """Parts of an operating system that had to be ported to it."""
    isolation: str
    """How a node is isolated from the host and from other nodes."""
    transparency: str
    """Which code under test runs unmodified."""
    flexibility: str
    """Which execution environments can run side by side."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: an exit code, or the number of the signal that killed it.

    A process that ended with its node counts as killed, with times of 0. The times are processor
    time of the process and of the children that it waited for.
    """

    code: int | None = None
    signal: int | None = None
    user_ns: int = 0
    system_ns: int = 0

    @property
    def ok(self) -> bool:
        """Whether it exited with code 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Completed:
    """Result of a command that ran to its end, or was killed at its time limit."""

    stdout: str
    stderr: str
    exit: Exit
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processor time of all processes in a node; fields not provided by this machine are None."""

    user_ns: int
    system_ns: int
    throttled_ns: int | None = None
    """Time in which the node's CPU quota throttled it."""
    wait_ns: int | None = None
    """Time in which at least one task of the node was ready and had no processor."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the machine of a guest costs the host, beside processor time."""

    resident: int
    """Octets of memory of its largest process, as top(1) shows them (``VmRSS``)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to be started in a node.

    Streams are descriptors (still owned by the caller) or files opened for appending. None is
    /dev/null, and for ``stderr`` the same as ``stdout``.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the node's environment."""
    bare: bool = False
    """Whether ``env`` replaces the node's environment."""
    folder: str | None = None
    """Working folder in the node's file system, by default the node's /tmp."""
    stdin: int | None = None
    stdout: int | Path | None = None
    stderr: int | Path | None = None
    tty: bool = False
    """Whether ``stdin`` is a terminal that becomes the program's controlling terminal."""
    on_exit: Callable[[Exit], None] | None = None
    """Called with the program's exit, from any thread."""
    own: bool = False
    """Whether ``argv`` are words for the node's ``airloom-init`` itself, which has all rights in the node."""


class Process(ABC):
    """A program in a node, with all processes of its process group."""

    node: str
    argv: tuple[str, ...]
    pid: int
    """In the node's PID namespace."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> Exit:
        """Waits up to ``timeout`` seconds for its end. Raises :class:`TimeoutError`."""

    @abstractmethod
    def poll(self) -> Exit | None:
        """How it ended; None while it runs."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Sends a signal to its process group. No effect if it has ended."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """A monitor of a QEMU machine, for one of its network cards."""

    listener: int
    """Listening socket to which the machine connects."""
    card: str
    """Name of the card in the machine."""


class NodeHandle(ABC):
    """One node during a run."""

    name: str
    kind: str
    taps: Mapping[str, _engine.Tap]
    """Interface name: its TAP; empty for kinds without engine ports."""
    vhost_sockets: Mapping[str, int] = {}
    """Interface name: vhost-user socket on which the engine serves the guest's network device."""
    calendar_guest: int | None = None
    """Number of its guest in the calendar; None in wall time."""
    needs_checksums: ClassVar[bool] = False
    """True if it hands octets on without a network stack that would complete a checksum."""
    monitors: Mapping[str, Monitor] = {}
    """Interface name: the monitor that sets the link status of the machine's card."""

    @property
    def wlan_device(self) -> _engine.WlanDevice | None:
        """The wireless device of its guest; None without radios that are wireless devices."""
        return None

    @property
    def handling(self) -> _engine.Handling | None:
        """How the engine's devices treat its guest; None for the default."""
        return None

    @property
    @abstractmethod
    def state(self) -> State:
        """The node's current state."""

    @property
    @abstractmethod
    def notes(self) -> Sequence[str]:
        """Functions that this machine lacks for this node (such as limiting its processor share)."""

    @property
    @abstractmethod
    def failure(self) -> str | None:
        """Why it failed; None if it has not."""

    @abstractmethod
    def wake(self) -> None:
        """Starts to prepare the node for programs without waiting. The first program does it too."""

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
        own: bool = False,
    ) -> Process:
        """Starts a program; the keywords are the fields of :class:`Launch`."""
        return self.launch(Launch(argv, env or {}, bare, folder, stdin, stdout, stderr, tty, on_exit, own))

    @abstractmethod
    def launch(self, launch: Launch) -> Process:
        """Starts a program. Raises :class:`~airloom.errors.RunError` if it cannot be executed."""

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
        """Runs a command for at most ``timeout`` seconds and returns its output."""

    @abstractmethod
    def listens(self, protocol: Literal["tcp", "udp"], port: int) -> bool:
        """Whether a program in the node listens on a port."""

    def datagrams_refused(self) -> int:
        """UDP datagrams lost to full socket buffers since the node was switched on."""
        return 0

    def halted(self) -> frozenset[int]:
        """Groups of processes of which one is stopped by a signal or a debugger, in its PID namespace, if
        this can be seen.
        """
        return frozenset()

    def passed(self, *, idle: bool = True) -> Passed | None:
        """What its network layer has passed on, if it can tell.

        ``idle``: also if no program has run in it.
        """
        return None

    @abstractmethod
    def stop(self, grace: float = 2.0, *, ended: Callable[[], None] | None = None) -> None:
        """Switches the node off: programs get SIGTERM, after ``grace`` seconds SIGKILL, then its
        interfaces go down. ``ended`` is called after the programs have ended and before the
        interfaces go down, from this thread.
        """

    @abstractmethod
    def kill(self) -> None:
        """Switches the node off at once."""

    @abstractmethod
    def restart(self) -> None:
        """Switches a stopped or failed node on again, with the addresses and routes of the plan."""

    @abstractmethod
    def pause(self) -> None:
        """Suspends all programs. The network stack continues if it is the host kernel's, and stops
        if the node has its own kernel.
        """

    @abstractmethod
    def resume(self) -> None:
        """Resumes the programs."""

    @property
    def scheduling(self) -> str | None:
        """Processors and scheduling of its processes, read from the kernel; None without `cpus`."""
        return None

    @abstractmethod
    def cpu(self) -> Cpu:
        """Processor time since the node came up."""

    def switches(self) -> dict[int, int]:
        """Context switches of each running thread of the node, or of its machine, by thread; empty if not
        known.
        """
        return {}

    def within(self) -> Cpu | None:
        """Processor time reported by the node's own kernel; None if it uses the host's kernel."""
        return None

    def footprint(self) -> Footprint | None:
        """Memory of its machine; None if it has none of its own."""
        return None

    def clock(self) -> ClockReading:
        """Offset of the node's clock from the host's, read now."""
        return ClockReading(time.monotonic_ns())

    @abstractmethod
    def counters(self) -> dict[str, dict[str, int]]:
        """Interface name: rx/tx packets, octets, errors, dropped, from the node's kernel."""


@dataclass(frozen=True, slots=True)
class Site:
    """Settings that all nodes of a run share."""

    supervisor: Supervisor
    visible: tuple[Path, ...] = ()
    """Host folders and files visible in nodes, even below /tmp, /run, /var/tmp or /dev/shm."""
    own: tuple[Path, ...] = ()
    """Airloom's folders if below one of these: visible in nodes with the host's file system."""
    on_failure: Callable[[NodeHandle], None] | None = None
    """Called when a node's first process has ended unexpectedly."""
    links: tuple[LinkPlan, ...] = ()
    """All links of the plan."""
    namespace_of: Callable[[str], int | None] = lambda name: None
    """Network namespace of a node by name, as a descriptor; None while the node is not up."""
    weighs: Callable[[], bool] = lambda: False
    """Whether control groups hold the nodes' shares (`cpus`)."""
    log_path: Callable[[str, str], Path] | None = None
    """Maps a node and the type of log to a log file of the run; None keeps logs in memory."""
    control: ControlCapture | None = None
    """Captures the control channels of switches; None without captures."""
    radios: KernelRadios = field(default_factory=KernelRadios)
    """The wireless devices of nodes without a kernel of their own."""
    pacer: Pacer | None = None
    """Lets virtual time pass; None in wall time."""
    merged: dict[int, _engine.IoTlb] = field(default_factory=dict)
    """Caches of translations that several guests share, by their number of entries."""


class Kind(ABC):
    """Creates nodes of one kind."""

    name: ClassVar[str]
    properties: ClassVar[Properties]
    nature: ClassVar[Nature]

    def __init__(self, site: Site) -> None:
        self.site = site
        self.notes: list[str] = []
        """Parts of the plan that this machine or this kind does not support."""

    @classmethod
    def lacks(cls) -> list[HostError]:
        """Missing requirements of this kind, beside those of all nodes; found by testing."""
        return []

    @classmethod
    def found(cls) -> str:
        """The program or kernel that this kind uses on this machine, if nothing is missing."""
        return "with this kernel"

    @abstractmethod
    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        """Creates nodes in addition to existing ones. After an error none of the new nodes remain."""

    @abstractmethod
    def settle(self) -> None:
        """Waits until all its nodes can run programs and are reachable. Needs the engine's ports."""

    def change(self, plan: NodePlan) -> None:
        """Gives one of its running nodes the interfaces, addresses and routes of a plan.

        Its programs go on. ``taps`` of its handle are those of the plan afterwards.
        """
        raise RunError("node.change", f"node {plan.name} of kind {self.name} does not change while it runs")

    @abstractmethod
    def drop(self, name: str) -> None:
        """Ends one of its nodes."""

    @abstractmethod
    def close(self) -> list[Exception]:
        """Ends all its nodes. Returns the errors that occurred. A second call has no effect."""
