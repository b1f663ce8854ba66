"""Nodes, their interfaces, and the programs that run in them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import (
    Folder,
    ImagePath,
    Kernel,
    KindName,
    Listed,
    Mapped,
    Model,
    Mtu,
    Name,
    Names,
    Place,
    by_name,
)
from airloom.scenario.model.jitter import Jitter
from airloom.scenario.model.media import Mobility, Position, Radio
from airloom.units.addresses import Address
from airloom.units.quantities import Duration, Share, Size


class Adapter(Model):
    """What a network adapter and the host behind it add to a wire; nothing by default.

    For formulas and sources see "Equipment" in docs/models.md.
    """

    moderation: Duration = Field(
        default=Duration(0), description="least time between two receive interrupts; what comes sooner waits"
    )
    service: Jitter | None = Field(
        default=None, description="from the interrupt to the program, drawn for each frame; below 0 is 0"
    )
    tick: Duration = Field(
        default=Duration(0), description="granularity of the clock: nothing is received between its ticks"
    )
    gap: Duration = Field(
        default=Duration(0), description="rest after each frame sent, beyond the wire's own gap"
    )


class Interface(Model):
    """What can be said of one interface of a node."""

    addresses: Annotated[list[Address], Listed] = Field(
        default=[], description="with prefix lengths; assigned if none is given"
    )
    mac: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")] | None = Field(
        default=None, description="unicast address; assigned by default"
    )
    mtu: Mtu | None = Field(default=None, description="by default the link's, or 1500")
    real: Annotated[str, Field(pattern=r"^[^\s/:]{1,15}$")] | None = Field(
        default=None, description="name of a host interface: hardware in the loop"
    )
    adapter: Adapter | None = Field(default=None, description="model of a real adapter; none by default")


class Guest(Model):
    """The machine of a node that has a kernel of its own; a node says what differs from the scenario's."""

    memory: Annotated[Size, Field(ge=32 << 20, le=64 << 30)] | None = Field(
        default=None, description="of the machine; by default 64 MiB for uml, 256 MiB for qemu"
    )
    network: Literal["vhost", "tap"] | None = Field(
        default=None,
        description="vhost: a device of the engine's own, uml's default; tap: the host's kernel, qemu's",
    )
    kernel: Kernel | None = Field(
        default=None,
        description="a file; built: what `make kernel` made, for uml; by default the distribution's",
    )
    root: Place | None = Field(
        default=None, description="folder or disk image; by default the host's files, read-only"
    )
    processors: Annotated[list[Annotated[int, Field(ge=0, le=1023, strict=True)]], Listed] = Field(
        default=[], description="of the host that it may run on, by number; by default all"
    )
    nice: Annotated[int, Field(ge=-20, le=19, strict=True)] = Field(
        default=0, description="of the machine among the host's processes; below 0 needs root"
    )
    policy: Literal["other", "batch", "idle", "fifo", "round-robin"] = Field(
        default="other", description="how the host schedules it; the last two need root"
    )
    priority: Annotated[int, Field(ge=0, le=99, strict=True)] = Field(
        default=0, description="1 to 99 with fifo and round-robin"
    )


class SharedGuest(Guest):
    """A guest of which several nodes are namespaces; it says what differs from the scenario's."""

    kind: Literal["uml", "qemu"] | None = Field(default=None, description="by default the scenario's")
    cpu: Annotated[Share, Field(gt=0)] | None = Field(
        default=None, description="share of one processor, '50 %' or 0.5; needs root"
    )


class Node(Model):
    """One virtual node."""

    kind: KindName | None = Field(default=None, description="by default the scenario's")
    image: ImagePath | None = Field(
        default=None, description="container: folder or tar of an OCI image, `PATH` or `PATH:TAG`"
    )
    forwarding: bool | None = Field(default=None, description="router; by default if it has two interfaces")
    cpu: Annotated[Share, Field(gt=0)] | None = Field(
        default=None, description="share of one processor, '50 %' or 0.5; needs root"
    )
    guest: Guest | None = Field(default=None, description="its machine, where that is not the scenario's")
    inside: Name | None = Field(
        default=None, description="guest that it shares with other nodes, one of the scenario's `guests`"
    )
    routing: Literal["static", "none"] = Field(default="static", description="none: left to a daemon")
    interfaces: Annotated[dict[str, Interface], Mapped] = Field(
        default={},
        description="by name; eth0, eth1, ... in the order of the links unless a link's end names one",
        json_schema_extra=by_name,
    )
    radios: Annotated[dict[str, Radio], Mapped] = Field(
        default={}, description="by interface name, such as wlan0", json_schema_extra=by_name
    )
    position: Position | None = Field(default=None, description="where its radios are: east, north, height")
    mobility: Mobility | None = Field(default=None, description="how it moves; by default not at all")
    files: Annotated[dict[str, str], Mapped] = Field(
        default={}, description="absolute path in the node: content"
    )
    sysctl: Annotated[dict[str, str | int], Mapped] = Field(
        default={}, description="such as net.ipv4.tcp_congestion_control: cubic"
    )


class Ready(Model):
    """When a program counts as ready: the check that is given succeeds."""

    log: str | None = Field(default=None, description="regular expression found in its output")
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(
        default=None, description="TCP port that accepts connections in the node"
    )
    command: str | None = Field(default=None, description="command in the node that exits with 0")
    within: Duration = Field(default=Duration("10 s"), description="the longest wait")


class Program(Model):
    """An unmodified program that runs in a node."""

    node: str = Field(description="name of the node, or `$first`, `$last`")
    run: str | Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None,
        description="a command line, or a list of words; in a container by default what its image runs",
    )
    name: Name | None = Field(default=None, description="by default NODE-PROGRAM, such as r1-babeld")
    at: Duration = Field(
        default=Duration(0),
        description="start, counted from the start of the run; with `after`, the earliest",
    )
    after: Annotated[Names, Listed] = Field(
        default=[],
        description="names of programs that it waits for: until each is ready; without `ready`, until it "
        "has ended as expected or, as a service, has started",
    )
    env: Annotated[dict[str, str], Mapped] = Field(
        default={}, description="environment, beside the node's own"
    )
    folder: Folder | None = Field(
        default=None, description="working folder, of this machine; the node's own /tmp by default"
    )
    ready: Ready | None = Field(
        default=None, description="when it counts as ready; measurements, and programs `after` it, wait"
    )
    expect: Annotated[int, Field(ge=0, le=255, strict=True)] | None = Field(
        default=0, description="exit code that is right; null if any is"
    )
    until_end: bool = Field(default=False, description="a service: it must live until the run stops it")
    restart: Literal["never", "on-failure", "always"] = Field(
        default="never", description="when it ended by itself"
    )
