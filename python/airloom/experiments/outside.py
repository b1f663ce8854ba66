"""Points of a campaign that are no runs of this program: their figures, kept for a later resume."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from airloom.errors import RunError
from airloom.experiments.found import Figures
from airloom.results import stored
from airloom.results.result import Part
from airloom.results.writer import write_atomically
from airloom.scenario.model import Scenario

FILE = "outside.json"


class _Measured(Part):
    """Contents of ``outside.json``."""

    scenario: str
    figures: dict[str, tuple[float, str]]
    valid: bool
    wall_seconds: float = 0.0


def kept(place: Path, scenario: Scenario) -> tuple[Figures, bool] | None:
    """Returns the figures of a finished measurement of the same scenario, and if they are valid."""
    try:
        found = stored.model(place / FILE, _Measured)
    except (OSError, RunError):
        return None
    if found.scenario != scenario.to_yaml():
        return None
    return dict(found.figures), found.valid


def measured(
    place: Path, scenario: Scenario, measure: Callable[[Path, Scenario], tuple[Figures, bool]]
) -> tuple[Figures, bool]:
    """Returns the stored figures, or measures them in a new folder ``place``."""
    done = kept(place, scenario)
    if done is not None:
        return done
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    began = time.monotonic()
    figures, valid = measure(place, scenario)
    raw = {
        "scenario": scenario.to_yaml(),
        "figures": dict(figures),
        "valid": valid,
        "wall_seconds": round(time.monotonic() - began, 3),
    }
    write_atomically(place / FILE, json.dumps(raw, indent=1, allow_nan=False) + "\n")
    return figures, valid


def wall_seconds(points: Path) -> float:
    """Returns how long the stored measurements below ``points`` took; older ones do not say it."""
    return sum(stored.model(path, _Measured).wall_seconds for path in points.glob(f"*/{FILE}"))
