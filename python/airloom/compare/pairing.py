"""Which figures of two runs belong together.

A figure is known by measurement, metric and labels. A label that has one value in each run, but
another in the other run, is what the runs differ in: two points of one sweep are paired without it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from airloom.compare.attribution import is_stage
from airloom.errors import ScenarioError
from airloom.report.tables import labels_of
from airloom.results import Measurement, RunReader

Key = tuple[str, str, str]


def differing(a: RunReader, b: RunReader) -> dict[str, tuple[str, str]]:
    """Returns the labels that are constant in either run and differ between them: both values."""
    left, right = _constant(a), _constant(b)
    return {
        label: (left[label], right[label]) for label in left if label in right and left[label] != right[label]
    }


def _constant(run: RunReader) -> dict[str, str]:
    found: dict[str, set[str | None]] = {}
    for label in {label for one in run.result.measurements for label in one.labels}:
        found[label] = {one.labels.get(label) for one in run.result.measurements}
    return {label: next(iter(values)) or "" for label, values in sorted(found.items()) if len(values) == 1}


def figures_of(
    run: RunReader, without: Collection[str] = (), only: Mapping[str, str] | None = None
) -> dict[Key, Measurement]:
    """Returns the figures of a run by identity, in the order of the scenario.

    Labels in ``without`` are no part of the identity; ``only`` selects figures with these labels.
    """
    found = {}
    for one in run.figures:
        if is_stage(one) or any(one.labels.get(label) != value for label, value in (only or {}).items()):
            continue
        labels = {label: value for label, value in one.labels.items() if label not in without}
        found[(one.name, one.metric, json.dumps(labels, sort_keys=True))] = one
    return found


def swept_path(run: RunReader, by: str | None) -> str:
    """Returns a swept path by its name or label; by default the first one."""
    paths = list(run.index.sweep) if run.is_sweep else []
    if not paths:
        raise ScenarioError(
            "compare.one",
            "one run alone cannot be compared",
            where=str(run.folder),
            cure="name another folder, or one folder of a sweep",
        )
    if by is None:
        return paths[0]
    labels = {label: path for path, label in labels_of(run).items()}
    if by not in paths and by not in labels:
        raise ScenarioError(
            "compare.by",
            f"{by!r} was not swept",
            where="--by",
            cure=f"paths and labels: {', '.join([*labels, *paths])}",
        )
    return labels.get(by, by)
