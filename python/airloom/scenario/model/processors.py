"""Modelled processors: in virtual time the work of guests takes time there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import Model, Name
from airloom.units.quantities import Duration, Rate

PresetName = Literal["orbit-native", "orbit-uml", "net-pentium-4"]
SchedulerName = Literal["round-robin", "fair", "priority"]


class Processor(Model):
    """A processor that one guest has, or that several share. It does one thing at a time."""

    nodes: Annotated[list[Name], Field(min_length=1)] = Field(
        description="nodes with a kernel of their own, or guests that several share; a node or guest has one "
        "processor at most"
    )
    preset: PresetName | None = Field(
        default=None, description="prices of a published machine; prices given beside it win"
    )
    interrupt: Duration | None = Field(
        default=None,
        description="work each time that a frame or a timer wakes the guest; frames that have arrived "
        "meanwhile are of the same interrupt",
    )
    frame: Duration | None = Field(
        default=None, description="work for a frame, sent or received; each segment of a super-frame is one"
    )
    copy_rate: Rate | None = Field(
        default=None, gt=0, description="rate at which it handles the octets of frames; by default at once"
    )
    context_switch: Duration | None = Field(
        default=None, description="work when another guest than before gets the processor"
    )
    speed: float = Field(
        default=1.0, ge=0.001, le=1000, description="factor by which it is faster than its prices state"
    )
    scheduler: SchedulerName = Field(
        default="round-robin",
        description="which guest is next: each for a quantum in the order of `nodes`, the one that has "
        "worked least for its weight, or the first in `nodes`",
    )
    quantum: Duration = Field(
        default=Duration("10 ms"),
        gt=0,
        description="for how long a guest works on while others wait, and with `fair` how far it gets ahead",
    )
    weights: dict[Name, Annotated[int, Field(ge=1, le=10_000)]] = Field(
        default={}, description="with `fair`, the weight of each guest; 1 by default"
    )
