"""Addresses and prefixes of a scenario."""

from __future__ import annotations

from ipaddress import (
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    IPv6Network,
    ip_interface,
    ip_network,
)
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from airloom.units.reading import LONGEST, UnitError, refused, shown


def _address(value: Any) -> IPv4Interface | IPv6Interface:
    if isinstance(value, IPv4Interface | IPv6Interface):
        return value
    cure = "write it like 10.0.0.1/24 or fd00::1/64"
    if not isinstance(value, str):
        raise refused(UnitError("address.syntax", f"{shown(value)} is not an address", cure))
    try:
        address = ip_interface(value)
    except ValueError:
        raise refused(UnitError("address.syntax", f"{value[:LONGEST]!r} is not an address", cure)) from None
    if "/" not in value:
        raise refused(UnitError("address.prefix", f"the address {value!r} has no prefix length", cure))
    return address


def _prefix(value: Any) -> IPv4Network | IPv6Network:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    cure = "write it like 10.0.0.0/8 or fd00::/48"
    if not isinstance(value, str) or "/" not in value:
        raise refused(UnitError("address.syntax", f"{shown(value)} is not a prefix", cure))
    try:
        return ip_network(value)
    except ValueError as error:
        raise refused(
            UnitError("address.syntax", f"{value[:LONGEST]!r} is not a prefix: {error}", cure)
        ) from None


def _schema(pattern: str, example: str, title: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example], "title": title})


Address = Annotated[
    IPv4Interface | IPv6Interface,
    BeforeValidator(_address),
    PlainSerializer(str, return_type=str),
    _schema(r"^[0-9A-Fa-f:.]+/\d{1,3}$", "10.0.0.1/24", "address"),
]
"""An address with its prefix length, ``10.0.0.1/24``."""

Prefix = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(_prefix),
    PlainSerializer(str, return_type=str),
    _schema(r"^[0-9A-Fa-f:.]+/\d{1,3}$", "10.0.0.0/8", "prefix"),
]
"""A network, ``10.0.0.0/8``."""
