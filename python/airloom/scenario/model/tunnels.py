"""Tunnels: link ends at another laboratory or a kernel's tunnel, across a real network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from airloom.scenario.model.base import Model


def _host(value: Any) -> IPv4Address | IPv6Address:
    if isinstance(value, IPv4Address | IPv6Address):
        return value
    try:
        if isinstance(value, str):
            return ip_address(value)
    except ValueError:
        pass
    raise PydanticCustomError(
        "address.syntax",
        "{message}",
        {
            "message": f"{str(value)[:64]!r} is not the address of a host",
            "cure": "write it like 192.0.2.1 or 2001:db8::1, without a prefix length",
        },
    )


Host = Annotated[
    IPv4Address | IPv6Address,
    BeforeValidator(_host),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9A-Fa-f:.]+$",
            "examples": ["192.0.2.1"],
            "title": "host address",
        }
    ),
]
"""An address without a prefix length, ``192.0.2.1``."""


class Tunnel(Model):
    """Tunnel through a real network (the underlay) to another laboratory or to a kernel's tunnel."""

    kind: Literal["gre", "gretap", "vxlan"] = Field(
        description="gre: IP over GRE (RFC 2784, 2890), at one node; gretap: Ethernet over GRE; vxlan: "
        "Ethernet over UDP (RFC 7348)"
    )
    remote: Host = Field(description="address of the peer in the underlay")
    local: Host | None = Field(
        default=None, description="own address in the underlay; by default that of the route"
    )
    key: Annotated[int, Field(ge=0, lt=2**32, strict=True)] | None = Field(
        default=None,
        description="GRE: key, distinguishes tunnels between two machines; the same at both ends",
    )
    checksum: bool = Field(default=False, description="GRE: send checksums")
    sequence: bool = Field(
        default=False, description="GRE: send sequence numbers and drop packets that arrive out of order"
    )
    vni: Annotated[int, Field(ge=0, lt=2**24, strict=True)] | None = Field(
        default=None, description="VXLAN: network identifier; the same at both ends"
    )
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(
        default=None, description="VXLAN: UDP port of both ends; 4789 by default"
    )
    ttl: Annotated[int, Field(ge=1, le=255, strict=True)] = Field(
        default=64, description="time to live of packets in the underlay"
    )
    fragment: bool = Field(default=False, description="allow fragmentation in the underlay")
    namespace: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="network namespace of the underlay: a name of `ip netns`, or a path such as "
        "/proc/PID/ns/net; this machine's by default",
    )
