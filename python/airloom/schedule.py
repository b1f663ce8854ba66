"""When measurements run and how long they take, as the scenario says it."""

from __future__ import annotations

from airloom.scenario.model import Measurement


def moment_of(measurement: Measurement) -> int:
    """A measurement's own time, or 0 if it takes its turn; ns."""
    for tool in (measurement.ping, measurement.iperf3, measurement.traffic):
        if tool is not None:
            return tool.at
    return 0


def expected_of(measurement: Measurement) -> int:
    """How long a measurement takes if all goes well; ns."""
    if measurement.ping is not None:
        return measurement.ping.count * measurement.ping.interval
    timed = measurement.iperf3 or measurement.traffic
    return timed.duration if timed is not None else 0
