"""Measuring: the tools that run in nodes, what they wrote, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airloom.errors import ScenarioError
from airloom.measure.iperf3 import Iperf3Tool
from airloom.measure.ping import PingTool
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


def tool_for(measurement: Measurement, place: Place) -> Tool:
    """The tool that a measurement of the scenario asks for."""
    if measurement.ping is not None:
        return PingTool(measurement.ping, place)
    if measurement.iperf3 is not None:
        return Iperf3Tool(measurement.iperf3, place)
    if measurement.traffic is not None:
        return TrafficTool(measurement.traffic, place)
    raise ScenarioError(
        "measure.tool.none",
        "a measurement names exactly one tool",
        where=f"measurement {measurement.name}",
        cure="give ping, iperf3 or traffic",
    )
