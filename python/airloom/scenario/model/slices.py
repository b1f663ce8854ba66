"""Slices: several tenants on the same nodes and switches, each with its own share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import Listed, Model, Name
from airloom.scenario.model.media import Channel, Radio
from airloom.scenario.model.nodes import Node
from airloom.scenario.model.openflow import Controller, Flow
from airloom.units.quantities import Power

OwnSlots = Annotated[list[Annotated[int, Field(ge=0, le=255, strict=True)]], Field(min_length=1)]
Weight = Annotated[int, Field(ge=1, le=1000, strict=True)]


class HopGrant(Model):
    """The hopping sequence of a slice."""

    set: Name = Field(description="set of the medium's ``hops``")
    sequence: Annotated[int, Field(ge=0, le=78, strict=True)] = Field(
        description="number of the sequence in the set, from 0"
    )


class Grant(Model):
    """Resources of a slice. The check refuses a grant that does not fit; the run enforces it on radios."""

    nodes: Annotated[list[str], Listed] = Field(
        description="nodes with a sliver; ``node:radio`` asks for a certain radio; a node named twice has "
        "two slivers, with a radio each"
    )
    standby: Annotated[list[str], Listed] = Field(
        default=[],
        description="nodes with a sliver that has no radio at the start; its owner may give it one during "
        "the run",
    )
    channels: Annotated[list[Channel], Field(min_length=1)] = Field(
        description="channel numbers or frequencies; radios start on the first"
    )
    power: Power | None = Field(default=None, description="largest transmit power")
    slots: OwnSlots | None = Field(
        default=None, description="numbers of its time slots, from 0; by default it sends at any time"
    )
    hold: bool = Field(
        default=True,
        description="frames wait for the slots; otherwise ``police`` decides about frame exchanges outside",
    )
    airtime_weight: Weight | None = Field(
        default=None,
        description="weight of its airtime against that of the other slices with a weight on its channel; "
        "without one it contends as any station",
    )
    hops: HopGrant | None = Field(
        default=None,
        description="hopping sequence, whose channels are all in ``channels``; by default no hopping",
    )
    code: Annotated[int, Field(ge=0, le=127, strict=True)] | None = Field(
        default=None, description="number of its code, from 0; by default its radios do not spread"
    )


class GrantChange(Model):
    """New limits of a slice's grant from an exact time on; others stay."""

    nodes: Annotated[list[str] | None, Listed] = Field(
        default=None,
        description="nodes where the slice has a radio from now on; its slivers elsewhere have none",
    )
    channels: Annotated[list[Channel], Field(min_length=1)] | None = Field(
        default=None,
        description="channels instead of the old ones; a radio on another one is tuned to the first",
    )
    power: Power | None = Field(
        default=None, description="largest transmit power; that of its radios is lowered to it"
    )
    slots: OwnSlots | None = Field(default=None, description="time slots instead of the old ones")
    airtime_weight: Weight | None = Field(default=None, description="weight of its airtime")


class Slice(Model):
    """A tenant's share of nodes and spectrum, or an isolated logical network on Open vSwitches, or both.

    With a ``grant``, its part on a node is a sliver: a separate node named ``NODE-SLICE`` with one of the
    shared node's radios and the other settings of the shared node. A second one is ``NODE-SLICE-2``.
    Settings of one sliver are under its name in ``nodes``.
    """

    grant: Grant | None = Field(default=None, description="nodes and spectrum of the slice")
    police: Literal["watch", "enforce", "cut"] = Field(
        default="watch",
        description="what follows a transmission outside the grant: it is recorded; it is recorded and not "
        "transmitted; the same, and after ``violations`` of them the radio is turned off",
    )
    violations: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = Field(
        default=10,
        description="transmissions outside the grant after which ``police: cut`` turns a radio off",
    )
    radio: Radio = Field(
        default=Radio.model_construct(),
        description="settings of all its radios, instead of the medium's; those of a shared node's radio "
        "override them",
    )
    node: Node = Field(
        default=Node.model_construct(),
        description="settings of all its slivers, instead of the shared nodes'; those of the node "
        "`NODE-SLICE` override them",
    )
    controllers: Annotated[list[Controller], Listed] = Field(
        default=[], description="controllers of this slice; without one its switches learn"
    )
    links: Annotated[list[Name], Listed] = Field(
        default=[], description="names of its links; by default all links of the Open vSwitches"
    )
    vlan: Annotated[int, Field(ge=1, le=4094, strict=True)] | None = Field(
        default=None,
        description="802.1Q tag of its frames on shared links; its controllers see them untagged",
    )
    flows: Annotated[list[Flow], Listed] = Field(
        default=[], description="traffic of the slice; by default all"
    )
    rest: bool = Field(default=False, description="all traffic of its links that no other slice has")

    @property
    def has_switches(self) -> bool:
        """True if the slice is a network on Open vSwitches; a slice with only a grant is not."""
        own = {"controllers", "links", "vlan", "flows", "rest"}
        return self.grant is None or bool(own & self.model_fields_set)
