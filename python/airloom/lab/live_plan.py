"""Plans of live laboratories, each of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airloom.errors import ScenarioError
from airloom.planning.plan import Plan
from airloom.runs.batch import prepare
from airloom.scenario.model import Scenario


def live_plan(
    source: str | Path | Scenario, overrides: Iterable[str] | Mapping[str, Any] = (), seed: int | None = None
) -> Plan:
    """Returns the plan of a checked scenario; raises :class:`ScenarioError` if it is not that of a
    laboratory.
    """
    plans = prepare(source, overrides=overrides, seed=seed).plans
    if len(plans) != 1:
        raise ScenarioError(
            "lab.sweep",
            f"a live laboratory is one run, and this scenario describes {len(plans)}",
            cure="take `sweep` and `repetitions` out, or use airloom.run",
        )
    return plans[0]
