"""The extension module: a thin seam to the Rust crates. Private; users import ``airloom``."""

from os import PathLike
from typing import Any

class EngineError(Exception):
    """Raised with (code, message)."""

    setting: str | None
    """The path of a setting of a link or switch that is out of its range, such as
    ``queue.codel.target_ns``; None for any other error."""
    allowed: str | None
    """The range of that setting, in words."""

class Namespace:
    """A network namespace without a name, held by a file descriptor, and its TAPs."""

    @staticmethod
    def of_machine(name: str) -> Namespace:
        """The network in which the calling thread is; :meth:`set_up` leaves it as it is."""
    @property
    def name(self) -> str: ...
    def fileno(self) -> int:
        """The namespace itself, /proc/PID/ns/net opened."""
    def taps(self) -> dict[str, int]:
        """Interface name: file descriptor of the TAP's far end; open until close()."""
    def counters(self) -> dict[str, dict[str, int]]:
        """Interface name: rx/tx packets, octets, dropped, errors (rtnetlink)."""
    def set_up(self, up: bool) -> None:
        """Takes all interfaces down, or up again with the addresses and routes of the beginning."""
    def shape(self, interface: str, rate: int, burst: int, packets: int, overhead: int) -> None:
        """Has the kernel shape what leaves (HTB): bit/s, octets, packets, octets a frame."""
    def close(self) -> None:
        """Gives the namespace back to the kernel; a second call does nothing."""

def bring_up(nodes: list[dict[str, Any]], wires: list[tuple[str, str, str, str]] = ...) -> list[Namespace]:
    """Makes the namespaces of many nodes with interfaces, addresses and routes; all or none.

    Keys of a node: name, interfaces [{name, mac, mtu, addresses, tap}], routes [{to, via,
    interface}], neighbours [{address, mac, interface}], forwarding, ipv6, sysctl. A wire (node,
    interface, node, interface) joins two interfaces that have no TAP by a veth pair.
    """

def counters_of(namespaces: list[Namespace]) -> list[dict[str, dict[str, int]]]:
    """The counters of many namespaces, read by one thread."""

def tear_down(namespaces: list[Namespace]) -> None:
    """Closes them all in one batch; those already closed are passed over."""

def error_codes() -> list[str]:
    """Every code that an EngineError can bear, sorted.

    Beside these: settings out of their range, whose code is their path (link.queue.red.min).
    """

def check_link(name: str, settings: dict[str, Any]) -> None:
    """Refuses settings of one direction of a link that are out of their range.

    Raises EngineError(code, message) with ``setting`` and ``allowed``; the code is the path of the
    setting, such as ``link.queue.codel.target``.
    """

def check_switch(name: str, settings: dict[str, Any] | str) -> None:
    """Refuses settings of a switch that are out of their range, as :func:`check_link` does."""

def check_medium(name: str, settings: dict[str, Any]) -> None:
    """Refuses settings of a medium that cannot work: EngineError(code, message)."""

def check_radio(name: str, settings: dict[str, Any]) -> None:
    """Refuses settings of a radio that cannot work."""

def check_motion(name: str, settings: dict[str, Any]) -> None:
    """Refuses a motion that cannot be."""

def read_movements(format: str, text: str) -> list[tuple[int, list[tuple[int, float, float, float]]]]:
    """Reads a movement trace: ns-2, bonnmotion or bonnmotion-3d.

    Gives for every node of the trace its places: (ns, x, y, z in metres).
    """

class Engine:
    """The engine: built, then stepped or driven by the wall clock on its own thread, then read.

    Times are nanoseconds of engine time, which is zero at the start. Settings are those of the
    engine in its own words; what they leave out has its default.
    """

    def __init__(self, seed: int) -> None: ...
    def add_tap_port(self, name: str, fd: int, transit: bool = False) -> None:
        """A TAP by its descriptor, which is duplicated; possible while the engine runs."""
    def add_vhost_port(self, name: str, listener: int, mac: str, mtu: int, transit: bool = False) -> None:
        """The network device of a guest (virtio-net), served to whoever connects by vhost-user.

        ``listener``: a listening Unix stream socket, which is duplicated; its path is what the guest is
        told (``virtio_uml.device=PATH:1``, or ``-chardev socket,path=PATH``). The guest reads ``mac``
        and ``mtu`` (octets) from the device. The loop serves it once the engine runs, meet_guests()
        before. A guest that ends and starts again connects again; one connection at a time.
        """
    def meet_guests(self) -> bool:
        """Before the start: serves the handshakes of guests, without which their kernels do not start.

        False if there was nothing to do.
        """
    def attach_vhost(self, name: str, listener: int, mac: str, mtu: int) -> None:
        """Puts another guest's device behind a port."""
    def attach_tap(self, name: str, fd: int) -> None:
        """Puts another TAP behind a port: that of a node which was made anew."""
    def detach(self, name: str) -> None:
        """Leaves nothing behind a port. A TAP port keeps its namespace alive until this, or stop()."""
    def add_memory_port(self, name: str, transit: bool = False) -> None: ...
    def add_interface_port(self, name: str, interface: str) -> None:
        """A real interface in this thread's network namespace, promiscuous while the engine lives."""
    def add_tunnel_port(
        self, name: str, receive: int, send: int, remote: str, encapsulation: dict[str, Any]
    ) -> None:
        """A tunnel to ``remote``, by its sockets, which are duplicated; ``send`` is connected.

        The encapsulation is in the words of ports/src/tunnel/encapsulation.rs:
        ``{"gretap": {"key": 7}}``, ``{"vxlan": {"vni": 42}}``.
        """
    def add_switch(self, name: str, settings: dict[str, Any] | str) -> None: ...
    def connect(self, name: str, a: str, b: str, forward: dict[str, Any], backward: dict[str, Any]) -> None:
        """Joins two ports or switches by name; forward holds from a to b."""
    def set_vlan(self, link: str, end: str, settings: dict[str, Any]) -> None:
        """Which VLANs a link carries at the switch at its end ``a`` or ``b``.

        ``{"access": {"vlan": 10}}``, ``{"trunk": {"allowed": [10, 20], "native": 1}}``.
        """
    def capture(self, path: str | PathLike[str], ports: list[str] | None = None) -> None:
        """Captures all or some ports to a pcapng file (before start); stop() completes it."""
    def start(self) -> int:
        """Starts the wall clock; returns CLOCK_MONOTONIC in ns at engine time zero."""
    def stop(self) -> None:
        """Ends the loop and the capture; raises what went wrong with either. Books stay readable."""
    def now(self) -> int: ...
    def set_link(self, name: str, direction: str, settings: dict[str, Any]) -> None:
        """Complete new settings, now; direction: forward, backward or both."""
    def set_link_up(self, name: str, up: bool) -> None:
        """Both directions, now."""
    def schedule_link(
        self, at: int, name: str, direction: str, settings: dict[str, Any] | None, up: bool | None
    ) -> None:
        """A change at an exact engine time, carried out by the engine itself."""
    def add_medium(self, name: str, settings: dict[str, Any]) -> None:
        """A radio medium; settings are those of engine/src/medium/laws.rs."""
    def add_radio(
        self, medium: str, port: str, settings: dict[str, Any], motion: dict[str, Any], node: str
    ) -> None:
        """Puts a radio behind a port. Radios of one ``node`` with one motion move together."""
    def set_frame_error(self, sender: str, receiver: str, probability: float) -> None:
        """Frames from one port's radio to another's fail with this probability, beside all else."""
    def add_noise(self, medium: str, settings: dict[str, Any], motion: dict[str, Any], source: str) -> None:
        """A source of noise on a medium; settings are those of engine/src/medium/noise.rs. Random motions
        differ by the name of the source."""
    def set_radio(self, port: str, change: dict[str, Any]) -> None:
        """A change now, in the words of engine/src/medium/change.rs: ``{"channel": 40}``."""
    def schedule_radio(self, at: int, port: str, change: dict[str, Any]) -> None:
        """A change at an exact engine time."""
    def radios(self) -> list[dict[str, Any]]:
        """Every radio now, in the order of adding.

        port, medium, on, position (x, y, z in m), access_point (port or None), mhz, queued
        (frames), settings, counts {sent, expected, unanswered, requests, requests_unanswered,
        given_up, refused, received, duplicates, broken}, airtime in ns {idle, transmitting,
        receiving, collided, busy}, peers {port: attempts, unanswered, rate (bit/s, of the last
        transmission), received, signal_dbm (of the last frame, or None)}.
        """
    def channels(self) -> list[dict[str, Any]]:
        """Every channel that was used: medium, channel, mhz, frames; busy, overlapped, sent in ns."""
    def scanned(self, port: str) -> dict[str, Any]:
        """How often a radio has come back from looking around (``{"scan": ...}``), and whom it heard the
        last time.

        times; found, a list: port, ssid, access_point (or a member of an independent cell), channel, mhz,
        signal_dbm.
        """
    def signal(self, sender: str, receiver: str) -> float:
        """Power in dBm at which one radio would hear another now, fading apart."""
    def guests(self) -> dict[str, dict[str, Any]]:
        """Ports of guests (vhost), by name, and what crossed the boundary to each.

        standing: awaited (no driver yet: frames to it drop as ``not-up``), up, or gone (host loss
        ``node-gone``); cause: why the last connection ended, or None; connections: guests so far;
        features: the virtio features that the last one agreed to, as bits. Frames as the guest's
        queues hold them, a super-frame being one: taken, put, and their _octets; waited: frames for which
        the guest had no buffer ready at first; full: others, which found too many waiting (host loss
        ``guest-ring-full``). kicks: times that the guest told of frames; calls: times that it was told of
        something; again: times that it was told once more, since it seemed to sleep; spared: times that
        it did not want to be told.
        """
    def ledger(self) -> dict[str, Any]:
        """Where every frame went.

        offered, copies, delivered, in_flight: frames; octets {the same four}; dropped {reason:
        frames}, host_lost {reason: frames}; missed: frames that real interfaces lost before the
        engine took them (a TAP's own tx_dropped counter says the same of it);
        ports {name: offered, delivered, dropped, host_lost, missed, gone; of a tunnel also tunnel
        {reason: packets that came and were refused}};
        links {name: {forward, backward: entered, left, duplicated, corrupted, reordered, marked,
        queue, queue_highest, dropped}}; switches {name: entered, copies, dropped}.
        Each count of frames in these has a companion with ``_octets``.
        """
    def lateness(self) -> dict[str, Any]:
        """How the engine kept up; all in nanoseconds.

        delivery: by how much frames were handed over late; ingress: how long they may have stood
        in their ports unseen, an upper bound; wakes: how late the loop woke from its sleeps.
        Each: count, mean, p50, p99, p999, max, worst [(at, value, port)], buckets [(up to, count)].
        status: for every second start, end, busy, spun, cpu, waited, stall, backlog, and the
        numbers taken_in, turns and sleeps. preferred: whether the engine's thread goes before others when
        processors are short. capture: written, skipped (frames), failed; or None.
        """
    def offer(self, port: str, at: int, octets: bytes) -> None:
        """A frame enters at ``at``, or at once if that has passed."""
    def step(self, until: int) -> list[tuple[str, int, bytes]]:
        """Before start: lets time pass; returns what reached memory ports (port, ns, octets)."""
    def received(self) -> list[tuple[str, int, bytes]]:
        """What has reached memory ports since the last call."""
