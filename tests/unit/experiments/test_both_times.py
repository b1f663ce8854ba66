"""Points of experiments in wall time and in virtual time; none is run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("airloom._engine")

from airloom.errors import HostError, RunError
from airloom.experiments import both_times, capacity_search, registry
from airloom.experiments.campaign import Asked, Case
from airloom.planning.gate import check
from airloom.scenario.model import Scenario

WALL_VS_VIRTUAL: Any = registry.find("wall-vs-virtual").load().__globals__


def test_each_experiment_is_compared_or_named_with_a_reason() -> None:
    compared = [one.experiment for one in WALL_VS_VIRTUAL["POINTS"]]
    without = WALL_VS_VIRTUAL["WITHOUT"]
    assert len(set(compared)) == len(compared)
    assert set(compared) | set(without) == set(registry.discover())
    assert not set(compared) & set(without)


@pytest.mark.parametrize("name", [one.experiment for one in WALL_VS_VIRTUAL["POINTS"]])
def test_each_point_exists_and_can_be_in_virtual_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> Any:
        raise AssertionError("a point that is only asked for is not run")

    monkeypatch.setattr(capacity_search, "made", made)
    (point,) = (one for one in WALL_VS_VIRTUAL["POINTS"] if one.experiment == name)
    try:
        asked = both_times.point(name, point.case)
    except HostError as error:
        pytest.skip(str(error))
    case = both_times.in_virtual_time(asked.case)
    assert asked.case.scenario.time == "wall"
    assert (case.scenario.time, case.name) == ("virtual", asked.case.name)
    assert all(plan.virtual for plan in check(case.scenario).plans)


def test_what_cannot_be_in_virtual_time_is_refused_by_the_check() -> None:
    (asked,) = (one for one in both_times.asked("orbit-cpu") if one.case.name == "netns-1")
    with pytest.raises(Exception, match="'cpus' holds for this machine's processors"):
        check(both_times.in_virtual_time(asked.case).scenario)


def test_a_point_that_does_not_exist_is_named() -> None:
    with pytest.raises(RunError, match="the smallest extent of mtu-study has no point 'e-mtu-99'"):
        both_times.point("mtu-study", "e-mtu-99")


@pytest.mark.parametrize(("status", "share"), [("valid", 1.0), ("degraded", 0.0), ("invalid", 0.0)])
def test_a_figure_is_read_with_the_verdict_of_its_run(status: str, share: float) -> None:
    case = Case("one", {}, Scenario(name="one", nodes={"h1": {}}), 1.0)
    asked = Asked(case, lambda *_: {"rtt": (5.0, "ns"), "other": (1.0, "1")})
    reader: Any = SimpleNamespace(
        result=SimpleNamespace(verdict=SimpleNamespace(status=status)), folder="here"
    )
    assert both_times.reading(asked, "rtt")(case, reader) == {"rtt": (5.0, "ns"), "run.valid": (share, "1")}
    with pytest.raises(RunError, match="jitter is missing"):
        both_times.reading(asked, "jitter")(case, reader)
