"""Points of experiments in wall time and in virtual time."""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from airloom.errors import RunError
from airloom.experiments import registry
from airloom.experiments.campaign import Asked, Case, Read, asking
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures
from airloom.results import RunReader

VALID = "run.valid"
"""Figure: share of the runs whose verdict is ``valid``."""
KIND = "netns"
"""Kind of the nodes of an experiment that offers a choice."""


@cache
def asked(experiment: str) -> tuple[Asked, ...]:
    """Returns what the smallest extent of an experiment would run. Nothing is run.

    Raises :class:`~airloom.errors.HostError` if this machine lacks what the experiment needs.
    """
    run = registry.find(experiment).load()
    choice = {"kinds": (KIND,)} if "kinds" in inspect.signature(run).parameters else {}
    with tempfile.TemporaryDirectory() as place, asking() as found:
        run(Path(place) / "out", extent=Extent.SMOKE, progress=lambda _: None, **choice)
    return tuple(found)


def point(experiment: str, name: str) -> Asked:
    """Returns a case of an experiment by its name; raises :class:`RunError` if there is none."""
    for one in asked(experiment):
        if one.case.name == name and one.case.outside is None:
            return one
    raise RunError("experiment.unknown-point", f"the smallest extent of {experiment} has no point {name!r}")


def in_virtual_time(case: Case) -> Case:
    """Returns the case in virtual time."""
    return replace(case, scenario=case.scenario.model_copy(update={"time": "virtual"}))


def reading(asked: Asked, figure: str) -> Read:
    """Returns what reads one figure of a case, and whether its run was ``valid``."""

    def read(_: Case, reader: RunReader) -> Figures:
        found = asked.read(asked.case, reader)
        if figure not in found:
            raise RunError("experiment.unmeasured", f"{figure} is missing", where=str(reader.folder))
        valid = reader.result.verdict.status == "valid"
        return {figure: found[figure], VALID: (float(valid), "1")}

    return read
