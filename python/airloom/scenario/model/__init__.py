"""What an experimenter can say: one model for YAML and Python.

Every quantity carries a unit (see :mod:`airloom.units`), unknown keys are refused, and names are
checked against each other by :mod:`airloom.scenario.gate`, not here: this module knows shapes only.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from airloom.scenario.model.base import Count, File, Listed, Mapped, Model, Mtu, Name
from airloom.scenario.model.links import (
    Direction,
    GilbertElliott,
    Jitter,
    Link,
    Loss,
    NormalJitter,
    ParetoJitter,
    Queue,
    Switch,
    TableJitter,
    Topology,
    UniformJitter,
)
from airloom.scenario.model.measure import Claim, Event, Iperf3, Limits, Measurement, Ping, Traffic
from airloom.scenario.model.nodes import Interface, Node, Program, Ready
from airloom.units import Duration, Prefix


class Pools(Model):
    """Where assigned addresses are taken from; null assigns none of that family."""

    ipv4: Prefix | None = Field(default=IPv4Network("10.0.0.0/8"))
    ipv6: Prefix | None = None


class Scenario(Model):
    """The whole description of an experiment."""

    name: Name
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(
        default=1, description="of every random number in the run"
    )
    duration: Duration | None = Field(default=None, description="by default until everything is done")
    kind: Literal["netns", "native"] = Field(default="netns", description="how nodes are made")
    nodes: Annotated[dict[Name, Node], Mapped] = Field(default={})
    switches: Annotated[dict[Name, Switch], Mapped] = Field(default={})
    links: Annotated[list[Link], Listed] = Field(default=[])
    topology: Topology | None = Field(
        default=None, description="nodes and links by a generator, beside those given"
    )
    addresses: Pools = Pools()
    routes: Literal["hops", "delay"] = Field(
        default="hops", description="what the computed routes make least"
    )
    programs: Annotated[list[Program], Listed] = Field(default=[])
    events: Annotated[list[Event], Listed] = Field(default=[])
    measurements: Annotated[list[Measurement], Listed] = Field(default=[])
    sweep: Annotated[dict[str, list[Any]], Mapped] = Field(
        default={}, description="path of a value: the values it takes; several paths make a grid"
    )
    repetitions: Count = Field(default=1, description="of every point, each with its own derived seed")
    limits: Limits = Limits()
    claims: Annotated[list[Claim], Listed] = Field(default=[])

    def to_yaml(self) -> str:
        """The scenario as YAML that reads back as an equal scenario; defaults are left out."""
        from airloom.scenario.source import write

        return write(self.model_dump(mode="json", by_alias=True, exclude_defaults=True))

    @classmethod
    def from_yaml(cls, text: str) -> Scenario:
        """Reads the text of a scenario: its shape only; :func:`airloom.scenario.check` checks it whole."""
        from airloom.scenario.gate import read

        return read(text)

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """Reads a scenario's file: its shape only; :func:`airloom.scenario.check` checks it whole."""
        from airloom.scenario.gate import read

        return read(Path(path))


__all__ = [
    "Claim",
    "Direction",
    "Event",
    "File",
    "GilbertElliott",
    "Interface",
    "Iperf3",
    "Jitter",
    "Limits",
    "Link",
    "Loss",
    "Measurement",
    "Model",
    "Mtu",
    "Node",
    "NormalJitter",
    "ParetoJitter",
    "Ping",
    "Pools",
    "Program",
    "Queue",
    "Ready",
    "Scenario",
    "Switch",
    "TableJitter",
    "Topology",
    "Traffic",
    "UniformJitter",
]
