"""Measurement tools: programs that run in nodes, their output, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airloom.errors import ScenarioError
from airloom.measure.iperf3 import Iperf3Tool
from airloom.measure.ping import PingTool
from airloom.measure.ready_test import TestTool
from airloom.measure.tool import (
    READING_SCHEMA,
    SAMPLE_SCHEMA,
    Ended,
    Listening,
    MeasureError,
    Metric,
    Outcome,
    Place,
    Reading,
    Step,
    Tool,
    joined,
    labelled,
    series,
)
from airloom.measure.traffic import TrafficTool

if TYPE_CHECKING:
    from airloom.scenario.model import Measurement

__all__ = [
    "READING_SCHEMA",
    "SAMPLE_SCHEMA",
    "Ended",
    "Listening",
    "MeasureError",
    "Metric",
    "Outcome",
    "Place",
    "Reading",
    "Step",
    "Tool",
    "joined",
    "labelled",
    "series",
    "tool_for",
]


_TOOLS: dict[str, Callable[[Any, Place], Tool]] = {
    "ping": PingTool,
    "iperf3": Iperf3Tool,
    "traffic": TrafficTool,
    "test": TestTool,
}


def tool_for(measurement: Measurement, place: Place) -> Tool:
    """Creates the tool for a measurement of the scenario."""
    for word, tool in _TOOLS.items():
        asked = getattr(measurement, word)
        if asked is not None:
            return tool(asked, place)
    raise ScenarioError(
        "measure.tool.none",
        "a measurement names exactly one tool",
        where=f"measurement {measurement.name}",
        cure=f"give one of {', '.join(_TOOLS)}",
    )
