"""The extension module: bindings to the Rust crates. Private; users import ``airloom``."""

from os import PathLike
from typing import Any

class EngineError(Exception):
    """Raised with (code, message)."""

    setting: str | None
    """Path of the link or switch setting that is out of its range, such as
    ``queue.codel.target_ns``; None for other errors.
    """
    allowed: str | None
    """The range of that setting, as text."""

class Namespace:
    """An unnamed network namespace, held by a file descriptor, and its TAPs."""

    @staticmethod
    def of_machine(name: str) -> Namespace:
        """The network namespace of the calling thread; :meth:`set_up` does not change it."""
    @property
    def name(self) -> str: ...
    def fileno(self) -> int:
        """The namespace's descriptor, an open /proc/PID/ns/net."""
    def taps(self) -> dict[str, int]:
        """Interface name: file descriptor of its TAP; open until close()."""
    def counters(self) -> dict[str, dict[str, int]]:
        """Interface name: rx/tx packets, octets, dropped, errors (rtnetlink)."""
    def set_up(self, up: bool) -> None:
        """Takes all interfaces down, or up again with their initial addresses and routes."""
    def shape(self, interface: str, rate: int, burst: int, packets: int, overhead: int) -> None:
        """Shapes outgoing traffic in the kernel (HTB): bit/s, octets, packets, octets per frame."""
    def close(self) -> None:
        """Releases the namespace. A second call has no effect."""

def bring_up(nodes: list[dict[str, Any]], wires: list[tuple[str, str, str, str]] = ...) -> list[Namespace]:
    """Creates the namespaces of many nodes with interfaces, addresses and routes; all or none.

    Keys of a node: name, interfaces [{name, mac, mtu, addresses, tap}], routes [{to, via,
    interface}], neighbours [{address, mac, interface}], forwarding, ipv6, sysctl. A wire (node,
    interface, node, interface) joins two interfaces that have no TAP by a veth pair.
    """

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

def read_movements(format: str, text: str) -> list[tuple[int, list[tuple[int, float, float, float]]]]:
    """Parses a movement trace: ns-2, bonnmotion or bonnmotion-3d.

    Returns the positions of every node of the trace: (ns, x, y, z in metres).
    """

class Engine:
    """The engine: built, then stepped or driven by the wall clock on its own thread, then read.

    Times are nanoseconds of engine time, which is zero at the start. Settings use the engine's own
    keys; omitted ones have their default.
    """

    def __init__(self, seed: int) -> None: ...
    def add_tap_port(self, name: str, fd: int, transit: bool = False) -> None:
        """Adds a TAP by its descriptor, which is duplicated; possible while the engine runs."""
    def add_vhost_port(self, name: str, listener: int, mac: str, mtu: int, transit: bool = False) -> None:
        """Adds a guest's network device (virtio-net), served over vhost-user to its client.

        ``listener``: a listening Unix stream socket, which is duplicated; the guest gets its path
        (``virtio_uml.device=PATH:1``, or ``-chardev socket,path=PATH``). The guest reads ``mac``
        and ``mtu`` (octets) from the device. The engine's loop serves it once the engine runs,
        meet_guests() before. A restarted guest connects again; one connection at a time.
        """
    def meet_guests(self) -> bool:
        """Before the start: serves the guests' handshakes, without which their kernels do not boot.

        Returns False if there was nothing to do.
        """
    def attach_vhost(self, name: str, listener: int, mac: str, mtu: int) -> None:
        """Replaces the device behind a port with another guest's."""
    def attach_tap(self, name: str, fd: int) -> None:
        """Replaces the TAP behind a port, after its node was created anew."""
    def detach(self, name: str) -> None:
        """Removes the device behind a port. Until then, or stop(), a TAP keeps its namespace alive."""
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
        """Connects two ports or switches by name; ``forward`` applies from a to b."""
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
    def radios(self) -> list[dict[str, Any]]:
        """The current state of every radio, in the order of addition.

        port, medium, on, position (x, y, z in m), access_point (port or None), mhz, queued
        (frames), settings, counts {sent, expected, unanswered, requests, requests_unanswered,
        given_up, refused, received, duplicates, broken}, airtime in ns {idle, transmitting,
        receiving, collided, busy}, peers {port: attempts, unanswered, rate (bit/s, of the last
        transmission), received, signal_dbm (of the last frame, or None)}.
        """
    def channels(self) -> list[dict[str, Any]]:
        """Every channel used so far: medium, channel, mhz, frames; busy, overlapped, sent in ns."""
    def scanned(self, port: str) -> dict[str, Any]:
        """The number of scans (``{"scan": ...}``) of a radio, and the radios heard in the last one.

        times; found, a list: port, ssid, access_point (or a member of an independent cell),
        channel, mhz, signal_dbm.
        """
    def signal(self, sender: str, receiver: str) -> float:
        """Power in dBm at which one radio would receive another now, without fading."""
    def guests(self) -> dict[str, dict[str, Any]]:
        """Guest ports (vhost) by name, with the counters of each.

        standing: awaited (no driver yet: frames to it drop as ``not-up``), up, or gone (host loss
        ``node-gone``); cause: why the last connection ended, or None; connections: guests so far;
        features: the virtio features that the last one agreed to, as bits. Frames as in the guest's
        queues, a super-frame counting as one: taken, put, and their _octets; waited: frames for
        which the guest had no buffer ready at first; full: frames dropped because too many were
        waiting (host loss ``guest-ring-full``). kicks: notifications from the guest; calls:
        notifications to the guest; again: repeated notifications to a guest that seemed to sleep;
        spared: notifications that the guest had suppressed.
        """
    def ledger(self) -> dict[str, Any]:
        """The fate of every frame.

        offered, copies, delivered, in_flight: frames; octets {the same four}; dropped {reason:
        frames}, host_lost {reason: frames}; missed: frames that real interfaces lost before the
        engine read them (a TAP counts the same in its tx_dropped); ports {name: offered, delivered,
        dropped, host_lost, missed, gone; of a tunnel also tunnel {reason: packets received and
        refused}}; links {name: {forward, backward: entered, left, duplicated, corrupted, reordered,
        marked, queue, queue_highest, dropped}}; switches {name: entered, copies, dropped}. Each
        count of frames in these has a companion with ``_octets``.
        """
    def lateness(self) -> dict[str, Any]:
        """How far the engine was behind; all in nanoseconds.

        delivery: lateness of delivered frames; ingress: time that frames may have waited in their
        ports, an upper bound; wakes: lateness of the loop's wake-ups. Each: count, mean, p50, p99,
        p999, max, worst [(at, value, port)], buckets [(up to, count)]. status: for every second
        start, end, busy, spun, cpu, waited, stall, backlog, and the numbers taken_in, turns and
        sleeps. preferred: whether the engine's thread has priority over others when processors are
        short. capture: written, skipped (frames), octets, failed; or None.
        """
    def offer(self, port: str, at: int, octets: bytes) -> None:
        """Inserts a frame at ``at``, or at once if that has passed."""
    def step(self, until: int) -> list[tuple[str, int, bytes]]:
        """Before the start: advances time; returns what reached memory ports (port, ns, octets)."""
    def received(self) -> list[tuple[str, int, bytes]]:
        """Frames delivered to memory ports since the last call."""
