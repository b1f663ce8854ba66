"""OpenFlow: controllers of a switch, and flows of a slice."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from airloom.scenario.model.base import Model
from airloom.units.addresses import Prefix

_ADDRESS = re.compile(r"tcp:(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):([0-9]{1,5})", re.ASCII)


def address_of(controller: str) -> tuple[str, int]:
    """Returns host (a node's name, a host name or an address) and TCP port of ``tcp:HOST:PORT``."""
    found = _ADDRESS.fullmatch(controller)
    if found is None or not 1 <= int(found.group(2)) <= 65535:
        raise ValueError(controller)
    return found.group(1).strip("[]"), int(found.group(2))


def _controller(value: str) -> str:
    try:
        address_of(value)
    except ValueError:
        raise PydanticCustomError(
            "controller.syntax",
            "{message}",
            {
                "message": f"{value[:60]!r} is no address of a controller",
                "cure": "write it tcp:NODE:PORT or tcp:ADDRESS:PORT, such as tcp:c0:6653",
            },
        ) from None
    return value


Controller = Annotated[str, AfterValidator(_controller)]
"""``tcp:HOST:PORT``; HOST is a node, or any other host that this machine can reach."""
OpenFlow = Literal["OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"]
"""A version of OpenFlow, by its name in Open vSwitch."""
PROTOCOLS: tuple[OpenFlow, ...] = ("OpenFlow10", "OpenFlow13")
Datapath = Annotated[int, Field(ge=1, lt=2**64, strict=True)]
"""Datapath id, which identifies a switch to controllers."""


class Flow(Model):
    """Traffic of a slice, in both directions. Omitted keys match everything."""

    protocol: Literal["arp", "ipv4", "ipv6", "icmp", "icmp6", "tcp", "udp"] | None = Field(
        default=None, description="protocol of the frame"
    )
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(
        default=None, description="TCP or UDP port at either end"
    )
    network: Prefix | None = Field(default=None, description="IPv4 prefix of both ends; includes their ARP")


def flow_words(flow: Any) -> str:
    """Returns a flow as shown in messages: ``tcp port 80``."""
    words = [] if flow.protocol is None else [flow.protocol]
    words += [] if flow.port is None else [f"port {flow.port}"]
    words += [] if flow.network is None else [f"network {flow.network}"]
    return " ".join(words) or "everything"
