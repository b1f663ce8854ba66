"""The model of a scenario, the same for YAML and Python.

Every quantity has a unit (see :mod:`airloom.units.quantities`) and unknown keys are refused. This
module validates shapes; :mod:`airloom.planning.gate` checks names against each other.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from airloom.scenario.files import source_of
from airloom.scenario.kind_names import KindName
from airloom.scenario.model.base import (
    Count,
    File,
    ImagePath,
    Listed,
    Mapped,
    Model,
    Mtu,
    Name,
    by_name,
)
from airloom.scenario.model.cpus import Cpus, CpusChoice, Engine, EngineCpus, Processors
from airloom.scenario.model.jitter import (
    ExponentialJitter,
    Jitter,
    NormalJitter,
    ParetoJitter,
    TableJitter,
    UniformJitter,
)
from airloom.scenario.model.links import (
    Direction,
    GilbertElliott,
    GraphAttributes,
    Link,
    Loss,
    Switch,
    Topology,
)
from airloom.scenario.model.measure import Claim, Event, Iperf3, Limits, Measurement, Ping, Traffic
from airloom.scenario.model.media import (
    Access,
    Card,
    Codes,
    Errors,
    Fading,
    FrameError,
    Hops,
    HopSet,
    Leakage,
    LossPoint,
    Medium,
    Noise,
    Propagation,
    Radio,
    Shadowing,
    Slots,
    Tuning,
    Wall,
)
from airloom.scenario.model.motion import Mobility, Waypoint
from airloom.scenario.model.nodes import (
    Adapter,
    Guest,
    Interface,
    Mount,
    Node,
    Notifications,
    Offloads,
    Program,
    Publish,
    Ready,
    SharedGuest,
    Translation,
)
from airloom.scenario.model.openflow import Flow
from airloom.scenario.model.processors import Processor
from airloom.scenario.model.queues import Policer, Queue, QueueClass
from airloom.scenario.model.ready_tests import Test
from airloom.scenario.model.routing import Routing, RoutingChoice
from airloom.scenario.model.slices import Grant, GrantChange, HopGrant, Slice
from airloom.scenario.model.swept import Swept, Values
from airloom.scenario.model.tunnels import Tunnel
from airloom.scenario.model.turns import Turns
from airloom.scenario.shape import shaped
from airloom.scenario.source import Source, write
from airloom.units.addresses import Prefix
from airloom.units.quantities import Duration


class Pools(Model):
    """Pools of assigned addresses. With `ipv4: null` interfaces have the IPv4 addresses that are given."""

    ipv4: Prefix | None = Field(default=IPv4Network("10.0.0.0/8"), description="IPv4 prefix")
    ipv6: Prefix | None = Field(default=None, description="IPv6 prefix, such as fd00::/48")


class Scenario(Model):
    """A complete experiment."""

    model_config = ConfigDict(
        json_schema_extra={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Airloom scenario",
        }
    )

    name: Name = Field(description="name of the scenario and of its results' folder")
    description: str = Field(default="", description="free text")
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(
        default=1, description="seed of all random numbers"
    )
    time: Literal["wall", "virtual"] = Field(
        default="wall",
        description="`wall`: the machine's clock drives the run; `virtual`: the engine is the calendar of "
        "guests, and nothing waits for the machine",
    )
    duration: Duration | None = Field(
        default=None, description="length of the run; by default it ends when everything is done"
    )
    kind: KindName = Field(default="netns", description="kind of all nodes")
    image: ImagePath | None = Field(default=None, description="default image of containers")
    cpus: CpusChoice | None = Field(
        default=None,
        description="processors and scheduling of each node; its processors are also the engine's default",
    )
    engine: Engine = Field(default=Engine.model_construct(), description="the engine")
    guest: Guest = Field(
        default=Guest.model_construct(),
        description="default machine of `uml` and `qemu` nodes",
    )
    guests: Annotated[dict[Name, SharedGuest], Mapped] = Field(
        default={},
        description="guests that several nodes share, by name; a node refers to one with `inside`",
        json_schema_extra=by_name,
    )
    turns: Annotated[dict[Name, Turns], Mapped] = Field(
        default={}, description="guests that take turns on a processor, by name of the turns"
    )
    processors: Annotated[dict[Name, Processor], Mapped] = Field(
        default={}, description="in virtual time: modelled processors, on which work of guests takes time"
    )
    nodes: Annotated[dict[Name, Node], Mapped] = Field(
        default={}, description="nodes by name; an empty value means all defaults", json_schema_extra=by_name
    )
    switches: Annotated[dict[Name, Switch], Mapped] = Field(
        default={}, description="switches and hubs by name", json_schema_extra=by_name
    )
    tunnels: Annotated[dict[Name, Tunnel], Mapped] = Field(
        default={}, description="tunnels to other laboratories by name", json_schema_extra=by_name
    )
    links: Annotated[list[Link], Listed] = Field(
        default=[], description="links between nodes, switches and tunnels"
    )
    slices: Annotated[dict[Name, Slice], Mapped] = Field(
        default={},
        description="slices by name: tenants that share nodes with radios, or Open vSwitches",
        json_schema_extra=by_name,
    )
    media: Annotated[dict[Name, Medium], Mapped] = Field(
        default={}, description="radio media by name", json_schema_extra=by_name
    )
    topology: Topology | None = Field(
        default=None, description="generated nodes and links, in addition to the given ones"
    )
    addresses: Pools = Field(default=Pools.model_construct(), description="pools for assigned addresses")
    routing: RoutingChoice = Field(
        default="static", description="routing of all nodes that forward packets; hosts have static routes"
    )
    routes: Literal["hops", "delay"] = Field(default="hops", description="metric of computed routes")
    equal_paths: Literal["all", "one"] = Field(
        default="all",
        description="computed routes: all divides flows, by a hash of addresses and ports, among all "
        "shortest paths; one uses one of them",
    )
    programs: Annotated[list[Program], Listed] = Field(default=[], description="programs in the nodes")
    events: Annotated[list[Event], Listed] = Field(default=[], description="timed changes")
    measurements: Annotated[list[Measurement], Listed] = Field(default=[], description="measurements")
    sweep: Annotated[dict[str, Values], Mapped] = Field(
        default={},
        description="path of a value: its values, or a mapping with `values` and `label`; several paths "
        "make a grid",
    )
    repetitions: Count = Field(
        default=1, description="runs of every point of the sweep, each with its own derived seed"
    )
    limits: Limits = Field(default=Limits.model_construct(), description="limits of a valid run")
    claims: Annotated[list[Claim], Listed] = Field(default=[], description="claims about the results")

    @property
    def switch_slices(self) -> dict[str, Slice]:
        """Returns the slices that are networks on Open vSwitches."""
        return {name: one for name, one in self.slices.items() if one.has_switches}

    @property
    def swept(self) -> dict[str, Swept]:
        """Returns every swept path with its values and its label, if it has one."""
        return {
            path: one if isinstance(one, Swept) else Swept(values=one) for path, one in self.sweep.items()
        }

    def to_yaml(self) -> str:
        """Returns the scenario as YAML, without defaults. Reading it gives an equal scenario."""
        return write(self.model_dump(mode="json", by_alias=True, exclude_defaults=True))

    @classmethod
    def from_yaml(cls, text: str) -> Scenario:
        """Reads a scenario's text and validates its shape; :func:`airloom.check` checks everything."""
        return shaped(cls, Source.of_text(text))

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """Reads a scenario's file and validates its shape; :func:`airloom.check` checks everything."""
        return shaped(cls, source_of(Path(path)))


__all__ = [
    "Access",
    "Adapter",
    "Card",
    "Claim",
    "Codes",
    "Cpus",
    "Direction",
    "Engine",
    "EngineCpus",
    "Errors",
    "Event",
    "ExponentialJitter",
    "Fading",
    "File",
    "Flow",
    "FrameError",
    "GilbertElliott",
    "Grant",
    "GrantChange",
    "GraphAttributes",
    "Guest",
    "HopGrant",
    "HopSet",
    "Hops",
    "Interface",
    "Iperf3",
    "Jitter",
    "Leakage",
    "Limits",
    "Link",
    "Loss",
    "LossPoint",
    "Measurement",
    "Medium",
    "Mobility",
    "Model",
    "Mount",
    "Mtu",
    "Node",
    "Noise",
    "NormalJitter",
    "Notifications",
    "Offloads",
    "ParetoJitter",
    "Ping",
    "Policer",
    "Pools",
    "Processor",
    "Processors",
    "Program",
    "Propagation",
    "Publish",
    "Queue",
    "QueueClass",
    "Radio",
    "Ready",
    "Routing",
    "Scenario",
    "Shadowing",
    "SharedGuest",
    "Slice",
    "Slots",
    "Swept",
    "Switch",
    "TableJitter",
    "Test",
    "Topology",
    "Traffic",
    "Translation",
    "Tuning",
    "Tunnel",
    "Turns",
    "UniformJitter",
    "Wall",
    "Waypoint",
]
