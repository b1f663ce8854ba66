"""Reads a scenario and validates its shape; :mod:`airloom.planning.gate` checks everything."""

from __future__ import annotations

from pathlib import Path

from airloom.scenario.files import source_of
from airloom.scenario.model import Scenario
from airloom.scenario.shape import shaped
from airloom.scenario.source import Source


def read(source: str | Path) -> Scenario:
    """Reads a scenario from text or a path, without planning it."""
    return Scenario.load(source) if isinstance(source, Path) else Scenario.from_yaml(source)


def opened(source: str | Path | Scenario) -> Source:
    """Returns the source: values and marks of a file, or values of a scenario made in Python.

    A laboratory of another tool is read if nothing of it is lost.
    """
    if isinstance(source, Scenario):
        return Source(source.model_dump(mode="json", by_alias=True, exclude_defaults=True), None, Path())
    return source_of(Path(source))


def validated(source: Source, *, files: bool = True) -> Scenario:
    """Returns the scenario of a source; raises :class:`ScenarioError` if its shape is wrong.

    ``files``: whether the files that it names must exist.
    """
    return shaped(Scenario, source, files=files)
