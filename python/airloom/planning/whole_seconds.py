"""Notes on durations that a tool rounds."""

from __future__ import annotations

from airloom.scenario.model import Iperf3, Scenario, Test
from airloom.scenario.model.measure import whole_seconds
from airloom.units.quantities import Duration


def notes(scenario: Scenario) -> list[str]:
    """Returns a note for each measurement whose duration iperf3 rounds up to whole seconds."""
    found = []
    for index, measurement in enumerate(scenario.measurements):
        tool = measurement.tool
        if isinstance(tool, Iperf3) or (isinstance(tool, Test) and tool.loads):
            whole = Duration(whole_seconds(tool.duration) * 10**9)
            if whole != tool.duration:
                found.append(
                    f"measurements[{index}].{measurement.word}.duration: iperf3 takes whole seconds, so that "
                    f"{tool.duration.text} becomes {whole.text}"
                )
    return found
