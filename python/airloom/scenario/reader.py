"""Reads a scenario and validates its shape; :mod:`airloom.planning.gate` checks everything."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from airloom.errors import ScenarioError
from airloom.scenario import problems
from airloom.scenario.model import Scenario
from airloom.scenario.source import Source


def read(source: str | Path) -> Scenario:
    """Reads a scenario from text or a path, without planning it."""
    return validated(opened(source) if isinstance(source, Path) else Source.of_text(source))


def opened(source: str | Path | Scenario) -> Source:
    """Returns the source: values and marks of a file, or values of a scenario made in Python."""
    if isinstance(source, Scenario):
        return Source(source.model_dump(mode="json", by_alias=True, exclude_defaults=True), None, Path())
    return Source.of_file(Path(source))


def validated(source: Source) -> Scenario:
    """Returns the scenario of a source; raises :class:`ScenarioError` if its shape is wrong."""
    if not isinstance(source.data, dict):
        raise ScenarioError(
            "value.type",
            "a scenario is a mapping",
            where=source.where(()),
            cure="begin with 'name:', then 'nodes:' and 'links:', or 'topology:'",
        )
    try:
        return Scenario.model_validate(source.data, context={"folder": source.folder.absolute()})
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    except RecursionError:
        raise ScenarioError("yaml.depth", "nested too deeply", where=source.where(())) from None
