"""What a run without a duration waits for."""

from __future__ import annotations

from airloom.errors import ScenarioError
from airloom.scenario.model import Scenario


def endless(scenario: Scenario) -> ScenarioError | None:
    """The error if a run would be over at once, and its services never asked: nothing else takes time.

    Measurements, events, and programs that end by themselves take time. An interactive session does not
    need them.
    """
    services = [one for one in scenario.programs if one.until_end]
    if (
        not services
        or scenario.duration is not None
        or scenario.measurements
        or scenario.events
        or len(services) < len(scenario.programs)
    ):
        return None
    return ScenarioError(
        "duration.missing",
        "every program runs until the end, and nothing says when that is: there is no measurement, no event "
        "and no program that ends by itself",
        where="duration",
        cure="say `duration: 10 s`, or use `airloom up` for as long as you like",
    )
