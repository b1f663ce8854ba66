"""Processors that a node or the engine may use, and how the kernel schedules it there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, WithJsonSchema, WrapValidator

from airloom.scenario.model.base import Model, Name
from airloom.units.quantities import Duration

Policy = Literal["other", "batch", "idle", "fifo", "round-robin"]
"""Scheduling policies of the kernel (sched(7))."""

Number = Annotated[int, Field(ge=0, le=1023, strict=True)]
"""Number of a processor of this machine."""

_NUMBER = {"type": "integer", "minimum": 0, "maximum": 1023}

Numbers = Annotated[
    list[Number],
    Field(min_length=1),
    WrapValidator(lambda value, handler: handler(value if isinstance(value, list | tuple) else [value])),
    WithJsonSchema({"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}]}),
]
"""One processor, or a list of processors."""


def _set(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<numbers>"


ProcessorSet = Annotated[
    Annotated[Literal["one", "two"], Tag("<word>")] | Annotated[Numbers, Tag("<numbers>")],
    Discriminator(_set),
]
"""Numbers of processors, or how many processors of its own."""


class Processors(Model):
    """A set of processors: by their numbers, or chosen by the plan."""

    processors: ProcessorSet | None = Field(
        default=None,
        description="number or numbers of this machine's processors; one, two: that many, which nothing else "
        "of the scenario uses; all by default",
    )
    shared: Name | None = Field(
        default=None,
        description="name of one processor that the plan chooses; everything with this name shares it, and "
        "sets of other names get others",
    )
    exclusive: bool = Field(
        default=False, description="nothing else of the scenario uses these processors; one and two always"
    )


class Cpus(Processors):
    """Processors and scheduling of a node's processes, or of its machine."""

    policy: Policy = Field(default="other", description="scheduling policy; fifo and round-robin need root")
    priority: Annotated[int, Field(ge=0, le=99, strict=True)] = Field(
        default=0, description="priority with fifo and round-robin: 1 to 99"
    )
    nice: Annotated[int, Field(ge=-20, le=19, strict=True)] = Field(
        default=0, description="nice value; below 0 needs root"
    )
    share: Annotated[float, Field(ge=0.01, le=100)] | None = Field(
        default=None,
        description="weight against the other nodes on the same processor, 1 for each by default: by control "
        "groups, without them by nice values",
    )


def _kind(value: Any) -> str:
    return "<set>" if isinstance(value, str | int | list | tuple) else "<settings>"


CpusChoice = Annotated[
    Annotated[ProcessorSet, Tag("<set>")] | Annotated[Cpus, Tag("<settings>")], Discriminator(_kind)
]
"""A set of processors, or :class:`Cpus`."""


class EngineCpus(Processors):
    """Processors and scheduling of the engine."""

    policy: Policy | None = Field(
        default=None,
        description="scheduling policy, which then stays; by default round-robin where it may be, and other "
        "while the engine uses nearly a whole processor",
    )
    priority: Annotated[int, Field(ge=0, le=99, strict=True)] = Field(
        default=0, description="priority with fifo and round-robin: 1 to 99"
    )
    nice: Annotated[int, Field(ge=-20, le=19, strict=True)] = Field(
        default=0, description="nice value with the policies other and batch; below 0 needs root"
    )


EngineChoice = Annotated[
    Annotated[ProcessorSet, Tag("<set>")] | Annotated[EngineCpus, Tag("<settings>")], Discriminator(_kind)
]
"""A set of processors, or :class:`EngineCpus`."""


class Engine(Model):
    """The engine, the thread that emulates the network."""

    cpus: EngineChoice | None = Field(
        default=None,
        description="its processors, by default those of the scenario's `cpus`, otherwise all; and its "
        "scheduling",
    )
    idle: Literal["halt", "poll"] = Field(
        default="halt",
        description="poll: idle processors stay awake while the emulation runs, by threads of policy idle; "
        "on a virtual machine the hypervisor has to wake a processor that halts",
    )
    link_interval: Duration | None = Field(
        default=None,
        description="time between samples of the links' queues, drops, marks and utilization: at least 1 ms; "
        "`0 s`: none; by default 100 ms, with more than 100 links 1 s",
    )
    guest_budget: Duration = Field(
        default=Duration("60 s"),
        gt=0,
        description="in virtual time, processor time of this machine that a guest may use without reaching "
        "the next instant, and the wall time for one that does not run; then the run ends and names the "
        "guest and its program",
    )
