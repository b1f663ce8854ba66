"""The extension module: a thin seam to the Rust crates. Private; users import ``airloom``."""

from typing import Any

class EngineError(Exception):
    """Raised with (code, message)."""

class Namespace:
    """A network namespace without a name, held by a file descriptor, and its TAPs."""

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

def bring_up(
    nodes: list[dict[str, Any]], wires: list[tuple[str, str, str, str]] = ...
) -> list[Namespace]:
    """Makes the namespaces of many nodes with interfaces, addresses and routes; all or none.

    Keys of a node: name, interfaces [{name, mac, mtu, addresses, tap}], routes [{to, via,
    interface}], neighbours [{address, mac, interface}], forwarding, ipv6, sysctl. A wire (node,
    interface, node, interface) joins two interfaces that have no TAP by a veth pair.
    """

def counters_of(namespaces: list[Namespace]) -> list[dict[str, dict[str, int]]]:
    """The counters of many namespaces, read by one thread."""

def tear_down(namespaces: list[Namespace]) -> None:
    """Closes them all in one batch; those already closed are passed over."""

class Engine:
    """The engine on its own thread, driven by the wall clock or step by step."""

    def __init__(self, seed: int) -> None: ...
    def add_tap_port(self, name: str, fd: int, transit: bool = False) -> None: ...
    def add_memory_port(self, name: str, transit: bool = False) -> None: ...
    def add_interface_port(self, name: str, interface: str) -> None: ...
    def add_switch(self, name: str, settings: dict[str, Any] | str) -> None: ...
    def connect(
        self, name: str, a: str, b: str, forward: dict[str, Any], backward: dict[str, Any]
    ) -> None: ...
    def start(self) -> int:
        """Starts the wall clock; returns CLOCK_MONOTONIC in ns at engine time zero."""
    def stop(self) -> None: ...
    def now(self) -> int: ...
    def set_link(self, name: str, direction: str, settings: dict[str, Any]) -> None:
        """direction: forward, backward or both; takes effect now, or at `at` of schedule_link."""
    def schedule_link(
        self, at: int, name: str, direction: str, settings: dict[str, Any] | None, up: bool | None
    ) -> None:
        """A change at an exact engine time, carried out by the engine itself."""
    def set_link_up(self, name: str, up: bool) -> None: ...
    def capture(self, path: str, ports: list[str] | None) -> None:
        """Starts a pcapng capture (before start)."""
    def ledger(self) -> dict[str, Any]:
        """offered, copies, delivered, in_flight, dropped {reason: n}, host_lost {reason: n},
        links {name: {forward|backward: {...}}}, ports {name: {...}}."""
    def lateness(self) -> dict[str, Any]:
        """Histogram and p50, p99, p999, max in ns of delivery, and of ingress; worst moments."""
    def offer(self, port: str, at: int, octets: bytes) -> None:
        """Stepped only: a frame enters."""
    def step(self, until: int) -> list[tuple[str, int, bytes]]:
        """Stepped only: lets time pass; returns deliveries (port, ns, octets)."""
