"""Links (rate, delay, jitter, loss, queue, each per direction), switches, topology generators."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from airloom.scenario.model.base import Count, File, Listed, Model, Mtu, Name
from airloom.scenario.model.jitter import Jitter
from airloom.scenario.model.media import Radio
from airloom.scenario.model.nodes import Node
from airloom.scenario.model.openflow import Controller, Datapath, OpenFlow
from airloom.scenario.model.queues import Policer, Queue
from airloom.units.addresses import Address
from airloom.units.quantities import Chance, Duration, Fraction, Length, Rate, Size


class GilbertElliott(Model):
    """Bursts of loss: a good and a bad state (Gilbert 1960, Elliott 1963)."""

    good_to_bad: Fraction = Field(description="probability before each frame of a change to the bad state")
    bad_to_good: Fraction = Field(description="probability before each frame of a change to the good state")
    loss_good: Fraction = Field(default=0.0, description="loss probability in the good state")
    loss_bad: Fraction = Field(default=1.0, description="loss probability in the bad state")


def _loss_kind(value: Any) -> str:
    return "<bursts>" if isinstance(value, dict | GilbertElliott) else "<each>"


Loss = Annotated[
    Annotated[Chance, Tag("<each>")] | Annotated[GilbertElliott, Tag("<bursts>")], Discriminator(_loss_kind)
]


def _rate_kind(value: Any) -> str:
    return "<unlimited>" if value == "unlimited" else "<rate>"


LinkRate = Annotated[
    Annotated[Rate, Tag("<rate>")] | Annotated[Literal["unlimited"], Tag("<unlimited>")],
    Discriminator(_rate_kind),
]


class Direction(Model):
    """Properties of one direction of a link. By default those of the link."""

    rate: LinkRate | None = Field(default=None, description="rate, at most 1 Tbit/s; unlimited by default")
    burst: Size | None = Field(
        default=None,
        description="octets of a token bucket that is filled at `rate`: so many leave at once, or at `peak`; "
        "none by default, so that each frame takes its time",
    )
    peak: Rate | None = Field(default=None, description="rate of a burst; unlimited by default")
    policer: Policer | None = Field(
        default=None, description="drops frames beyond a rate and its burst before they reach the queue"
    )
    trace: File | None = Field(default=None, description="trace file in mahimahi's format, instead of a rate")
    series: File | None = Field(
        default=None,
        description="file of rate, delay, loss and jitter over time; its first line names the columns: "
        "`time [s], rate [Mbit/s], delay [ms], loss [%]`",
    )
    delay: Duration | None = Field(default=None, description="propagation delay; none by default")
    jitter: Jitter | None = Field(default=None, description="variation of the delay; none by default")
    jitter_reorders: bool | None = Field(default=None, description="jitter may reorder frames")
    loss: Loss | None = Field(default=None, description="loss probability of each frame, or bursts")
    duplicate: Chance | None = Field(default=None, description="duplication probability")
    corrupt: Chance | None = Field(default=None, description="probability that one bit of a frame is flipped")
    reorder: Chance | None = Field(default=None, description="probability that a frame skips the delay")
    mtu: Mtu | None = Field(
        default=None, description="largest layer-3 packet in octets; larger ones are dropped"
    )
    overhead: Size | None = Field(
        default=None,
        description="octets added to each frame on the wire; 24 B by default: preamble 8, FCS 4, gap 12; on "
        "a trace, octets added to each packet of layer 3; 4 B by default, as in mahimahi",
    )
    queue: Queue | None = Field(default=None, description="queue in front of the wire")
    segments: Literal["timed", "carried"] | None = Field(
        default=None,
        description="timed (default): each segment of a super-frame is timed; carried: the super-frame moves "
        "as a whole",
    )
    coalesce: Duration | None = Field(
        default=None,
        description="maximum time for which segments of a TCP or UDP super-frame gather at a node, to be "
        "handed over together, each with its own time; up to five times as long while the link is busy, "
        "and ten times while the engine is busy too; 200 us by default, 0 hands over each alone",
    )
    late: Literal["catch-up", "slip"] | None = Field(
        default=None,
        description="when the host is late: catch-up (default) makes up for up to 1 ms, or 10 ms of frames "
        "that keep their times; slip never exceeds the rate and loses the time",
    )
    carrier: Literal["follow", "keep"] | None = Field(
        default=None,
        description="carrier of the receiving interface: follow (default) loses it while the link is down; "
        "keep does not",
    )


Vlan = Annotated[int, Field(ge=1, le=4094, strict=True)]
"""Number of a virtual LAN (IEEE 802.1Q); 0 and 4095 are reserved."""


def _trunk_kind(value: Any) -> str:
    return "<all>" if value == "all" else "<list>"


Trunk = Annotated[
    Annotated[list[Vlan], Tag("<list>")] | Annotated[Literal["all"], Tag("<all>")], Discriminator(_trunk_kind)
]


def _visibility_kind(value: Any) -> str:
    return "<file>" if isinstance(value, str) else "<list>"


Visibility = Annotated[
    Annotated[File, Tag("<file>")]
    | Annotated[list[tuple[Duration, Duration]], Field(min_length=1), Tag("<list>")],
    Discriminator(_visibility_kind),
]


class Link(Direction):
    """Point-to-point link. Each end is a ``node``, ``node:interface``, switch, hub or tunnel."""

    ends: tuple[str, str] = Field(description='the two ends: ``[h1, s1]`` or ``["h1:wan", r1]``')
    name: Name | None = Field(default=None, description="name; by default the names of the ends, ``h1-s1``")
    forward: Direction | None = Field(
        default=None,
        description="differences for the direction from the first end to the second; a queue is a whole one",
    )
    backward: Direction | None = Field(
        default=None,
        description="differences for the direction from the second end to the first; a queue is a whole one",
    )
    addresses: tuple[Annotated[list[Address], Listed], Annotated[list[Address], Listed]] | None = Field(
        default=None, description="addresses of the two ends, one list for each"
    )
    visibility: Visibility | None = Field(
        default=None,
        description="intervals in which the link is up; otherwise it is down: `[[0 s, 9 s], [12 s, 1 min]]` "
        "from time zero, or a file with a line `START, END` for each; always by default",
    )
    vlan: Vlan | None = Field(default=None, description="at a switch: VLAN of an access link, untagged")
    trunk: Trunk | None = Field(default=None, description="at a switch: tagged VLANs of a trunk, or `all`")
    native: Vlan | None = Field(
        default=None, description="at a trunk: VLAN of untagged frames; by default they are dropped"
    )


Many = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class Switch(Model):
    """Layer-2 switch or hub of the engine, or an Open vSwitch in its own node."""

    kind: Literal["switch", "hub", "openvswitch"] = Field(
        default="switch",
        description="switch: learning switch; hub: repeats every frame to all ports; openvswitch: the "
        "program Open vSwitch",
    )
    forwarding: Literal["learning", "shortest-path"] = Field(
        default="learning",
        description="switch only: learning: without loops; shortest-path: all such switches that links join "
        "use all shortest paths between them (IEEE 802.1aq and 802.1Qbp)",
    )
    convergence: Duration = Field(
        default=Duration("50 ms"),
        description="shortest-path: time from a change of a link to new paths, the same in joined switches",
    )
    ageing: Duration = Field(default=Duration("300 s"), description="ageing time of learned addresses")
    addresses: Count = Field(default=8192, description="size of the address table")
    controllers: Annotated[list[Controller], Listed] = Field(
        default=[],
        description="openvswitch: list of `tcp:HOST:PORT`; HOST is a node or an address that this machine "
        "reaches",
    )
    protocols: Annotated[list[OpenFlow], Listed, Field(min_length=1)] | None = Field(
        default=None, description="openvswitch: OpenFlow versions; OpenFlow10 and OpenFlow13 by default"
    )
    fail_mode: Literal["standalone", "secure"] | None = Field(
        default=None,
        description="openvswitch without a controller: standalone learns, secure forwards by its flows only; "
        "secure by default if it has controllers",
    )
    datapath_id: Datapath | None = Field(
        default=None,
        description="openvswitch: datapath id; by default 1, 2, ... in the order of the switches",
    )
    spanning_tree: Literal["none", "stp", "rstp"] = Field(
        default="none", description="openvswitch: stp (IEEE 802.1D) or rstp (802.1w) allows loops"
    )
    offloads: Annotated[bool, Field(strict=True)] = Field(
        default=True,
        description="openvswitch: false: its ports carry the frames of the wire, not longer ones with "
        "incomplete checksums",
    )
    latency: Duration = Field(
        default=Duration(0),
        description="switch only: time from the last bit of a frame in to its first bit out",
    )


_Attribute = Annotated[str, Field(min_length=1)]


class GraphAttributes(Model):
    """Attributes of a graph file that are read; the defaults are those of the Internet Topology Zoo and
    of Shadow.

    With null an attribute is not read. An edge's delay is that of fibre along the great circle between
    the coordinates of its ends, unless the edge has one of its own. A file of SNDlib has other defaults:
    `x`, `y` and `capacity` in Mbit/s.
    """

    name: _Attribute | None = Field(
        default="label", description="attribute of nodes: the name; a node without it keeps its id"
    )
    latitude: _Attribute | None = Field(
        default="Latitude", description="attribute of nodes: degrees north, -90 to 90"
    )
    longitude: _Attribute | None = Field(
        default="Longitude", description="attribute of nodes: degrees east, -180 to 180"
    )
    rate: _Attribute | None = Field(
        default="LinkSpeedRaw", description="attribute of edges: the rate in multiples of `rate_unit`"
    )
    rate_unit: Annotated[Rate, Field(ge=1)] = Field(
        default=Rate("1 bit/s"), description="rate that 1 stands for, such as 1 Mbit/s"
    )
    delay: _Attribute | None = Field(
        default="latency",
        description="attribute of edges: the delay, with a unit or in multiples of `delay_unit`",
    )
    delay_unit: Annotated[Duration, Field(ge=1)] = Field(
        default=Duration("1 ms"), description="delay that 1 stands for"
    )
    jitter: _Attribute | None = Field(
        default="jitter", description="attribute of edges: half the width of a uniform jitter, as `delay`"
    )
    loss: _Attribute | None = Field(
        default="packet_loss", description="attribute of edges: the loss probability, from 0 to 1"
    )
    up: _Attribute | None = Field(
        default="host_bandwidth_up",
        description="attribute of nodes: largest rate of each link from the node, with a unit or as `rate`",
    )
    down: _Attribute | None = Field(
        default="host_bandwidth_down",
        description="attribute of nodes: largest rate of each link to the node, with a unit or as `rate`",
    )


class Topology(Model):
    """Generator of nodes (``n1``, ``n2``, ...) and links."""

    generator: Literal[
        "chain", "star", "tree", "grid", "ring", "full-mesh", "fat-tree", "random", "graph", "graphml"
    ] = Field(description="shape of the topology")
    nodes: Many | None = Field(default=None, description="number of nodes, including switches")
    depth: Annotated[int, Field(ge=1, le=20, strict=True)] | None = Field(
        default=None, description="tree: number of levels below the root"
    )
    fanout: Many | None = Field(default=None, description="tree: number of children of each inner node")
    rows: Many | None = Field(default=None, description="grid")
    columns: Many | None = Field(default=None, description="grid")
    k: Annotated[int, Field(ge=2, le=64, strict=True)] | None = Field(
        default=None, description="fat-tree: number of ports of a switch, even"
    )
    probability: Fraction | None = Field(
        default=None, description="random: probability of each link that is not in the spanning tree"
    )
    seed: Annotated[int, Field(ge=0, strict=True)] | None = Field(
        default=None, description="random: seed of the graph; by default the scenario's seed"
    )
    file: File | None = Field(default=None, description="graph: the GraphML, GML or SNDlib file")
    attributes: GraphAttributes | None = Field(
        default=None,
        description="graph: attributes that are read; by default those of the Topology Zoo and Shadow",
    )
    link: Direction = Field(
        default=Direction.model_construct(),
        description="properties of every generated link",
    )
    spacing: Length | None = Field(
        default=None, description="chain, star, grid, random: distance between nodes"
    )
    radio: Radio | None = Field(default=None, description="radio `wlan0` of every node, instead of links")
    node: Node = Field(default=Node.model_construct(), description="properties of every generated node")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,40}$")] = Field(
        default="n", description="prefix of node names"
    )
    switched: bool = Field(
        default=False,
        description="inner nodes are switches instead of routers; loops of them need "
        "`switch: {forwarding: shortest-path}`",
    )
    switch: Switch = Field(
        default=Switch.model_construct(),
        description="properties of every generated switch",
    )
