"""Measuring: the tools that run in nodes, what they wrote, and what it means."""

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
]
