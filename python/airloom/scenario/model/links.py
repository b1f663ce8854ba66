"""Links: rate, delay, jitter, loss, queue, each per direction; and the generators of topologies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from airloom.scenario.model.base import Count, File, Listed, Model, Mtu, Name
from airloom.scenario.model.jitter import Jitter
from airloom.scenario.model.media import Radio
from airloom.scenario.model.nodes import Node
from airloom.scenario.model.openflow import Controller, Datapath, OpenFlow
from airloom.units.addresses import Address
from airloom.units.quantities import Chance, Duration, Fraction, Length, Rate, Size


class GilbertElliott(Model):
    """Bursty loss: a good and a bad state (Gilbert 1960, Elliott 1963)."""

    good_to_bad: Fraction = Field(description="probability, before each frame, to turn bad")
    bad_to_good: Fraction = Field(description="probability, before each frame, to turn good")
    loss_good: Fraction = Field(default=0.0, description="loss in the good state")
    loss_bad: Fraction = Field(default=1.0, description="loss in the bad state")


def _loss_kind(value: Any) -> str:
    return "<bursts>" if isinstance(value, dict | GilbertElliott) else "<each>"


Loss = Annotated[
    Annotated[Chance, Tag("<each>")] | Annotated[GilbertElliott, Tag("<bursts>")], Discriminator(_loss_kind)
]


class Queue(Model):
    """Where frames wait for the wire; 1000 packets if no limit is given."""

    packets: Annotated[int, Field(ge=1, le=2**32 - 1, strict=True)] | None = Field(
        default=None, description="most frames that may wait"
    )
    size: Size | None = Field(default=None, description="most octets that may wait")
    time: Duration | None = Field(
        default=None, description="longest time that the waiting frames may take to leave at the present rate"
    )
    discipline: Literal["drop-tail", "red", "codel", "fq-codel"] = Field(
        default="drop-tail", description="what is dropped or marked, and when"
    )
    ecn: bool = Field(
        default=False, description="mark ECN-capable packets (RFC 3168) instead of dropping early"
    )
    red_min: Size | None = Field(default=None, description="RED: mean queue below which nothing is dropped")
    red_max: Size | None = Field(default=None, description="RED: mean queue from which everything is dropped")
    red_probability: Fraction = Field(default=0.1, description="RED: drop probability just below red_max")
    red_weight: Fraction = Field(default=0.002, description="RED: weight of the newest sample in the mean")
    target: Duration = Field(default=Duration("5 ms"), description="CoDel: acceptable standing delay")
    interval: Duration = Field(default=Duration("100 ms"), description="CoDel: sliding window")
    quantum: Size = Field(default=Size("1514 B"), description="FQ-CoDel: octets a flow sends in its turn")
    flows: Annotated[int, Field(ge=1, le=65536, strict=True)] = Field(
        default=1024, description="FQ-CoDel: number of flow queues"
    )


def _rate_kind(value: Any) -> str:
    return "<unlimited>" if value == "unlimited" else "<rate>"


LinkRate = Annotated[
    Annotated[Rate, Tag("<rate>")] | Annotated[Literal["unlimited"], Tag("<unlimited>")],
    Discriminator(_rate_kind),
]


class Direction(Model):
    """What can be said of one direction of a link; what is left out is taken from the link."""

    rate: LinkRate | None = Field(default=None, description="at most 1 Tbit/s; unlimited by default")
    trace: File | None = Field(default=None, description="file in mahimahi's format, instead of a rate")
    delay: Duration | None = Field(default=None, description="propagation delay; none by default")
    jitter: Jitter | None = Field(default=None, description="variation of the delay, or none")
    jitter_reorders: bool | None = Field(default=None, description="jitter may let a frame overtake another")
    loss: Loss | None = Field(default=None, description="of each frame, or in bursts")
    duplicate: Chance | None = Field(default=None, description="probability that a frame arrives twice")
    corrupt: Chance | None = Field(default=None, description="probability that one bit is flipped")
    reorder: Chance | None = Field(default=None, description="probability that a frame skips the delay")
    mtu: Mtu | None = Field(
        default=None, description="largest layer-3 packet in octets; larger ones are dropped"
    )
    overhead: Size | None = Field(
        default=None, description="charged beside each frame; 24 B on Ethernet: preamble 8, FCS 4, gap 12"
    )
    queue: Queue | None = Field(default=None, description="where frames wait for the wire")
    segments: Literal["timed", "carried"] | None = Field(
        default=None,
        description="segments of a super-frame are timed one by one (default), or carried together",
    )
    late: Literal["catch-up", "slip"] | None = Field(
        default=None,
        description="when the host was late: make up for up to 1 ms of it (default), or keep frames apart as "
        "their octets need, whatever it costs",
    )


Vlan = Annotated[int, Field(ge=1, le=4094, strict=True)]
"""Number of a virtual LAN (IEEE 802.1Q); 0 and 4095 are reserved."""


def _trunk_kind(value: Any) -> str:
    return "<all>" if value == "all" else "<list>"


Trunk = Annotated[
    Annotated[list[Vlan], Tag("<list>")] | Annotated[Literal["all"], Tag("<all>")], Discriminator(_trunk_kind)
]


class Link(Direction):
    """A point-to-point wire between two ends, each ``node``, ``node:interface``, switch, hub or tunnel."""

    ends: tuple[str, str] = Field(description='``[h1, s1]`` or ``["h1:wan", r1]``')
    name: Name | None = Field(default=None, description="by default the ends' names, ``h1-s1``")
    forward: Direction | None = Field(default=None, description="differences from first end to second")
    backward: Direction | None = Field(default=None, description="differences from second end to first")
    addresses: tuple[Annotated[list[Address], Listed], Annotated[list[Address], Listed]] | None = Field(
        default=None, description="addresses of the two ends, a list each"
    )
    vlan: Vlan | None = Field(
        default=None, description="at a switch: the one VLAN that the link carries, without tags"
    )
    trunk: Trunk | None = Field(
        default=None, description="at a switch: the VLANs that it carries with tags, or `all`"
    )
    native: Vlan | None = Field(
        default=None, description="of a trunk: the VLAN without tags; by default what has none is dropped"
    )


Many = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class Switch(Model):
    """A layer-2 element: inside the engine, or a real Open vSwitch in a node of its own."""

    kind: Literal["switch", "hub", "openvswitch"] = Field(
        default="switch",
        description="a hub repeats every frame everywhere; openvswitch is the program, with flow tables",
    )
    ageing: Duration = Field(default=Duration("300 s"), description="how long a silent address is remembered")
    addresses: Count = Field(default=8192, description="most addresses remembered")
    controllers: Annotated[list[Controller], Listed] = Field(
        default=[],
        description="openvswitch: `tcp:HOST:PORT` each; HOST is a node, or is reached from this machine",
    )
    protocols: Annotated[list[OpenFlow], Listed, Field(min_length=1)] | None = Field(
        default=None, description="openvswitch: what it speaks; OpenFlow10 and OpenFlow13 by default"
    )
    fail_mode: Literal["standalone", "secure"] | None = Field(
        default=None,
        description="openvswitch: without a controller it learns by itself, or forwards by its flows alone; "
        "secure by default if it has controllers",
    )
    datapath_id: Datapath | None = Field(
        default=None, description="openvswitch: 1, 2, ... in the order of the switches by default"
    )
    spanning_tree: Literal["none", "stp", "rstp"] = Field(
        default="none", description="openvswitch: IEEE 802.1D or 802.1w, which makes loops harmless"
    )
    latency: Duration = Field(
        default=Duration(0), description="from the last bit of a frame in to its first bit out; of a switch"
    )


class Topology(Model):
    """A generator of nodes and links, named ``n1``, ``n2``, ..."""

    generator: Literal[
        "chain", "star", "tree", "grid", "ring", "full-mesh", "fat-tree", "random", "graphml"
    ] = Field(description="the shape")
    nodes: Many | None = Field(default=None, description="how many nodes, switches among them included")
    depth: Annotated[int, Field(ge=1, le=20, strict=True)] | None = Field(
        default=None, description="tree: levels below the root"
    )
    fanout: Many | None = Field(default=None, description="tree: children of each inner node")
    rows: Many | None = Field(default=None, description="grid")
    columns: Many | None = Field(default=None, description="grid")
    k: Annotated[int, Field(ge=2, le=64, strict=True)] | None = Field(
        default=None, description="fat-tree: ports a switch, an even number"
    )
    probability: Fraction | None = Field(
        default=None, description="random: of each link beyond those of a random spanning tree"
    )
    seed: Annotated[int, Field(ge=0, strict=True)] | None = Field(
        default=None, description="random: which graph; by default the scenario's seed"
    )
    file: File | None = Field(default=None, description="graphml: the file")
    link: Direction = Field(default=Direction(), description="properties of every generated link")
    spacing: Length | None = Field(
        default=None, description="chain, star, grid, random: places the nodes so far apart"
    )
    radio: Radio | None = Field(
        default=None, description="every node has this radio as `wlan0`, and no links are made"
    )
    node: Node = Field(default=Node(), description="properties of every generated node")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,40}$")] = Field(
        default="n", description="how the names of nodes begin"
    )
    switched: bool = Field(default=False, description="inner nodes are switches instead of routers")
    switch: Switch = Field(default=Switch(), description="properties of every generated switch")
