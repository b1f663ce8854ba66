"""What a run may not have in a shared laboratory."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.grid.laboratory.joining import Seat
from airloom.planning.gate import check
from airloom.scenario import Scenario

SAID: dict[str, Any] = {"macs": "02:00:00:00", "medium": {}, "zero": 0, "processors": False}


@pytest.mark.parametrize("engine", [{"idle": "poll"}, {"cpus": {"policy": "other", "nice": 3}}])
def test_the_engine_of_the_testbed_is_not_scheduled_by_a_run(engine: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        experiment = check(Scenario.model_validate({"name": "t", "nodes": {"a": {}}, "engine": engine}))
        with pytest.raises(ScenarioError, match="the engine is the testbed's") as caught:
            Seat(ours, SAID).fitted(experiment)
    assert (caught.value.exit_code, caught.value.code) == (2, "lab.unsupported")
