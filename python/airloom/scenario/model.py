"""What an experimenter can say: one model for YAML and Python.

Every quantity carries a unit (see :mod:`airloom.units`), unknown keys are refused, and names are
checked against each other by :mod:`airloom.scenario.gate`, not here: this module knows shapes only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from airloom.units import Address, Duration, Fraction, Rate, Size
from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Base of all parts of a scenario: frozen, and strict about unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class UniformJitter(Model):
    """Delay varies evenly in plus or minus ``uniform``."""

    uniform: Duration


class NormalJitter(Model):
    """Delay varies normally with standard deviation ``normal``."""

    normal: Duration


class ParetoJitter(Model):
    """Delay has a Pareto tail: ``pareto * (u**(-1/shape) - 1)`` is added."""

    pareto: Duration
    shape: Annotated[float, Field(gt=1)] = 3.0


class TableJitter(Model):
    """Delay varies like the values in a file, one duration a line."""

    table: str


Jitter = UniformJitter | NormalJitter | ParetoJitter | TableJitter


class GilbertElliott(Model):
    """Bursty loss: a good and a bad state (Gilbert 1960, Elliott 1963)."""

    good_to_bad: Fraction
    bad_to_good: Fraction
    loss_good: Fraction = 0.0
    loss_bad: Fraction = 1.0


class Queue(Model):
    """Where frames wait for the wire."""

    packets: Annotated[int, Field(ge=1)] | None = None
    size: Size | None = None
    time: Duration | None = None
    discipline: Literal["drop-tail", "red", "codel", "fq-codel"] = "drop-tail"
    ecn: bool = False
    red_min: Size | None = None
    red_max: Size | None = None
    red_probability: Fraction = 0.1
    red_weight: Fraction = 0.002
    target: Duration = Field(default=5_000_000, description="CoDel: acceptable standing delay")
    interval: Duration = Field(default=100_000_000, description="CoDel: sliding window")
    quantum: Size = Field(default=1514, description="FQ-CoDel: octets a flow sends in its turn")
    flows: Annotated[int, Field(ge=1, le=65536)] = 1024


class Direction(Model):
    """What can be said of one direction of a link; what is left out is taken from the link."""

    rate: Rate | None = None
    trace: str | None = Field(default=None, description="file in mahimahi's format, instead of a rate")
    delay: Duration | None = None
    jitter: Jitter | None = None
    jitter_reorders: bool | None = None
    loss: Fraction | GilbertElliott | None = None
    duplicate: Fraction | None = None
    corrupt: Fraction | None = None
    reorder: Fraction | None = None
    mtu: Annotated[int, Field(ge=68, le=9216)] | None = None
    overhead: Size | None = None
    queue: Queue | None = None
    segments: Literal["timed", "carried"] | None = None


class Link(Direction):
    """A point-to-point wire between two ends, each ``node``, ``node:interface``, switch or hub."""

    ends: tuple[str, str]
    name: str | None = None
    forward: Direction | None = Field(default=None, description="differences from first end to second")
    backward: Direction | None = Field(default=None, description="differences from second end to first")
    addresses: tuple[list[Address], list[Address]] | None = None


class Ready(Model):
    """When a program counts as ready: the first check given that succeeds."""

    log: str | None = Field(default=None, description="regular expression found in its output")
    port: int | None = Field(default=None, description="TCP port that accepts connections in the node")
    command: str | None = Field(default=None, description="command in the node that exits with 0")
    within: Duration = 10_000_000_000


class Program(Model):
    """An unmodified program that runs in a node."""

    node: str
    run: str | list[str] = Field(description="a command line, or a list of words")
    name: str | None = None
    at: Duration = Field(default=0, description="start, counted from the start of the run")
    env: dict[str, str] = {}
    folder: str | None = Field(default=None, description="working folder; the node's own /tmp by default")
    ready: Ready | None = None
    expect: int | None = Field(default=0, description="exit code that is right; null if any is")
    until_end: bool = Field(default=False, description="a service: it must live until the run stops it")
    restart: Literal["never", "on-failure", "always"] = "never"


class Node(Model):
    """One virtual node."""

    kind: Literal["netns", "native"] | None = Field(default=None, description="how it is made")
    forwarding: bool | None = Field(default=None, description="router; by default if it has two interfaces")
    cpu: Fraction | None = Field(default=None, description="share of one processor, '50 %' or 0.5")
    routing: Literal["static", "none"] = Field(default="static", description="none: left to a daemon")
    interfaces: dict[str, Interface] = {}
    files: dict[str, str] = Field(default={}, description="path in the node: content")
    sysctl: dict[str, str | int] = {}


class Interface(Model):
    """What can be said of one interface of a node."""

    addresses: list[Address] = []
    mac: str | None = None
    mtu: Annotated[int, Field(ge=68, le=9216)] | None = None
    real: str | None = Field(default=None, description="name of a host interface: hardware in the loop")


class Switch(Model):
    """A layer-2 element inside the engine."""

    kind: Literal["switch", "hub"] = "switch"
    ageing: Duration = 300_000_000_000
    addresses: Annotated[int, Field(ge=1)] = 8192


class Topology(Model):
    """A generator of nodes and links."""

    generator: Literal[
        "chain", "star", "tree", "grid", "ring", "full-mesh", "fat-tree", "random", "graphml"
    ]
    nodes: Annotated[int, Field(ge=1)] | None = None
    depth: Annotated[int, Field(ge=1)] | None = None
    fanout: Annotated[int, Field(ge=1)] | None = None
    rows: Annotated[int, Field(ge=1)] | None = None
    columns: Annotated[int, Field(ge=1)] | None = None
    k: Annotated[int, Field(ge=2)] | None = Field(default=None, description="fat-tree: ports a switch")
    probability: Fraction | None = None
    file: str | None = None
    link: Direction = Direction()
    prefix: str = "n"
    switched: bool = Field(default=False, description="inner nodes are switches instead of routers")


class Event(Model):
    """Something that changes at a given moment; exactly one action."""

    at: Duration
    link: str | None = None
    node: str | None = None
    program: str | None = None
    set: Direction | None = Field(default=None, description="link: new properties")
    direction: Literal["both", "forward", "backward"] = "both"
    action: Literal["up", "down", "start", "stop", "signal"] | None = None
    signal: str | None = None


class Ping(Model):
    """Round-trip time by the system's ping."""

    source: str = Field(alias="from")
    to: str
    count: Annotated[int, Field(ge=1)] = 10
    interval: Duration = 200_000_000
    size: Size = 56
    at: Duration = 0


class Iperf3(Model):
    """Throughput by the system's iperf3."""

    source: str = Field(alias="from")
    to: str
    duration: Duration = 10_000_000_000
    protocol: Literal["tcp", "udp"] = "tcp"
    rate: Rate | None = Field(default=None, description="UDP: offered load")
    size: Size | None = None
    streams: Annotated[int, Field(ge=1)] = 1
    reverse: bool = False
    congestion: str | None = Field(default=None, description="TCP congestion control, such as cubic")
    at: Duration = 0


class Traffic(Model):
    """Throughput, delay, jitter and loss by Airloom's own generator, packet by packet."""

    source: str = Field(alias="from")
    to: str
    protocol: Literal["udp", "tcp", "rtp"] = "udp"
    pattern: Literal["constant", "poisson", "on-off", "trace"] = "constant"
    rate: Rate | None = Field(default=None, description="offered load, of the payload")
    interval: Duration | None = Field(default=None, description="between packets, instead of a rate")
    size: Size = 1470
    duration: Duration = 10_000_000_000
    on: Duration | None = None
    off: Duration | None = None
    trace: str | None = None
    at: Duration = 0


class Measurement(Model):
    """One measurement; exactly one tool."""

    name: str
    ping: Ping | None = None
    iperf3: Iperf3 | None = None
    traffic: Traffic | None = None


class Claim(Model):
    """Something that the results must show, such as ``goodput.throughput >= 94 Mbit/s``."""

    id: str
    statement: str
    check: str = Field(description="measurement.metric, a comparison, a quantity")
    source: str | None = None


class Limits(Model):
    """What lateness and host load a valid run may have."""

    lateness_p99: Duration = 1_000_000
    lateness_max: Duration = 20_000_000
    cpu_pressure: Fraction = 0.20
    steal: Fraction = 0.05


class Scenario(Model):
    """The whole description of an experiment."""

    name: str
    description: str = ""
    seed: int = 1
    duration: Duration | None = Field(default=None, description="by default until everything is done")
    kind: Literal["netns", "native"] = "netns"
    nodes: dict[str, Node] = {}
    switches: dict[str, Switch] = {}
    links: list[Link] = []
    topology: Topology | None = None
    addresses: dict[Literal["ipv4", "ipv6"], str | None] = Field(
        default={"ipv4": "10.0.0.0/8", "ipv6": None}, description="where addresses are taken from"
    )
    programs: list[Program] = []
    events: list[Event] = []
    measurements: list[Measurement] = []
    sweep: dict[str, list[Any]] = Field(default={}, description="path of a value: the values it takes")
    repetitions: Annotated[int, Field(ge=1)] = 1
    limits: Limits = Limits()
    claims: list[Claim] = []
