"""Points of a campaign that are no runs of this program: their figures, kept for a later resume."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from airloom.experiments.found import Figures
from airloom.results.writer import write_atomically
from airloom.scenario.model import Scenario

FILE = "outside.json"


def kept(place: Path, scenario: Scenario) -> tuple[Figures, bool] | None:
    """Returns the figures of a finished measurement of the same scenario, and if they are valid."""
    try:
        raw = json.loads((place / FILE).read_text(encoding="utf-8"))
        if raw["scenario"] != scenario.to_yaml():
            return None
        return {name: (value, unit) for name, (value, unit) in raw["figures"].items()}, raw["valid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
    found = (json.loads(path.read_text(encoding="utf-8")) for path in points.glob(f"*/{FILE}"))
    return sum(float(one.get("wall_seconds", 0.0)) for one in found)
