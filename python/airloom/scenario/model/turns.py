"""Guests that take turns on a processor: while one runs, the others wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from airloom.scenario.model.base import Model, Name
from airloom.units.quantities import Duration


class Turns(Model):
    """Guests that take turns, as if they shared one busy processor (round robin)."""

    nodes: Annotated[list[Name], Field(min_length=2)] = Field(
        description="nodes with a kernel of their own (`uml`, `qemu`), or guests that several share, in the "
        "order of their turns; a node or guest takes turns once"
    )
    quantum: Duration = Field(
        default=Duration("100 ms"),
        gt=0,
        description="length of a turn, 5 ms (in virtual time 10 us) to 1 s, at most 5 s for one turn of each",
    )
    phase: Duration = Field(
        default=Duration(0),
        description="delay of the first one's turn against the moment from which turns are taken; less than "
        "one turn of each",
    )
    active: bool = Field(
        default=True,
        description="whether turns are taken from time zero; if not, from an event's `start`",
    )
