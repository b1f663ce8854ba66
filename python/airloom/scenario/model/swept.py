"""Values of a swept path, with or without a label."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from airloom.scenario.model.base import Model


class Swept(Model):
    """Values of a swept path, and the label that stands for the path in tables and figures."""

    values: list[Any] = Field(description="the values")
    label: Annotated[str, Field(strict=True, min_length=1, max_length=40)] | None = Field(
        default=None, description="short name of the path in tables and figures"
    )


def _form(value: Any) -> str:
    return "<labelled>" if isinstance(value, dict | Swept) else "<values>"


Values = Annotated[
    Annotated[list[Any], Tag("<values>")] | Annotated[Swept, Tag("<labelled>")], Discriminator(_form)
]
"""A list of values, or a mapping with ``values`` and ``label``."""
