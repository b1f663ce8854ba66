"""The extension module: bindings to the Rust crates. Private; users import ``airloom``."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NotRequired, TypedDict

class EngineError(Exception):
    """Raised with (code, message)."""

    setting: str | None
    """Path of the link or switch setting that is out of its range, such as
    ``queue.codel.target_ns``; None for other errors.
    """
    allowed: str | None
    """The range of that setting, as text."""

class Tap:
    """The engine's end of a TAP of a namespace, which closes it."""

    def fileno(self) -> int:
        """Its descriptor; raises EngineError once the namespace and the engine have closed it."""

class Namespace:
    """An unnamed network namespace, held by a file descriptor, and its TAPs."""

    @staticmethod
    def of_machine(name: str) -> Namespace:
        """The network namespace of the calling thread; :meth:`set_up` does not change it."""
    @property
    def name(self) -> str: ...
    def fileno(self) -> int:
        """The namespace's descriptor, an open /proc/PID/ns/net; opened by the first call."""
    def taps(self) -> dict[str, Tap]:
        """Interface name: its TAP; open until close()."""
    def counters(self) -> dict[str, dict[str, int]]:
        """Interface name: rx/tx packets, octets, dropped, errors (rtnetlink)."""
    def set_up(self, up: bool) -> None:
        """Takes all interfaces down, or up again with their addresses and routes."""
    def change(self, node: dict[str, Any]) -> None:
        """Gives the node the network stack of another description (see :func:`bring_up`).

        What both have alike stays. After an error the stack may be between both.
        """
    def forget_neighbours(self) -> None:
        """Removes the neighbours that the node has learned."""
    def shape(self, interface: str, rate: int, burst: int, packets: int, overhead: int) -> None:
        """Shapes outgoing traffic in the kernel (HTB): bit/s, octets, packets, octets per frame."""
    def close(self) -> None:
        """Releases the namespace. A second call has no effect."""

def bring_up(
    nodes: list[dict[str, Any]],
    wires: list[tuple[str, str, str, str]] = ...,
    radios: WlanDevice | None = None,
) -> list[Namespace]:
    """Creates the namespaces of many nodes with interfaces, addresses and routes; all or none.

    Keys of a node: name, interfaces [{name, mac, mtu, addresses, tap, radio}], routes [{to, via,
    interface}], neighbours [{address, mac, interface}], forwarding, ipv6, sysctl. A wire (node,
    interface, node, interface) joins two interfaces that have no TAP by a veth pair. An interface
    with ``radio`` and no TAP is the radio of this number in the kernel, one of ``radios``.
    """

def has_radios() -> bool:
    """Whether this machine's kernel has simulated radios (``mac80211_hwsim``)."""

def counters_of(namespaces: list[Namespace]) -> list[dict[str, dict[str, int]]]:
    """The counters of many namespaces, read by one thread."""

def tear_down(namespaces: list[Namespace]) -> None:
    """Closes all of them in one batch; closed ones are skipped."""

def error_codes() -> list[str]:
    """All codes of EngineError, sorted.

    Settings out of their range additionally use their path as code (link.queue.red.min).
    """

def check_link(name: str, settings: dict[str, Any]) -> None:
    """Raises an error for settings of one direction of a link that are out of their range.

    The error is EngineError(code, message) with ``setting`` and ``allowed``; the code is the path
    of the setting, such as ``link.queue.codel.target``.
    """

def check_switch(name: str, settings: dict[str, Any] | str) -> None:
    """Raises an error like :func:`check_link` for settings of a switch that are out of range."""

def check_medium(name: str, settings: dict[str, Any]) -> None:
    """Raises EngineError(code, message) for invalid settings of a medium."""

def check_radio(name: str, settings: dict[str, Any]) -> None:
    """Raises EngineError for invalid settings of a radio."""

def check_motion(name: str, settings: dict[str, Any]) -> None:
    """Raises EngineError for an invalid motion."""

class LiveCapture:
    """A capture of an engine that somebody reads meanwhile from a descriptor: a pipe, or a file.

    Neither the engine nor this object waits for the reader: copies of frames that it is too slow for
    are dropped and counted (``skipped``). The descriptor is duplicated.
    """

    def __init__(
        self,
        engine: Engine,
        descriptor: int,
        ports: list[str] | None = None,
        *,
        snap: int | None = None,
        filters: dict[int, list[tuple[int, int, int, int]]] | None = None,
    ) -> None:
        """Begins now, in any state but stopped. Ports, media and ``snap`` as for ``Engine.capture``.

        ``filters``: for each link type, a program of the classic Berkeley Packet Filter, as (code,
        jt, jf, k). Frames of other link types do not pass.
        """
    def push(self) -> CaptureCounts:
        """Passes on what the reader has not got yet, but for frames of the last tenth of a second.

        ``failed``: the reader is gone, or the file cannot be written to any more.
        """
    def end(self) -> CaptureCounts:
        """Ends it with the counters of each interface; a reader has 2 s for what it has not read.

        A second call, and one after the engine's ``stop()``, which ends it too, return the counts.
        """

class VirtualTime:
    """The calendar of an engine in virtual time, which grants time to guests."""

    def __init__(self, engine: Engine, plain: bool = ..., patience: float = ...) -> None:
        """``plain``: guests take no step without a message. ``patience``: seconds of processor time that a
        guest may use for one instant, and of wall time for one that does not run."""
    def add_guest(self, name: str, time: int, console: int, wire: int) -> int:
        """Adds a guest by its listening sockets and the controller's end of its console."""
    def take_turns(
        self, guests: list[int], quantum: int, phase: int, spans: list[tuple[int, int | None]]
    ) -> None:
        """Has guests (their numbers) act only in their own slots of ``quantum`` ns, one after the other.

        ``spans``: from when to when, in ns of the engine; None: from then on. The first slot begins
        ``phase`` ns after the begin of each.
        """
    def pause(self, guest: int, paused: bool) -> None:
        """Pauses a guest (its number) or resumes it, at the present instant."""
    def add_processor(
        self,
        name: str,
        guests: list[int],
        weights: list[int],
        *,
        interrupt: int,
        frame: int,
        copy_rate: int | None,
        context_switch: int,
        scheduler: Literal["round-robin", "fair", "priority"],
        quantum: int,
    ) -> None:
        """Has guests (their numbers) work on one processor from time zero on. Each has one at most.

        Prices and ``quantum`` in ns, ``copy_rate`` in bit/s: see ``ports/src/virtual_time/processors.rs``.
        """
    def worked(self) -> list[dict[str, Any]]:
        """What each guest of a processor has worked: ``processor``, ``guest``, ``nanoseconds``,
        ``interrupts``, ``context_switches``, ``frames``."""
    def begin(self) -> int:
        """Sets the engine's time zero to the calendar's present time, which it returns."""
    def run(
        self, until: int, most: float
    ) -> tuple[
        Literal["reached", "spoke", "sample", "frames", "ended", "later"],
        list[int],
        list[tuple[int, str, bool, int]],
    ]:
        """Lets time pass up to ``until`` (ns of the calendar), for at most ``most`` wall seconds.

        Returns why the calendar stands still: the time is reached, guests (their numbers) have
        written to their consoles, samples (their numbers) are due, frames have passed ports (engine
        time in ns, the port, whether its node has sent it, octets), a guest has ended, or the wall time
        is over.
        """
    def stop_at_frames(self, stops: bool) -> None:
        """Sets whether time stands still at each frame that enters or is delivered."""
    def every(self, period: int, skips: bool) -> int:
        """Has time stand still each ``period`` ns for a sample; returns its number.

        ``skips``: not if the engine has done nothing since the sample before.
        """
    def now(self) -> int:
        """The calendar's time in ns."""
    def gone(self) -> list[str]:
        """Names of the guests that have ended."""
    def counts(self) -> dict[str, int]:
        """Its counters: runs, messages, kicks, calls, logged, listed, pauses."""
    def spun(self) -> list[dict[str, Any]]:
        """Programs that were charged time: guest, program, calls, nanoseconds."""

def realtime_offset() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC in ns at present: the closest of some readings of both."""

def overlap(sender: int, receiver: int) -> float:
    """Share of the power sent on a channel (its centre in MHz) that a receiver on another one gets."""

def read_movements(
    format: str, text: str
) -> list[tuple[int, list[tuple[int, float, float, float]], list[tuple[int, bool]]]]:
    """Parses a movement trace: ns-2, bonnmotion or bonnmotion-3d.

    Returns the positions of every node of the trace, (ns, x, y, z in metres), and when its radios turn
    on or off.
    """

class RadioCounts(TypedDict):
    """Frames of a radio."""

    sent: int
    expected: int
    unanswered: int
    requests: int
    requests_unanswered: int
    given_up: int
    refused: int
    received: int
    duplicates: int
    broken: int

class RadioAirtime(TypedDict):
    """Airtime of a radio by use, in ns."""

    idle: int
    transmitting: int
    receiving: int
    collided: int
    busy: int

class PeerState(TypedDict):
    """Exchange of a radio with another one."""

    attempts: int
    unanswered: int
    rate: int
    """bit/s of the last transmission."""
    received: int
    signal_dbm: float | None
    """Of the last frame received."""

class UseState(TypedDict):
    """Use of a channel by one radio."""

    channel: int
    mhz: int
    sent: int
    """Sum of the lengths of its frames in ns."""
    frames: int

class RadioState(TypedDict):
    """A radio at an instant."""

    port: str
    medium: str
    on: bool
    wanted_on: bool
    """What its node or an event last set; a radio that its slice does not have is off all the same."""
    position: tuple[float, float, float]
    """x, y, z in metres."""
    access_point: str | None
    """Port of its access point, if it is an associated station."""
    mhz: int
    queued: int
    """Frames."""
    settings: dict[str, Any]
    counts: RadioCounts
    airtime: RadioAirtime
    dozing: int
    """Time in ns in which the station of its node's own stack dozed."""
    foreign: dict[int, int]
    """Frames of its node's own stack at frequencies where it has no channel, by MHz."""
    peers: dict[str, PeerState]
    """By port."""
    slice: str | None
    cut: bool
    """Turned off because of violations of its slice's grant."""
    uses: list[UseState]
    """Channels that it has transmitted on, if it belongs to a slice."""

class ViolationState(TypedDict):
    """Transmissions of one radio that violated its grant in the same way."""

    port: str
    slice: str
    what: str
    """``channel``, ``power``, ``address``, ``ssid`` or ``bssid``."""
    until: int
    """Time of the last one in ns; that of the first is under ``from``."""
    frames: int
    amount: float
    """MHz from the nearest channel of the grant, dB above its power; 0 otherwise."""
    channel: int
    mhz: int
    concerned: list[str]
    """Other slices on a channel that overlaps, or the owner of the name."""

class ViolationsState(TypedDict):
    """Violations of grants."""

    found: list[ViolationState]
    unrecorded: int
    """Further violating transmissions: a slice has 1,024 records."""
    unrecorded_by_slice: dict[str, int]
    """The same of each slice that has any."""

class ChannelState(TypedDict):
    """Use of a channel; times in ns."""

    medium: str
    channel: int
    mhz: int
    busy: int
    overlapped: int
    sent: int
    frames: int

class CardState(TypedDict):
    """A card; times in ns."""

    medium: str
    card: str
    channel: int | None
    """The channel that it serves; None during a switch."""
    switches: int
    switching: int
    visits: int
    """Visits to channels for scans."""
    collisions: int
    """Internal collisions: a virtual MAC gave way to another one."""
    scans_asked: int
    """Requests for the scan of a channel."""
    scans_merged: int
    """Of these, those answered by the scan of another virtual MAC at the same time."""
    scans_cached: int
    """Of these, those answered from the cache."""
    scan_results: int
    """Results passed on for requests that were not sent."""
    scan_age: int
    """Sum of their ages."""
    scan_oldest: int
    """Greatest of their ages."""
    asleep: int
    """Time in which all virtual MACs dozed."""

class FoundRadio(TypedDict):
    """A radio that a scan found."""

    port: str
    ssid: str
    access_point: bool
    """False for a member of an IBSS."""
    channel: int
    mhz: int
    signal_dbm: float
    age: int
    """Time in ns since it was received, if a card's cache answered."""

class ScanState(TypedDict):
    """The number of a radio's scans, and the radios found by the last one."""

    times: int
    found: list[FoundRadio]

class LatenessHistogram(TypedDict):
    """Distribution of a lateness in ns."""

    count: int
    mean: int
    p50: int
    p99: int
    p999: int
    max: int
    worst: list[tuple[int, int, str]]
    """Time, value, port."""
    buckets: list[tuple[int, int]]
    """Upper bound, count."""

class SecondStatus(TypedDict):
    """The engine's loop in one second; times in ns."""

    start: int
    end: int
    busy: int
    spun: int
    cpu: int
    waited: int
    stall: int
    backlog: int
    taken_in: int
    turns: int
    sleeps: int

class CaptureCounts(TypedDict):
    """Frames of a capture."""

    written: int
    skipped: int
    """Frames that are missing, since the file or the reader was too slow."""
    octets: int
    """Octets of the files without the header that begins each, including what waits."""
    failed: bool

class LatenessState(TypedDict):
    """How far the engine was behind the clock."""

    delivery: LatenessHistogram
    """Of delivered frames."""
    ingress: LatenessHistogram
    """Time that frames may have waited in their ports: an upper bound."""
    wakes: LatenessHistogram
    """Of the loop's wake-ups."""
    status: list[SecondStatus]
    preferred: bool
    """Whether the engine's thread has priority over others when processors are short."""
    capture: CaptureCounts | None

class GuestState(TypedDict):
    """A guest's device. Frames as in the guest's queues: a super-frame counts as one."""

    standing: str
    """awaited or stopped (no driver uses it: frames to it drop as ``not-up``), up, or gone
    (``node-gone``)."""
    cause: str | None
    """Reason of the end of the last connection."""
    connections: int
    features: int
    """Virtio features of the last connection, as bits."""
    taken: int
    taken_octets: int
    put: int
    put_octets: int
    waited: int
    """Frames for which the guest had no buffer ready at first."""
    full: int
    """Frames dropped because too many were waiting (``guest-ring-full``)."""
    kicks: int
    """Notifications from the guest."""
    calls: int
    """Notifications to the guest."""
    again: int
    """Repeated notifications to a guest that seemed to sleep."""
    spared: int
    """Notifications that the guest had suppressed."""
    longest_hold_ns: int
    """Longest time from the return of a buffer to the decision to notify the guest of it."""
    mapped: int
    """Mappings of buffers or pages that a translation of addresses has made."""
    cache_hits: int
    cache_misses: int
    """Pages that were, and were not, in the cache of the translation."""
    bounced_octets: int
    """Octets that were copied once more."""
    unserved: list[str]
    """Radios of the guest that have sent frames and have no port."""

class OctetTotals(TypedDict):
    """Octets of the whole engine."""

    offered: int
    copies: int
    delivered: int
    in_flight: int

class Unsent(TypedDict):
    """Frames that a node's kernel dropped because the interface had no carrier."""

    frames: int
    """In the times that are over."""
    since: int | None
    """Without carrier at present: the interface's transmit drops when it was lost."""

class PortLedger(TypedDict):
    """Frames and octets of a port."""

    offered: int
    offered_octets: int
    delivered: int
    delivered_octets: int
    dropped: dict[str, int]
    host_lost: dict[str, int]
    missed: int
    unsent: Unsent | None
    """Not in ``offered``. None: the carrier was lost, and the port cannot count them."""
    gone: bool
    tunnel: NotRequired[dict[str, Any]]
    """Of a tunnel: packets received and refused, by reason."""

class WireLedger(TypedDict):
    """Frames and octets of one direction of a link."""

    entered: int
    entered_octets: int
    left: int
    left_octets: int
    duplicated: int
    duplicated_octets: int
    corrupted: int
    corrupted_octets: int
    reordered: int
    reordered_octets: int
    held: int
    """Frames whose jitter would have let them overtake others."""
    held_octets: int
    marked: int
    marked_octets: int
    late: int
    """Segments that entered later than they came, because others had entered meanwhile."""
    late_octets: int
    queue: int
    queue_octets: int
    queue_highest: int
    queue_highest_octets: int
    dropped: dict[str, int]
    busy_ns: int
    """Time for which frames occupied it, with their overhead; 0 without a rate."""
    held_ns: int
    """Sum of the times by which those frames arrived later than drawn."""
    paused_ns: int
    late_most_ns: int

class SwitchLedger(TypedDict):
    """Frames and octets of a switch."""

    entered: int
    entered_octets: int
    copies: int
    copies_octets: int
    dropped: dict[str, int]

class Ledger(TypedDict):
    """The fate of every frame; ``dropped`` and ``host_lost`` are frames by reason."""

    offered: int
    copies: int
    delivered: int
    in_flight: int
    octets: OctetTotals
    dropped: dict[str, int]
    host_lost: dict[str, int]
    missed: int
    """Frames that real interfaces lost before the engine read them (a TAP counts them itself)."""
    ports: dict[str, PortLedger]
    links: dict[str, dict[str, WireLedger]]
    """By name and direction (``forward``, ``backward``)."""
    switches: dict[str, SwitchLedger]

class IoTlb:
    """A cache of mapped pages of guests' memory: ``entries`` is a multiple of 4 up to 1024."""

    def __init__(self, entries: int) -> None: ...

class Handling:
    """How the devices of a machine treat their guest.

    ``notifications``: ``off``, ``count``, ``time`` or ``adaptive``; ``frames``: buffers of one
    notification; ``time``: longest wait of a buffer for it in ns. ``translation``: ``direct``,
    ``bounce``, ``strict``, or ``cached`` and ``merged`` with the cache ``tlb``.
    ``in_band``: notifications are messages, for virtual time.
    """

    def __init__(
        self,
        notifications: str = "off",
        frames: int = 1,
        time: int = 0,
        translation: str = "direct",
        tlb: IoTlb | None = None,
        in_band: bool = False,
    ) -> None: ...

class WlanDevice:
    """A kernel's wireless device, which all its radios share: a guest's (virtio id 29), or of_kernel().

    ``listener``: a listening Unix stream socket, which is duplicated; the guest gets its path
    (``virtio_uml.device=PATH:29``). With ``stream``, ``airloom-init`` in the guest passes on the
    messages of the kernel's generic netlink family instead (``-chardev socket,path=PATH``), without
    ``handling``.
    """

    def __init__(self, listener: int, stream: bool = False, handling: Handling | None = None) -> None: ...
    @staticmethod
    def of_kernel(count: int) -> WlanDevice:
        """Creates ``count`` radios of this machine's kernel, in a network namespace of their own.

        They end with the device. :func:`bring_up` moves them into nodes.
        """
    def numbers(self) -> list[int]:
        """The kernel's number of each of its radios; empty for a guest."""

class Engine:
    """The engine: built, then stepped or driven by the wall clock on its own thread, then read.

    Times are nanoseconds of engine time, which is zero at the start. Settings use the engine's own
    keys; omitted ones have their default.
    """

    def __init__(self, seed: int) -> None: ...
    def add_tap_port(
        self,
        name: str,
        tap: Tap | int,
        transit: bool = False,
        complete_checksums: bool = False,
        offloads: tuple[bool, bool] = (True, True),
    ) -> None:
        """Adds a TAP of a namespace, whose descriptor is shared, or a descriptor, which is
        duplicated; possible while the engine runs. ``complete_checksums``: the engine computes the
        transport checksums of the frames that it hands over, except of super-frames. ``offloads``: of
        sent and of received frames; without them no super-frames and no incomplete checksums pass.
        """
    def add_vhost_port(
        self,
        name: str,
        listener: int,
        mac: str,
        mtu: int,
        transit: bool = False,
        handling: Handling | None = None,
        offloads: tuple[bool, bool] = (True, True),
        guest: int | None = None,
    ) -> None:
        """Adds a guest's network device (virtio-net), served over vhost-user to its client.

        ``listener``: a listening Unix stream socket, which is duplicated; the guest gets its path
        (``virtio_uml.device=PATH:1``, or ``-chardev socket,path=PATH``). The guest reads ``mac``
        and ``mtu`` (octets) from the device. The engine's loop serves it once the engine runs,
        meet_guests() before. A restarted guest connects again; one connection at a time. ``guest``: in
        virtual time, the number of the guest (``VirtualTime.add_guest``).
        """
    def add_wlan_port(
        self,
        name: str,
        device: WlanDevice,
        radio: int,
        phy: str,
        transit: bool = False,
        guest: int | None = None,
    ) -> None:
        """Adds a radio of a wireless device.

        ``radio``: its number in the guest's kernel, or its place in :meth:`WlanDevice.numbers`, 0 to
        99; number 0 must be added. ``phy``: its physical layer, which must be that of the radio
        attached to the port, with the membership ``wlan``.
        """
    def meet_guests(self) -> bool:
        """Before the start: serves the guests' handshakes, without which their kernels do not boot.

        Returns False if there was nothing to do.
        """
    def set_monitor(self, name: str, listener: int, card: str) -> None:
        """Sets the link status of the QEMU card behind a port by QMP; possible while the engine runs.

        ``listener``: a listening Unix stream socket, which is duplicated; the machine is its client
        (``-chardev socket,path=PATH`` and ``-mon chardev=...,mode=control``). ``card``: the name of
        the card's ``-netdev``, letters and digits.
        """
    def attach_vhost(
        self,
        name: str,
        listener: int,
        mac: str,
        mtu: int,
        handling: Handling | None = None,
        offloads: tuple[bool, bool] = (True, True),
    ) -> None:
        """Replaces the device behind a port with another guest's."""
    def attach_tap(
        self,
        name: str,
        tap: Tap | int,
        complete_checksums: bool = False,
        offloads: tuple[bool, bool] = (True, True),
    ) -> None:
        """Replaces the TAP behind a port: of a node that was created anew, or the same with other
        offloads.
        """
    def detach(self, name: str) -> None:
        """Removes the device behind a port, and waits until the engine has closed it. Until then,
        or stop(), a TAP keeps its namespace alive.
        """
    def add_memory_port(self, name: str, transit: bool = False) -> None: ...
    def add_interface_port(self, name: str, interface: str) -> None:
        """Adds a real interface of this thread's network namespace, promiscuous until the engine
        ends.
        """
    def add_tunnel_port(
        self, name: str, receive: int, send: int, remote: str, encapsulation: dict[str, Any]
    ) -> None:
        """Adds a tunnel to ``remote``. Its sockets are duplicated; ``send`` is connected.

        The keys of ``encapsulation`` are those of ports/src/tunnel/encapsulation.rs: ``{"gretap":
        {"key": 7}}``, ``{"vxlan": {"vni": 42}}``.
        """
    def add_switch(self, name: str, settings: dict[str, Any] | str) -> None: ...
    def connect(self, name: str, a: str, b: str, forward: dict[str, Any], backward: dict[str, Any]) -> None:
        """Connects two ports or switches by name; ``forward`` applies from a to b.

        A link that was taken out gets these ends and settings, is up, and goes on with its account.
        """
    def disconnect(self, name: str) -> None:
        """Takes a link out: its frames are dropped as ``link-down``, and its ends are free.

        Not at switches with shortest paths.
        """
    def set_transit(self, port: str, transit: bool) -> None:
        """Tells whether the node of a port forwards frames from now on."""
    def set_switch(self, name: str, settings: dict[str, Any] | str) -> None:
        """Applies new settings to a switch or hub now; a switch keeps the addresses that it knows."""
    def move_to_port(self, link: str, end: str, port: str) -> None:
        """Moves the end ``a`` or ``b`` of a link from a learning switch or hub to a port without a link."""
    def set_vlan(self, link: str, end: str, settings: dict[str, Any]) -> None:
        """Sets the VLANs of a link at the switch at its end ``a`` or ``b``.

        ``{"access": {"vlan": 10}}``, ``{"trunk": {"allowed": [10, 20], "native": 1}}``.
        """
    def capture(
        self,
        path: str | PathLike[str],
        ports: list[str] | None = None,
        *,
        apart: bool = False,
        snap: int | None = None,
    ) -> None:
        """Captures all or some ports and media as pcapng (before start); stop() completes it.

        ``apart``: ``path`` is a folder with a file for each port. ``snap``: octets to keep of a frame.
        """
    def schedule(self, policy: int, priority: int, nice: int) -> None:
        """Fixes the scheduling of the loop's thread, by the kernel's numbers, before the start."""
    def poll_idle(self, processors: Sequence[int]) -> None:
        """Chooses, before the start, the processors that poll while they are idle."""
    def idle_polled(self) -> int:
        """Processor time in ns that they have polled; 0 unless the loop runs."""
    def start(self) -> int:
        """Starts the wall clock; returns CLOCK_MONOTONIC in ns at engine time zero."""
    def stop(self) -> None:
        """Ends the loop and the capture; raises the error of either. The ledger stays readable."""
    def now(self) -> int: ...
    def set_link(self, name: str, direction: str, settings: dict[str, Any]) -> None:
        """Replaces a link's settings now; direction: forward, backward or both."""
    def set_link_up(self, name: str, up: bool) -> None:
        """Sets both directions up or down now."""
    def schedule_link(
        self, at: int, name: str, direction: str, settings: dict[str, Any] | None, up: bool | None
    ) -> None:
        """Schedules a change at an exact engine time; the engine applies it."""
    def add_medium(self, name: str, settings: dict[str, Any]) -> None:
        """Adds a radio medium; settings are those of engine/src/medium/laws.rs."""
    def add_radio(
        self, medium: str, port: str, settings: dict[str, Any], motion: dict[str, Any], node: str
    ) -> None:
        """Puts a radio behind a port. Radios of one ``node`` with one motion move together."""
    def remove_radio(self, port: str) -> None:
        """Takes a radio out now: its frames are dropped, and its port is free for another radio.

        Not of a card.
        """
    def set_medium(self, name: str, settings: dict[str, Any]) -> None:
        """Gives a medium other laws now; the channel access stays with or without contention."""
    def set_motion(self, port: str, motion: dict[str, Any], node: str) -> None:
        """Gives a radio another movement now, which counts its times from the start of the engine."""
    def remove_noise(self, medium: str) -> None:
        """Removes all sources of noise of a medium now."""
    def withdraw_changes(self) -> int:
        """Withdraws all changes scheduled for later than the present engine time, which it returns in ns."""
    def police(self, port: str, grant: dict[str, Any]) -> None:
        """Gives a radio to a slice, with the keys of engine/src/medium/police.rs."""
    def violations(self) -> ViolationsState:
        """Violations of slices' grants so far."""
    def forget_violations(self, slice: str) -> None:
        """Forgets the violations of a slice, whose radios have left."""
    def add_card(self, medium: str, name: str, settings: dict[str, Any], ports: list[str]) -> None:
        """Makes the radios at these ports virtual MACs of one card; settings are those of
        engine/src/medium/card/mod.rs.
        """
    def set_frame_error(self, sender: str, receiver: str, probability: float) -> None:
        """Sets an additional probability that a frame between two ports' radios fails."""
    def add_noise(self, medium: str, settings: dict[str, Any], motion: dict[str, Any], source: str) -> None:
        """Adds a noise source to a medium; settings are those of engine/src/medium/noise.rs. Random
        motions depend on the name of the source.
        """
    def set_radio(self, port: str, change: dict[str, Any]) -> None:
        """Changes a radio now, with the keys of engine/src/medium/change.rs: ``{"channel": 40}``."""
    def schedule_radio(self, at: int, port: str, change: dict[str, Any]) -> None:
        """Schedules a radio change at an exact engine time."""
    def radios(self) -> list[RadioState]:
        """The current state of every radio, in the order of addition."""
    def channels(self) -> list[ChannelState]:
        """Every channel used so far."""
    def cards(self) -> list[CardState]:
        """Every card."""
    def scanned(self, port: str) -> ScanState:
        """The scans (``{"scan": ...}``) of a radio."""
    def signal(self, sender: str, receiver: str) -> float:
        """Power in dBm at which one radio would receive another now, without fading."""
    def guests(self) -> dict[str, GuestState]:
        """Guest ports (vhost) by name, with the counters of each."""
    def ledger(self) -> Ledger:
        """The fate of every frame."""
    def link_loads(self) -> tuple[int, bytes]:
        """The time in ns, and the state of all links in the order of their addition.

        For ``forward`` and then ``backward`` of each link seven unsigned numbers of 8 octets, little-endian:
        frames and octets in the queue, frames and octets that have reached the far end, frames dropped,
        frames marked, and the time in ns for which frames occupied the wire.
        """
    def lateness(self) -> LatenessState:
        """How far the engine was behind."""
    def offer(self, port: str, at: int, octets: bytes) -> None:
        """Inserts a frame at ``at``, or at once if that has passed."""
    def step(self, until: int) -> list[tuple[str, int, bytes]]:
        """Before the start: advances time; returns what reached memory ports (port, ns, octets)."""
    def received(self) -> list[tuple[str, int, bytes]]:
        """Frames delivered to memory ports since the last call."""
