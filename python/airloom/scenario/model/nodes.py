"""Nodes, their interfaces, and the programs that run in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from airloom.scenario.kind_names import KindName
from airloom.scenario.model.base import (
    Folder,
    ImagePath,
    Kernel,
    Listed,
    Mapped,
    Model,
    Mtu,
    Name,
    Names,
    Place,
    by_name,
)
from airloom.scenario.model.cpus import CpusChoice, Policy
from airloom.scenario.model.jitter import Jitter
from airloom.scenario.model.media import Radio
from airloom.scenario.model.motion import Mobility, Position
from airloom.scenario.model.routing import RoutingChoice
from airloom.units.addresses import Address
from airloom.units.quantities import Duration, Share, Size


class Adapter(Model):
    """Model of a network adapter and its host, added to a wire; off by default.

    Formulas and sources: "Equipment" in docs/inside/models.md.
    """

    moderation: Duration = Field(
        default=Duration(0),
        description="least time between two receive interrupts; frames wait for the next one",
    )
    service: Jitter | None = Field(
        default=None, description="time from the interrupt to the program, drawn for each frame; at least 0"
    )
    tick: Duration = Field(
        default=Duration(0), description="clock granularity: frames are received at multiples of it"
    )
    gap: Duration = Field(
        default=Duration(0), description="pause after each sent frame, in addition to the interframe gap"
    )


class Offloads(Model):
    """What a node's kernel leaves to a network adapter, in the terms of ethtool(8).

    Without offloads, raw sockets and captures in the node see the frames of the wire: none longer than
    its MTU allows, each with its own checksum.
    """

    transmit: bool = Field(
        default=True, description="of sent frames: checksums (`tx`) and segmentation (`tso`, `gso`)"
    )
    receive: bool = Field(
        default=True, description="of received frames: checksums (`rx`) and merging (`gro`)"
    )


def _offloads_kind(value: Any) -> str:
    return "<all>" if isinstance(value, bool) else "<settings>"


OffloadsChoice = Annotated[
    Annotated[Annotated[bool, Field(strict=True)], Tag("<all>")] | Annotated[Offloads, Tag("<settings>")],
    Discriminator(_offloads_kind),
]
"""All or none, or :class:`Offloads`."""


class Interface(Model):
    """Settings of one interface of a node."""

    addresses: Annotated[list[Address], Listed] = Field(
        default=[], description="addresses with prefix lengths; assigned by default"
    )
    mac: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")] | None = Field(
        default=None, description="unicast MAC address; assigned by default"
    )
    mtu: Mtu | None = Field(
        default=None, description="largest layer-3 packet in octets; by default the link's, or 1500"
    )
    real: Annotated[str, Field(pattern=r"^[^\s/:]{1,15}$")] | None = Field(
        default=None, description="name of a real interface of the host"
    )
    adapter: Adapter | None = Field(default=None, description="model of a network adapter; none by default")
    offloads: OffloadsChoice | None = Field(
        default=None,
        description="false: none, and raw sockets see the frames of the wire; by default the node's",
    )


class Notifications(Model):
    """When a guest is notified of the buffers that its devices have returned (interrupt coalescing)."""

    mode: Literal["off", "count", "time", "adaptive"] = Field(
        default="off",
        description="off: at once; count: for every `frames` buffers; time: once `time` after the first; "
        "adaptive: as count, but at once while buffers are rarer than two in `time`",
    )
    frames: Annotated[int, Field(ge=2, le=1024, strict=True)] | None = Field(
        default=None,
        description="count, adaptive: buffers of one notification; by default 8 with count, 32 with adaptive",
    )
    time: Duration | None = Field(
        default=None,
        description="longest wait of a buffer for its notification, 1 us to 100 ms; by default 1 ms with "
        "count, else 200 us",
    )


class Translation(Model):
    """How the addresses of a guest's buffers are translated for its devices."""

    mode: Literal["direct", "bounce", "strict", "cached", "merged"] = Field(
        default="direct",
        description="direct: all memory is mapped once; bounce: each buffer is copied once more; strict: "
        "each buffer is mapped and unmapped; cached: mapped pages stay in a cache of the machine; merged: in "
        "one cache of all machines with this mode",
    )
    entries: Annotated[int, Field(ge=4, le=1024, strict=True)] | None = Field(
        default=None, description="cached, merged: pages in the cache, a multiple of 4; by default 64"
    )


class Guest(Model):
    """Machine of a node with its own kernel. A node's settings override the scenario's."""

    memory: Annotated[Size, Field(ge=32 << 20, le=64 << 30)] | None = Field(
        default=None, description="memory of the machine; by default 64 MiB (uml), 256 MiB (qemu)"
    )
    network: Literal["vhost", "tap"] | None = Field(
        default=None,
        description="vhost: vhost-user device of the engine, default of uml; tap: through the host's kernel, "
        "default of qemu",
    )
    kernel: Kernel | None = Field(
        default=None,
        description="file; built: that of `airloom kernel build`, uml only; by default the distribution's",
    )
    append: str | None = Field(
        default=None,
        description="words for the kernel's command line, such as `mac80211_hwsim.channels=2`; at most 24; "
        "those by which the machine is started are refused",
    )
    root: Place | None = Field(
        default=None, description="root folder or disk image; by default the host's files, read-only"
    )
    processors: Annotated[list[Annotated[int, Field(ge=0, le=1023, strict=True)]], Listed] = Field(
        default=[], description="numbers of the host's processors that it may use; all by default"
    )
    nice: Annotated[int, Field(ge=-20, le=19, strict=True)] = Field(
        default=0, description="nice value on the host; below 0 needs root"
    )
    policy: Policy = Field(
        default="other", description="scheduling policy on the host; fifo and round-robin need root"
    )
    priority: Annotated[int, Field(ge=0, le=99, strict=True)] = Field(
        default=0, description="priority with fifo and round-robin: 1 to 99"
    )
    notifications: Notifications | None = Field(
        default=None, description="notifications by the engine's devices of the machine; at once by default"
    )
    translation: Translation | None = Field(
        default=None,
        description="translation of addresses by the engine's devices of the machine; direct by default",
    )


class SharedGuest(Guest):
    """Guest whose namespaces are several nodes. Its settings override the scenario's `guest`."""

    kind: Literal["uml", "qemu"] | None = Field(default=None, description="kind; by default the scenario's")
    cpu: Annotated[Share, Field(gt=0)] | None = Field(
        default=None, description="share of a processor, `50 %` or 0.5; needs root"
    )
    cpus: CpusChoice | None = Field(
        default=None, description="processors and scheduling of the machine; by default the scenario's"
    )


class Mount(Model):
    """File or folder of this machine in a node (bind mount)."""

    source: Place = Field(description="file or folder of this machine")
    target: str = Field(description="absolute path in the node, created if missing")
    mode: Literal["ro", "rw"] = Field(
        default="ro",
        description="ro: read-only, an input; rw: programs of the node change it here",
    )


class Publish(Model):
    """Port of a node that this machine offers, by a relay outside of the emulated network."""

    port: Annotated[int, Field(ge=1, le=65535, strict=True)] = Field(
        description="port in the node; programs must listen on its loopback or on all addresses"
    )
    host_port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(
        default=None, description="port of this machine; by default the same"
    )
    host_address: Annotated[str, Field(pattern=r"^[0-9.]+$|^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$")] = Field(
        default="127.0.0.1",
        description="address of this machine; with 0.0.0.0 the port is open to the networks of this machine",
    )
    protocol: Literal["tcp", "udp"] = Field(default="tcp", description="transport protocol")


class Node(Model):
    """One virtual node."""

    kind: KindName | None = Field(default=None, description="kind; by default the scenario's")
    image: ImagePath | None = Field(
        default=None,
        description="container: folder or tar of an OCI image, `PATH` or `PATH:TAG`; or `docker://NAME:TAG` "
        "in a registry",
    )
    forwarding: bool | None = Field(
        default=None, description="the node forwards packets; by default if it has two interfaces"
    )
    cpu: Annotated[Share, Field(gt=0)] | None = Field(
        default=None, description="share of a processor, `50 %` or 0.5; needs root"
    )
    cpus: CpusChoice | None = Field(
        default=None,
        description="processors and scheduling of its processes or its machine; by default the scenario's",
    )
    guest: Guest | None = Field(default=None, description="differences from the scenario's `guest`")
    inside: Name | None = Field(
        default=None, description="guest that the node shares with others, one of the scenario's `guests`"
    )
    routing: RoutingChoice | None = Field(
        default=None,
        description="protocol, or its settings; by default the scenario's if the node forwards packets, "
        "otherwise static",
    )
    interfaces: Annotated[dict[str, Interface], Mapped] = Field(
        default={},
        description="interfaces by name; links use eth0, eth1, ... in their order unless an end names one",
        json_schema_extra=by_name,
    )
    offloads: OffloadsChoice = Field(
        default=True, description="offloads of its interfaces; false: none, as `ethtool -K` sets them"
    )
    radios: Annotated[dict[str, Radio], Mapped] = Field(
        default={}, description="radios by interface name, such as wlan0", json_schema_extra=by_name
    )
    position: Position | None = Field(default=None, description="position of its radios: east, north, height")
    mobility: Mobility | None = Field(default=None, description="movement; none by default")
    files: Annotated[dict[str, str], Mapped] = Field(
        default={}, description="absolute path of a file in the node: content"
    )
    mounts: Annotated[list[Mount], Listed] = Field(
        default=[], description="netns, native, container: files and folders of this machine in the node"
    )
    publish: Annotated[list[Publish], Listed] = Field(
        default=[], description="netns, native, container: ports of the node that this machine offers"
    )
    collect: Annotated[list[str], Field(max_length=100), Listed] = Field(
        default=[],
        description="absolute paths in the node, with `*`, `?` and `[...]`: files, and folders with all "
        "below, that are copied to the folder of results after the run",
    )
    sysctl: Annotated[dict[str, str | int], Mapped] = Field(
        default={}, description="kernel setting: value, such as net.ipv4.tcp_congestion_control: cubic"
    )


class Ready(Model):
    """Readiness check of a program. The given check must succeed."""

    log: str | None = Field(
        default=None,
        description="regular expression (RE2, at most 1000 characters) that matches at most 4096 octets of "
        "its output; `^` and `$` match at each line",
    )
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(
        default=None, description="TCP port in the node that accepts connections"
    )
    command: str | None = Field(default=None, description="command in the node that ends with exit code 0")
    within: Duration = Field(default=Duration("10 s"), description="time-out")


class Program(Model):
    """An unmodified program that runs in a node."""

    node: str = Field(description="name of the node, or `$first`, `$last`")
    run: str | Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None,
        description="command line, or list of arguments; in a container by default the image's command",
    )
    name: Name | None = Field(default=None, description="name; by default NODE-PROGRAM, such as r1-babeld")
    at: Duration = Field(
        default=Duration(0),
        description="start, from time zero of the run; with `after`, the earliest",
    )
    after: Annotated[Names, Listed] = Field(
        default=[],
        description="programs that it waits for until each is ready; without `ready`, until it has ended as "
        "expected or, as a service, has started",
    )
    env: Annotated[dict[str, str], Mapped] = Field(default={}, description="additional environment variables")
    folder: Folder | None = Field(
        default=None, description="working folder, a folder of this machine; the node's /tmp by default"
    )
    ready: Ready | None = Field(
        default=None, description="readiness check; measurements, and programs with `after`, wait for it"
    )
    expect: Annotated[int, Field(ge=0, le=255, strict=True)] | None = Field(
        default=0, description="expected exit code; null for any"
    )
    until_end: bool = Field(default=False, description="service: must run until the run stops it")
    restart: Literal["never", "on-failure", "always"] = Field(
        default="never", description="restart after it ended by itself"
    )
