"""The plan: a checked scenario with every name, address and route resolved.

Plans contain plain integers (nanoseconds, octets, bit/s). A run is built from its plan alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import TYPE_CHECKING, Any, Literal

from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.machine.processors import ProcessorPlan
from airloom.planning.machine.turns import TurnsPlan
from airloom.planning.slices.spans import WHOLE, Span, within
from airloom.units.given import given

if TYPE_CHECKING:
    from airloom.images import Image
    from airloom.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class WlanPlan:
    """A radio that is a wireless device of its node's kernel."""

    number: int
    """Its number among the radios of this laboratory in that kernel, from 0."""
    phy: str
    """Its physical layer, in the engine's words."""


@dataclass(frozen=True, slots=True)
class OffloadsPlan:
    """What the kernel behind an interface leaves to its device."""

    transmit: bool = True
    """Checksums and segmentation of sent frames."""
    receive: bool = True
    """Checksums and merging of received frames."""

    @property
    def engine(self) -> tuple[bool, bool]:
        """Returns the engine's encoding."""
        return (self.transmit, self.receive)


@dataclass(frozen=True, slots=True)
class InterfacePlan:
    """One interface of a node and the link it is attached to."""

    name: str
    mac: str
    mtu: int
    addresses: tuple[IPv4Interface | IPv6Interface, ...]
    link: str
    real: str | None = None
    wlan: WlanPlan | None = None
    """Its radio, if that is a wireless device of the node's kernel."""
    offloads: OffloadsPlan = OffloadsPlan()
    bridge: tuple[str, ...] = ()
    """The interfaces that it joins, if it is a bridge of the node's kernel. It is then no port of the
    engine."""


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """A static route; ``to`` is a prefix or ``default``."""

    to: str
    via: str
    interface: str
    more: tuple[tuple[str, str], ...] = ()
    """Further next hops of equal cost: router and interface. Flows are divided among all."""


@dataclass(frozen=True, slots=True)
class NeighbourPlan:
    """A neighbour entry that exists from the start."""

    address: str
    mac: str
    interface: str
    permanent: bool = False
    """Whether it stays for ever; otherwise it is as after an address resolution at the start."""


@dataclass(frozen=True, slots=True)
class ControllerPlan:
    """Where an OpenFlow controller listens: in a node, or at an address reached from this machine."""

    host: str
    port: int
    node: str | None = None
    """The node whose network namespace resolves ``host``."""

    def __str__(self) -> str:
        return f"tcp:{given(self.node, self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class BridgePortPlan:
    """A bridge port: an interface of the node, or with ``peer`` one end of a patch."""

    name: str
    number: int
    """OpenFlow port number."""
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class BridgePlan:
    """One bridge of an Open vSwitch: the whole switch, or one slice's part of it."""

    name: str
    ports: tuple[BridgePortPlan, ...]
    controllers: tuple[ControllerPlan, ...]
    settings: dict[str, str]
    """Columns of the table Bridge (ovs-vswitchd.conf.db(5))."""
    failover: bool = False
    """Whether it has one channel, to the first controller that answers, and not one to each."""
    channel: Mapping[str, str] = field(default_factory=dict)
    """Further columns of the table Controller."""


@dataclass(frozen=True, slots=True)
class OpenVSwitchPlan:
    """Configuration of a node that is an Open vSwitch."""

    bridges: tuple[BridgePlan, ...] = ()
    flows: tuple[str, ...] = ()
    """Flow table of the base bridge in the syntax of ovs-ofctl(8), if slices share the switch."""


@dataclass(frozen=True, slots=True)
class CpusPlan:
    """Processors and scheduling of a node's processes, or of a guest's machine."""

    processors: tuple[int, ...] = ()
    """Numbers of this machine's processors; empty: all."""
    policy: str = "other"
    priority: int = 0
    nice: int = 0
    share: float | None = None
    """Weight against the other nodes; None if no node of the scenario has a share."""
    share_as_nice: int = 0
    """Nice value that stands for the share on a machine without control groups; may exceed 19."""


@dataclass(frozen=True, slots=True)
class HandlingPlan:
    """How the engine's devices of a machine treat their guest."""

    notifications: str = "off"
    """``off``, ``count``, ``time`` or ``adaptive``."""
    frames: int | None = None
    """Buffers of one notification, with ``count`` and ``adaptive``."""
    time: int | None = None
    """Longest wait of a buffer for its notification in ns; None with ``off``."""
    translation: str = "direct"
    """``direct``, ``bounce``, ``strict``, ``cached`` or ``merged``."""
    entries: int | None = None
    """Pages in the cache, with ``cached`` and ``merged``."""


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """The virtual machine of a node with its own kernel."""

    memory: int
    """In octets."""
    network: str
    """``vhost``: a device backed by the engine; ``tap``: a TAP interface of the host."""
    kernel: str | None = None
    """Path of the kernel, or ``built`` for the one from ``kernel/build``; None: the distribution's."""
    append: tuple[str, ...] = ()
    """Further words of the kernel's command line."""
    root: str | None = None
    """A folder or a disk image; None: the host's root file system."""
    shared: str | None = None
    """Name of the guest shared with other nodes; None: a guest of its own."""
    cpu: float | None = None
    """CPU limit of a shared guest, 1 for one processor; a guest of its own has the node's limit."""
    handling: HandlingPlan = HandlingPlan()
    cpus: CpusPlan | None = None
    """Processors and scheduling of a shared guest; a guest of its own has the node's."""


@dataclass(frozen=True, slots=True)
class MountPlan:
    """A file or folder of the host in a node."""

    source: str
    target: str
    writable: bool


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """A port of a node that the host offers."""

    port: int
    host_address: str
    host_port: int
    protocol: Literal["tcp", "udp"]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """Everything needed to create a node."""

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
    """Its virtual machine, if it has one."""
    mounts: tuple[MountPlan, ...] = ()
    publish: tuple[PublishPlan, ...] = ()
    collect: tuple[str, ...] = ()
    """Paths and patterns of the files that are copied out of it after the run."""
    neighbours: tuple[NeighbourPlan, ...] = ()
    """Its permanent neighbour entries."""
    cpus: CpusPlan | None = None
    """Its processors and scheduling; None: as the kernel does by default."""
    machine_network: bool = False
    """True if it uses the host's network namespace; false for all nodes of scenarios."""

    @property
    def transit(self) -> bool:
        """True if it forwards frames."""
        return self.forwarding or self.openvswitch is not None or any(one.bridge for one in self.interfaces)


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
    """VLAN settings at each end; None if that end is not a VLAN-aware switch."""
    series: tuple[str | None, str | None] = (None, None)
    """Tables that the two directions follow over time."""


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """A switch or hub, with its settings for the engine."""

    name: str
    settings: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class TunnelPlan:
    """A tunnel at the end of a link; its port in the engine has the same name."""

    name: str
    kind: str
    remote: IPv4Address | IPv6Address
    local: IPv4Address | IPv6Address | None
    encapsulation: dict[str, Any]
    """The engine's encoding (see ``ports/src/tunnel/encapsulation.rs``)."""
    port: int | None
    """UDP port of both ends, for encapsulation in UDP."""
    ttl: int
    fragment: bool
    namespace: str | None
    mtu: int
    """Largest layer-3 packet that nodes send through the tunnel, in octets."""
    headers: tuple[tuple[str, int], ...]
    """Headers in front of that packet in the underlay, with their sizes in octets."""

    @property
    def outer(self) -> int:
        """Returns the largest packet in the underlay in octets, with its IP header."""
        return self.mtu + sum(octets for _, octets in self.headers)


@dataclass(frozen=True, slots=True)
class GrantPlan:
    """Limits of a sliver's radio."""

    slice: str
    channels: tuple[int, ...]
    power_dbm: float | None = None
    ssids: tuple[str, ...] = ()
    """Names that belong to the slice."""
    police: str | dict[str, int] = "watch"
    """What follows a violation, in the engine's encoding."""
    airtime_weight: int | None = None
    radio: str = ""
    """The radio of the shared node, as ``node:radio``."""
    held: tuple[Span, ...] = WHOLE
    """From when to when the sliver has the radio."""

    def engine(self, at: int = 0) -> dict[str, Any]:
        """Returns the grant at a time in ns, as ``engine/src/medium/slices/policer.rs`` reads it."""
        return {
            "slice": self.slice,
            "channels": list(self.channels),
            "power_dbm": self.power_dbm,
            "ssids": list(self.ssids),
            "airtime_weight": self.airtime_weight,
            "assigned": within(self.held, at),
            "police": self.police,
        }


@dataclass(frozen=True, slots=True)
class RadioPlan:
    """A radio behind a node's interface, with its settings and motion in the engine's encoding."""

    port: str
    """``node:interface``."""
    node: str
    settings: dict[str, Any]
    motion: dict[str, Any]
    up: bool = True
    grant: GrantPlan | None = None
    """None: it belongs to no slice."""
    moves_with: str = ""
    """Node whose motion it has, if it is not its own: the shared one, or the first of its card."""
    switched: tuple[tuple[int, bool], ...] = ()
    """Times in ns at which its movement trace turns it on or off."""

    @property
    def mover(self) -> str:
        """Node whose motion it has."""
        return self.moves_with or self.node


@dataclass(frozen=True, slots=True)
class CardPlan:
    """A physical radio that several radios share (see ``engine/src/medium/card/mod.rs``)."""

    name: str
    settings: dict[str, Any]
    ports: tuple[str, ...]
    """Its radios."""


@dataclass(frozen=True, slots=True)
class MediumPlan:
    """A radio medium and its radios (see ``engine/src/medium/settings/medium.rs``)."""

    name: str
    settings: dict[str, Any]
    radios: tuple[RadioPlan, ...]
    frame_errors: tuple[tuple[str, str, float], ...] = ()
    """Sending port, receiving port, frame error rate."""
    noise: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = ()
    """Noise sources: settings and motion."""
    cards: tuple[CardPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run needs; programs, events and measurements stay in the scenario."""

    scenario: Scenario
    seed: int
    nodes: dict[str, NodePlan]
    switches: dict[str, SwitchPlan]
    links: dict[str, LinkPlan]
    hosts: dict[str, str]
    """First address of each node, as in every node's /etc/hosts."""
    point: dict[str, Any] = field(default_factory=dict)
    """Point of the sweep: value by path; empty without a sweep."""
    repetition: int = 0
    media: dict[str, MediumPlan] = field(default_factory=dict)
    tunnels: dict[str, TunnelPlan] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the scenario's files say and the plan does not contain."""
    engine_processors: tuple[int, ...] = ()
    """Processors of the engine; empty: all."""
    engine_scheduling: CpusPlan | None = None
    """Policy, priority and nice value of the engine; None: it adapts them."""
    turns: tuple[TurnsPlan, ...] = ()
    processors: tuple[ProcessorPlan, ...] = ()

    @property
    def virtual(self) -> bool:
        """Returns whether the run is in virtual time."""
        return self.scenario.time == "virtual"

    @property
    def idle_poll(self) -> bool:
        """Returns whether idle processors poll instead of halting. In virtual time nothing waits for them."""
        return self.scenario.engine.idle == "poll" and not self.virtual

    @property
    def shares(self) -> dict[str, float]:
        """Returns the CPU limit of each limited node or shared guest, 1 for one processor."""
        return shares_of(self.nodes.values())

    def wait_of(self, node: str) -> int:
        """Returns the longest time in ns for which a node, or the guest that it is in, waits for its turn."""
        machine = self._machine_of(node)
        return max((one.wait for one in self.turns if machine in one.guests), default=0)

    def has_processor(self, node: str) -> bool:
        """Returns whether a node, or the guest that it is in, works on a modelled processor."""
        machine = self._machine_of(node)
        return any(machine in one.guests for one in self.processors)

    def _machine_of(self, node: str) -> str:
        guest = self.nodes[node].guest
        return node if guest is None else guest.shared or node

    @property
    def has_taps(self) -> bool:
        """True if a node has a TAP of this machine: no vhost or wireless device, veth or real interface."""
        return any(
            interface.real is None and interface.wlan is None and node.kind != "native"
            for node in self.nodes.values()
            if node.guest is None or node.guest.network == "tap"
            for interface in node.interfaces
        )


def shares_of(nodes: Iterable[NodePlan]) -> dict[str, float]:
    """Returns the CPU limit of each limited node or shared guest, 1 for one processor."""
    shares = {node.name: node.cpu for node in nodes if node.cpu is not None}
    for guest in (node.guest for node in nodes):
        if guest is not None and guest.shared is not None and guest.cpu is not None:
            shares[guest.shared] = guest.cpu
    return shares
