"""Routing of nodes: computed routes, or a routing protocol."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from airloom.scenario.model.base import Model
from airloom.units.quantities import Duration

Protocol = Literal["static", "none", "ospf", "isis", "bgp"]
"""Where a node's routes come from."""


class Routing(Model):
    """Routing with settings; the word of the protocol alone has all defaults."""

    protocol: Protocol = Field(
        description="static: computed routes; none: left to a program of the scenario; ospf, isis, bgp: by "
        "daemons of FRR with a generated configuration"
    )
    area: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = Field(
        default=None,
        description="ospf: area of the node, 0 by default; a link between 0 and another belongs to the other",
    )
    autonomous_system: Annotated[int, Field(ge=1, le=2**32 - 2, strict=True)] | None = Field(
        default=None,
        alias="as",
        description="bgp: number of the autonomous system; by default 64512, 64513, ... in the order of the "
        "nodes, one for each node",
    )
    hello: Duration | None = Field(
        default=None,
        description="time between hellos (bgp: keepalives); 1 s by default",
    )
    dead: Duration | None = Field(
        default=None,
        description="time without a hello until a neighbour is dead (bgp: hold time); 4 s by default",
    )


def _kind(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<settings>"


RoutingChoice = Annotated[
    Annotated[Protocol, Tag("<word>")] | Annotated[Routing, Tag("<settings>")], Discriminator(_kind)
]
"""The word of a protocol, or :class:`Routing`."""
