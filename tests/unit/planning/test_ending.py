"""What a run without a duration waits for."""

from __future__ import annotations

from typing import Any

import pytest

from airloom.planning.ending import endless
from airloom.scenario.model import Scenario

SERVICE = {"node": "a", "name": "p", "run": "sleep 9", "until_end": True}


def scenario(**said: Any) -> Scenario:
    return Scenario.model_validate({"name": "x", "nodes": {"a": {}, "b": {}}, **said})


def test_services_alone_are_refused() -> None:
    error = endless(scenario(programs=[SERVICE]))
    assert error is not None
    assert (error.code, error.exit_code) == ("duration.missing", 2)
    assert "duration: 10 s" in str(error)


@pytest.mark.parametrize(
    "more",
    [
        {"duration": "3 s"},
        {"programs": [SERVICE, {"node": "b", "name": "q", "run": "true"}]},
        {"measurements": [{"name": "m", "ping": {"from": "a", "to": "b"}}]},
        {"events": [{"at": "2 s", "node": "b", "action": "kill"}]},
        {"programs": []},
    ],
    ids=["duration", "program", "measurement", "event", "nothing"],
)
def test_anything_that_takes_time_ends_a_run(more: dict[str, Any]) -> None:
    assert endless(scenario(**{"programs": [SERVICE], **more})) is None
