"""Scenarios: what an experimenter can say, and the gate that checks it.

::

    from airloom.scenario import check

    experiment = check("chain.yaml", ["links[0].delay=20 ms"])
    for plan in experiment.plans:
        ...
"""

from __future__ import annotations

from airloom.errors import ScenarioError
from airloom.scenario.gate import Experiment, check, read
from airloom.scenario.model import Scenario

__all__ = ["Experiment", "Scenario", "ScenarioError", "check", "read"]
