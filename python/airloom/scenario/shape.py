"""Validates the shape of a scenario's values, without checking what they mean."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from airloom.errors import ScenarioError
from airloom.scenario import problems
from airloom.scenario.source import Source

Shape = TypeVar("Shape", bound=BaseModel)


def shaped(shape: type[Shape], source: Source, *, files: bool = True) -> Shape:
    """Returns the model that a source describes; raises :class:`ScenarioError` if its shape is wrong.

    ``files``: whether the files that it names must exist.
    """
    if not isinstance(source.data, dict):
        raise ScenarioError(
            "value.type",
            "a scenario is a mapping",
            where=source.where(()),
            cure="begin with 'name:', then 'nodes:' and 'links:', or 'topology:'",
        )
    try:
        context = {"folder": source.folder.absolute()} if files else None
        return shape.model_validate(source.data, context=context)
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    except RecursionError:
        raise ScenarioError("yaml.depth", "nested too deeply", where=source.where(())) from None
