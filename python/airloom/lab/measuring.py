"""Measurements that are made while a laboratory is up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from airloom.errors import ScenarioError
from airloom.planning.expand import expand
from airloom.planning.rules.measure import measurements
from airloom.scenario import problems
from airloom.scenario.model import Measurement, Scenario
from airloom.scenario.source import Source


def measurement_of(name: str, tool: Mapping[str, Any]) -> Measurement:
    """Returns a validated measurement; raises :class:`~airloom.ScenarioError`."""
    try:
        return Measurement.model_validate({"name": name, **tool})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ScenarioError(
            "measurement.wrong", f"{place}: {first['msg']}", where=f"measurement {name}"
        ) from None


def refuse(measurement: Measurement, scenario: Scenario) -> None:
    """Applies the rules of a scenario's measurements to one that is made now."""
    asked = scenario.model_copy(update={"measurements": [measurement], "duration": None})
    problems.raise_first(measurements(asked, expand(asked)), Source({}, None, Path()))
