"""Slices: several tenants on the same nodes and switches, each with a share of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from airloom.scenario.model.base import Listed, Model, Name
from airloom.scenario.model.media import Channel, Radio
from airloom.scenario.model.nodes import Node
from airloom.scenario.model.openflow import Controller, Flow
from airloom.units.quantities import Power


class Grant(Model):
    """What a slice may use. Admission refuses more than there is, and radios are held to it in the run."""

    nodes: Annotated[list[str], Field(min_length=1)] = Field(
        description="nodes that it has a part of; ``node:radio`` claims a certain radio there"
    )
    channels: Annotated[list[Channel], Field(min_length=1)] = Field(
        description="numbers or frequencies; its radios begin on the first"
    )
    power: Power | None = Field(default=None, description="the most that its radios may send with")


class Slice(Model):
    """A tenant's share of nodes and spectrum, or an isolated logical network on Open vSwitches, or both.

    With a ``grant``, its part on a node is a sliver: a node of its own, called ``NODE-SLICE``, with one of
    the shared node's radios and all else that is said of the shared node. More can be said of one sliver
    by its name under ``nodes``.
    """

    grant: Grant | None = Field(default=None, description="nodes and spectrum that it may use")
    radio: Radio = Field(default=Radio(), description="what its radios have in common; before the nodes'")
    node: Node = Field(default=Node(), description="what its slivers have in common; before the nodes'")
    controllers: Annotated[list[Controller], Listed] = Field(
        default=[], description="of this slice alone; without any, its switches learn by themselves"
    )
    links: Annotated[list[Name], Listed] = Field(
        default=[], description="names of the links it reaches; by default all of the Open vSwitches"
    )
    vlan: Annotated[int, Field(ge=1, le=4094, strict=True)] | None = Field(
        default=None,
        description="802.1Q tag of its frames on links that it shares; its controllers see them untagged",
    )
    flows: Annotated[list[Flow], Listed] = Field(
        default=[], description="what of the traffic is its own; by default all"
    )
    rest: bool = Field(default=False, description="all traffic on its links that no other slice has")

    @property
    def has_switches(self) -> bool:
        """Whether it is a network on Open vSwitches; a grant alone makes none."""
        own = {"controllers", "links", "vlan", "flows", "rest"}
        return self.grant is None or bool(own & self.model_fields_set)
