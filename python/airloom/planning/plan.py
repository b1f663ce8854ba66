"""What will be built: a checked scenario with every name, address and route resolved.

A plan holds plain integers (nanoseconds, octets, bit/s) and is the only thing the world is made from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import TYPE_CHECKING, Any

from airloom.planning.link_settings import LinkSettings

if TYPE_CHECKING:
    from airloom.images import Image
    from airloom.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class InterfacePlan:
    """One interface of a node and the link at its other side."""

    name: str
    mac: str
    mtu: int
    addresses: tuple[IPv4Interface | IPv6Interface, ...]
    link: str
    real: str | None = None


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """A static route; ``to`` is a prefix or ``default``."""

    to: str
    via: str
    interface: str


@dataclass(frozen=True, slots=True)
class ControllerPlan:
    """Where an OpenFlow controller listens: in a node, or at an address reached from this machine."""

    host: str
    port: int
    node: str | None = None
    """The node in whose network namespace ``host`` is meant."""

    def __str__(self) -> str:
        return f"tcp:{self.node or self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BridgePortPlan:
    """A port of a bridge: an interface of the node, or with ``peer`` one end of a patch to another bridge."""

    name: str
    number: int
    """In OpenFlow."""
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class BridgePlan:
    """One bridge of an Open vSwitch: the switch itself, or a slice's part of it."""

    name: str
    ports: tuple[BridgePortPlan, ...]
    controllers: tuple[ControllerPlan, ...]
    settings: dict[str, str]
    """Columns of the table Bridge (ovs-vswitchd.conf.db(5))."""


@dataclass(frozen=True, slots=True)
class OpenVSwitchPlan:
    """What runs in a node that is an Open vSwitch."""

    bridges: tuple[BridgePlan, ...] = ()
    flows: tuple[str, ...] = ()
    """Flow table of the first bridge as ovs-ofctl(8) takes it, where slices are held apart."""


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """The machine of a node that has a kernel of its own."""

    memory: int
    """Octets."""
    network: str
    """``vhost``: a device of the engine's own; ``tap``: an interface of the host."""
    kernel: str | None = None
    """Path of the kernel, or the word for the one that is built; None is the distribution's."""
    root: str | None = None
    """A folder or a disk image; None is the host's own file system."""
    processors: tuple[int, ...] = ()
    nice: int = 0
    policy: str = "other"
    priority: int = 0
    shared: str | None = None
    """Name of the guest that the node shares with others; None is a guest of its own."""
    cpu: float | None = None
    """Most of one processor that a shared guest may use; a guest of its own has the node's share."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node with everything that its making needs."""

    name: str
    kind: str
    interfaces: tuple[InterfacePlan, ...]
    routes: tuple[RoutePlan, ...]
    forwarding: bool
    cpu: float | None
    files: dict[str, str]
    sysctl: dict[str, str]
    openvswitch: OpenVSwitchPlan | None = None
    image: Image | None = None
    """Its root file system, if not the host's."""
    guest: GuestPlan | None = None
    """Its machine, if it has one of its own."""
    machine_network: bool = False
    """Whether it stands in the machine's own network; no node of a scenario does."""

    @property
    def transit(self) -> bool:
        """Whether it passes frames on."""
        return self.forwarding or self.openvswitch is not None


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link between two ends, each ``node:interface`` or the name of a switch or tunnel."""

    name: str
    a: str
    b: str
    forward: LinkSettings
    """From ``a`` to ``b``."""
    backward: LinkSettings
    vlans: tuple[dict[str, Any] | None, ...] = (None, None)
    """For each end that is a switch which knows VLANs, those that it carries there."""


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """A switch or hub, with the engine's settings for it."""

    name: str
    settings: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class TunnelPlan:
    """A tunnel that a link ends at; its port in the engine has its name."""

    name: str
    kind: str
    remote: IPv4Address | IPv6Address
    local: IPv4Address | IPv6Address | None
    encapsulation: dict[str, Any]
    """In the engine's own words (see ``ports/src/tunnel/encapsulation.rs``)."""
    port: int | None
    """UDP port of both ends, if packets go in UDP."""
    ttl: int
    fragment: bool
    namespace: str | None
    mtu: int
    """Largest layer-3 packet that nodes send through it, in octets."""
    headers: tuple[tuple[str, int], ...]
    """What stands before that packet in a packet of the underlay, and its octets."""

    @property
    def outer(self) -> int:
        """Octets of the largest packet in the underlay, its IP header included."""
        return self.mtu + sum(octets for _, octets in self.headers)


@dataclass(frozen=True, slots=True)
class GrantPlan:
    """What the radio of a sliver is held to."""

    slice: str
    channels: tuple[int, ...]
    power_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class RadioPlan:
    """A radio behind a node's interface, with its settings and motion in the engine's own words."""

    port: str
    """``node:interface``."""
    node: str
    settings: dict[str, Any]
    motion: dict[str, Any]
    up: bool = True
    grant: GrantPlan | None = None
    """None: it belongs to no slice."""


@dataclass(frozen=True, slots=True)
class MediumPlan:
    """A radio medium and its radios (see ``engine/src/medium/laws.rs``)."""

    name: str
    settings: dict[str, Any]
    radios: tuple[RadioPlan, ...]
    frame_errors: tuple[tuple[str, str, float], ...] = ()
    """Sending port, receiving port, share of the frames."""
    noise: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = ()
    """Sources of noise: settings and motion."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run needs; programs, events and measurements stay as the scenario has them."""

    scenario: Scenario
    seed: int
    nodes: dict[str, NodePlan]
    switches: dict[str, SwitchPlan]
    links: dict[str, LinkPlan]
    hosts: dict[str, str]
    """Name of a node: its first address, as it stands in every node's /etc/hosts."""
    point: dict[str, Any] = field(default_factory=dict)
    """The sweep's choice: path of a value, and the value; empty without a sweep."""
    repetition: int = 0
    media: dict[str, MediumPlan] = field(default_factory=dict)
    tunnels: dict[str, TunnelPlan] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """Name of a node or shared guest: most of one processor that it may use; those that are limited."""
        return shares_of(self.nodes.values())

    @property
    def has_taps(self) -> bool:
        """Whether some node's interface is a TAP of this system: no device of the engine's own, no end of a
        veth pair, no real one.
        """
        return any(
            interface.real is None and node.kind != "native"
            for node in self.nodes.values()
            if node.guest is None or node.guest.network == "tap"
            for interface in node.interfaces
        )


def shares_of(nodes: Iterable[NodePlan]) -> dict[str, float]:
    """Name of a node, or of a guest that nodes share: most of one processor that it may use."""
    shares = {node.name: node.cpu for node in nodes if node.cpu is not None}
    for guest in (node.guest for node in nodes):
        if guest is not None and guest.shared is not None and guest.cpu is not None:
            shares[guest.shared] = guest.cpu
    return shares
