"""Airloom: unmodified programs on many virtual nodes, an emulated network, a verdict on every run.

::

    import airloom

    result = airloom.run("chain.yaml")
    print(result.verdict.status)

    with airloom.Lab("chain.yaml") as lab:
        print(lab["h1"].run("ping -c 3 h2").stdout)
        lab.link("h1", "h2").set(delay="20 ms")

Names are imported at their first use, so ``import airloom`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airloom.errors import HostError, LabError, RunError, ScenarioError
    from airloom.lab.lab import Lab
    from airloom.lab.live_program import Completed
    from airloom.lab.replaying import Replay
    from airloom.planning.capture import Capture
    from airloom.planning.gate import check
    from airloom.planning.plan import Plan
    from airloom.report.plot import plot
    from airloom.runs.batch import RunResult, Tries, run
    from airloom.scenario.model import Scenario
    from airloom.scenario.topology import builders as topology
    from airloom.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Capture",
    "Completed",
    "HostError",
    "Lab",
    "LabError",
    "Plan",
    "Replay",
    "RunError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Tries",
    "Verdict",
    "check",
    "plot",
    "run",
    "topology",
]

_HOMES = {
    "Capture": "airloom.planning.capture",
    "Completed": "airloom.lab.live_program",
    "HostError": "airloom.errors",
    "Lab": "airloom.lab.lab",
    "LabError": "airloom.errors",
    "Plan": "airloom.planning.plan",
    "Replay": "airloom.lab.replaying",
    "RunError": "airloom.errors",
    "RunResult": "airloom.runs.batch",
    "Scenario": "airloom.scenario.model",
    "ScenarioError": "airloom.errors",
    "Tries": "airloom.runs.batch",
    "Verdict": "airloom.verdict",
    "check": "airloom.planning.gate",
    "plot": "airloom.report.plot",
    "run": "airloom.runs.batch",
}

_MODULES = {"topology": "airloom.scenario.topology.builders"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if home is None:
        raise AttributeError(f"module 'airloom' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
