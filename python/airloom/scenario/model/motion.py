"""Positions of nodes, and how they move."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from airloom.scenario.model.base import File, Listed, Model, Name
from airloom.units.quantities import Angle, Duration, Fraction, Length, Speed


def _coordinates(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(value)
    raise PydanticCustomError(
        "value.form",
        "{message}",
        {
            "message": "a place is two or three lengths",
            "cure": "write it like [10 m, 20 m] or [10 m, 0 m, 1.5 m]",
        },
    )


Position = Annotated[
    tuple[Length, ...],
    BeforeValidator(_coordinates),
    WithJsonSchema(
        {
            "type": "array",
            "items": Length.json_schema(),
            "minItems": 2,
            "maxItems": 3,
            "title": "place",
        }
    ),
]
"""East, north and, if it is not 0, height."""


def _speeds(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(value)
    raise PydanticCustomError(
        "value.form",
        "{message}",
        {"message": "a velocity is two or three speeds", "cure": "write it like [1.5 m/s, 0 m/s]"},
    )


Velocity = Annotated[
    tuple[Speed, ...],
    BeforeValidator(_speeds),
    WithJsonSchema(
        {"type": "array", "items": Speed.json_schema(), "minItems": 2, "maxItems": 3, "title": "velocity"}
    ),
]


class Waypoint(Model):
    """Position at a time."""

    at: Duration = Field(description="from time zero of the run")
    position: Position = Field(description="position")


def _pair(value: Any) -> str:
    return "<two>" if isinstance(value, list | tuple) else "<one>"


Speeds = Annotated[
    Annotated[Speed, Tag("<one>")] | Annotated[tuple[Speed, Speed], Tag("<two>")], Discriminator(_pair)
]
Durations = Annotated[
    Annotated[Duration, Tag("<one>")] | Annotated[tuple[Duration, Duration], Tag("<two>")],
    Discriminator(_pair),
]


def _number(value: Any) -> str:
    return "<name>" if isinstance(value, str) else "<number>"


TraceNode = Annotated[
    Annotated[int, Field(ge=0, strict=True), Tag("<number>")]
    | Annotated[str, Field(min_length=1, max_length=200), Tag("<name>")],
    Discriminator(_number),
]

TRACES = ("ns-2", "bonnmotion", "bonnmotion-3d", "sumo")
"""Mobility models that are read from a trace file."""


class Mobility(Model):
    """Movement of a node, continuous in time."""

    model: Literal[
        "velocity",
        "random-waypoint",
        "random-walk",
        "gauss-markov",
        "group",
        "path",
        "ns-2",
        "bonnmotion",
        "bonnmotion-3d",
        "sumo",
    ] = Field(description="model of the movement")
    velocity: Velocity | None = Field(
        default=None, description="velocity: speed along each axis, from the node's `position`"
    )
    area: tuple[Length, Length] | None = Field(
        default=None, description="random models: width and depth of the area"
    )
    corner: Position | None = Field(
        default=None, description="random models: south-west corner, and height; [0 m, 0 m] by default"
    )
    speed: Speeds | None = Field(
        default=None,
        description="random models: smallest and largest speed; gauss-markov: mean and deviation",
    )
    pause: Durations | None = Field(
        default=None, description="random-waypoint: shortest and longest pause; 0 s by default"
    )
    interval: Duration | None = Field(
        default=None, description="random-walk, gauss-markov: time between changes; 1 s by default"
    )
    memory: Fraction | None = Field(
        default=None, description="gauss-markov: memory, 0 is none; 0.75 by default"
    )
    turn: Angle | None = Field(
        default=None, description="gauss-markov: deviation of the direction; 30 deg by default"
    )
    group: Name | None = Field(default=None, description="group: name; members follow one reference")
    reference: Mobility | None = Field(default=None, description="group: movement of the reference")
    radius: Length | None = Field(
        default=None, description="group: largest distance of a member from the reference"
    )
    points: Annotated[list[Waypoint], Listed] | None = Field(
        default=None, description="path: positions with times; straight lines in between"
    )
    file: File | None = Field(default=None, description="traces: the file")
    node: TraceNode | None = Field(
        default=None,
        description="traces: number of the node in the file, or the vehicle's id of sumo; by default the "
        "scenario's order",
    )
    start: Duration | None = Field(
        default=None, description="traces: time of the file that is time zero of the run; 0 s by default"
    )
    geographic: bool | None = Field(
        default=None,
        description="sumo: places are degrees; by default the speeds in the file tell",
    )
