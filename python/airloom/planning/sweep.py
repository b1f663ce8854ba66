"""Sweeps: the grid of points, and the seed of each run."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from typing import Any

from airloom.errors import ScenarioError
from airloom.scenario import paths
from airloom.scenario.model import Scenario, Swept
from airloom.scenario.source import Path_, Source

MOST_PLANS = 100_000


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a sweep: its values, and the scenario's source with them set."""

    values: dict[str, Any]
    source: Source


def points(source: Source, scenario: Scenario) -> list[Point]:
    """Returns the grid's points, the last path varying fastest; without a sweep, one empty point."""
    _check_labels(source, scenario)
    swept = {path: one.values for path, one in scenario.swept.items()}
    for path, values in swept.items():
        where = source.where(("sweep", path), key=True)
        if not values:
            raise ScenarioError("sweep.empty", f"no values for {path!r}", where=where)
        if paths.split(path, where)[0][0] in ("sweep", "repetitions", "seed", "name"):
            raise ScenarioError("sweep.path", f"{path!r} cannot be swept", where=where)
    size = 1
    for values in swept.values():
        size *= len(values)
    if size > MOST_PLANS:
        raise ScenarioError(
            "sweep.size", f"{size} points are more than {MOST_PLANS} runs", where=source.where(("sweep",))
        )
    found = []
    for choice in itertools.product(*(range(len(values)) for values in swept.values())):
        here = source
        chosen: dict[str, Any] = {}
        for path, index in zip(swept, choice, strict=True):
            value = chosen[path] = swept[path][index]
            where = source.where(("sweep", path), key=True)
            here = paths.put(here, path, value, (*_place(scenario, path), index), where)
        found.append(Point(chosen, here))
    return found


def _place(scenario: Scenario, path: str) -> Path_:
    """Returns the place of a path's list of values."""
    labelled = isinstance(scenario.sweep[path], Swept)
    return ("sweep", path, "values") if labelled else ("sweep", path)


def _check_labels(source: Source, scenario: Scenario) -> None:
    known: dict[str, str] = {}
    for path, one in scenario.swept.items():
        name = one.label or path
        if name in known:
            raise ScenarioError(
                "sweep.label",
                f"{known[name]!r} and {path!r} have the same name {name!r}",
                where=source.where(("sweep", path), key=True),
                cure="give each swept path a label of its own",
            )
        known[name] = path


def derived_seed(seed: int, point: dict[str, Any], repetition: int) -> int:
    """Returns the seed of a run: the first 63 bits of SHA-256 over base seed, point and repetition.

    It depends on nothing else, so a point keeps its seed when others are added to the sweep.
    """
    text = json.dumps([seed, point, repetition], sort_keys=True, separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
