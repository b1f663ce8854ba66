"""Airloom: unmodified programs on many virtual nodes, an emulated network, a verdict on every run.

::

    import airloom

    result = airloom.run("chain.yaml")
    print(result.verdict.status)

    with airloom.Lab("chain.yaml") as lab:
        print(lab["h1"].run("ping -c 3 h2").stdout)
        lab.link("h1", "h2").set(delay="20 ms")

Names are imported when they are first used, so that ``import airloom`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airloom.errors import HostError, LabError, RunError, ScenarioError
    from airloom.lab import Completed, Lab
    from airloom.plan import Plan
    from airloom.runs import RunResult, run
    from airloom.scenario import check
    from airloom.scenario.model import Scenario
    from airloom.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Completed",
    "HostError",
    "Lab",
    "LabError",
    "Plan",
    "RunError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Verdict",
    "check",
    "run",
]

_HOMES = {
    "Completed": "airloom.lab",
    "HostError": "airloom.errors",
    "Lab": "airloom.lab",
    "LabError": "airloom.errors",
    "Plan": "airloom.plan",
    "RunError": "airloom.errors",
    "RunResult": "airloom.runs",
    "Scenario": "airloom.scenario.model",
    "ScenarioError": "airloom.errors",
    "Verdict": "airloom.verdict",
    "check": "airloom.scenario",
    "run": "airloom.runs",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'airloom' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
