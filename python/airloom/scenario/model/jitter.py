"""Distributions of delay variation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from airloom.scenario.model.base import File, Model
from airloom.units.quantities import Duration


class UniformJitter(Model):
    """Uniform jitter in plus or minus ``uniform``."""

    uniform: Duration = Field(description="half of the width")


class NormalJitter(Model):
    """Normal jitter with standard deviation ``normal``."""

    normal: Duration = Field(description="standard deviation")


class ParetoJitter(Model):
    """Pareto jitter: ``pareto * (u**(-1/shape) - 1)`` is added, u uniform in (0, 1]."""

    pareto: Duration = Field(description="scale")
    shape: Annotated[float, Field(gt=1, le=1000, description="shape; above 1, so that the mean exists")] = 3.0


class ExponentialJitter(Model):
    """Exponential jitter with mean ``exponential``."""

    exponential: Duration = Field(description="mean")


class TableJitter(Model):
    """Jitter drawn from a file with one duration a line (``0.2 ms``, ``-0.1 ms``)."""

    table: File = Field(description="the file")


def _jitter_kind(value: Any) -> str | None:
    if value == "none":
        return "<none>"
    for word, model in _JITTERS.items():
        if isinstance(value, model) or (isinstance(value, dict) and word in value):
            return f"<{word}>"
    return None


_JITTERS: dict[str, type[Model]] = {
    "exponential": ExponentialJitter,
    "normal": NormalJitter,
    "pareto": ParetoJitter,
    "table": TableJitter,
    "uniform": UniformJitter,
}

Jitter = Annotated[
    Annotated[UniformJitter, Tag("<uniform>")]
    | Annotated[NormalJitter, Tag("<normal>")]
    | Annotated[ParetoJitter, Tag("<pareto>")]
    | Annotated[ExponentialJitter, Tag("<exponential>")]
    | Annotated[TableJitter, Tag("<table>")]
    | Annotated[Literal["none"], Tag("<none>")],
    Discriminator(
        _jitter_kind,
        custom_error_type="value.form",
        custom_error_message=(
            "no form of jitter; it is none, or has the key uniform, normal, pareto, exponential or table"
        ),
    ),
]
