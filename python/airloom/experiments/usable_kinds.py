"""Detection of the node kinds that work on this machine, by a ping between two nodes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

from airloom.errors import LabError
from airloom.experiments import capacity_search
from airloom.experiments.extent import Extent
from airloom.results import RunReader
from airloom.runs.single import Interrupted
from airloom.scenario.model import Scenario


def every() -> tuple[str, ...]:
    """Returns all kinds of a scenario."""
    return get_args(Scenario.model_fields["kind"].annotation)


SLOW = ("qemu",)
"""Kinds that take about a minute without hardware virtualization."""


def kinds(
    folder: Path, progress: Callable[[str], None], extent: Extent, *, without: Iterable[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Returns the working kinds, and why each other fails.

    Skips the kinds in ``without``. The slow ones fail without a trial, unless in full extent.
    """
    works: list[str] = []
    fails: dict[str, str] = {}
    for kind in every():
        if kind in without:
            continue
        if extent is not Extent.FULL and kind in SLOW:
            fails[kind] = f"too slow for {extent.value}; --kind {kind} takes it in"
            continue
        progress(f"trying kind {kind}")
        try:
            reader = capacity_search.point(folder, f"try-{kind}", _pair(kind))
        except Interrupted:
            raise
        except LabError as error:
            fails[kind] = str(error)
            continue
        if _answered(reader):
            works.append(kind)
        else:
            fails[kind] = "its nodes do not reach each other"
    return works, fails


def _pair(kind: str) -> Scenario:
    return Scenario.model_validate(
        {
            "name": f"try-{kind}",
            "kind": kind,
            "nodes": {"n1": {}, "n2": {}},
            "links": [{"ends": ["n1", "n2"]}],
            "measurements": [
                {"name": "echo", "ping": {"from": "n1", "to": "n2", "count": 3, "interval": "100 ms"}}
            ],
        }
    )


def _answered(reader: RunReader) -> bool:
    found = [one.mean for one in reader.result.measurements if one.metric == "rtt_max"]
    return bool(found) and found[0] is not None
