"""Every tool of the scenario can be planned, checked and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom import measure
from airloom.errors import ScenarioError
from airloom.measure.tool import Place
from airloom.planning.estimate import estimate
from airloom.planning.gate import check
from airloom.planning.rules import measure as rules
from airloom.planning.schedule import expected_of, moment_of
from airloom.scenario.model import Link, Measurement, Node, Scenario
from airloom.scenario.model.measure import TOOLS

NETWORK = {"nodes": {"a": Node(), "b": Node()}, "links": [Link(ends=("a", "b"), rate="10 Mbit/s")]}


def measurement(**tool: dict[str, object]) -> Measurement:
    return Measurement.model_validate({"name": "m"} | tool)


def test_the_tables_of_tools_have_the_same_words() -> None:
    assert set(TOOLS) == set(rules._RULES) == set(measure._TOOLS) == set(Measurement.model_fields) - {"name"}


@pytest.mark.parametrize("word", TOOLS)
def test_a_tool_runs_programs(word: str, tmp_path: Path) -> None:
    more = {"traffic": {"rate": "1 Mbit/s"}, "test": {"kind": "rrul"}}.get(word, {})
    asked = measurement(**{word: {"from": "a", "to": "b", **more}})
    place = Place("m", {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}, 5000, 1, folder=tmp_path)
    steps = measure.tool_for(asked, place).steps()
    assert {step.node for step in steps} <= {"a", "b"}
    assert steps


def test_without_a_tool_there_is_none() -> None:
    place = Place("m", {}, 5000, 1)
    with pytest.raises(ScenarioError, match="exactly one tool") as caught:
        measure.tool_for(Measurement(name="m"), place)
    assert caught.value.cure == "give one of ping, iperf3, traffic, test"


@pytest.mark.parametrize(
    ("tool", "expected", "frames"),
    [
        ({"ping": {"count": 5, "interval": "100 ms", "at": "3 s"}}, 500_000_000, 20.0),
        ({"iperf3": {"duration": "2 s", "protocol": "udp", "rate": "1176 kbit/s"}}, 2_000_000_000, 100.0),
        ({"iperf3": {"duration": "2 s"}}, 2_000_000_000, 1.5 * 10e6 / (8 * 1538)),
        ({"traffic": {"rate": "80 kbit/s", "size": "1000 B"}}, 10_000_000_000, 10.0),
        ({"traffic": {"interval": "20 ms", "duration": "1 s"}}, 1_000_000_000, 50.0),
        ({"test": {"kind": "voip", "duration": "2 s"}}, 2_000_000_000, 100.0),
        (
            {"test": {"kind": "rrul", "duration": "2 s", "idle": "3 s"}},
            8_000_000_000,
            1.5 * 10e6 / (8 * 1538),
        ),
    ],
)
def test_a_tool_says_how_long_it_takes_and_what_it_sends(
    tool: dict[str, dict[str, object]], expected: int, frames: float
) -> None:
    ((word, said),) = tool.items()
    asked = measurement(**{word: {"from": "a", "to": "b", **said}})
    assert expected_of(asked) == expected
    assert moment_of(asked) == (3_000_000_000 if "at" in said else 0)
    (plan,) = check(Scenario(name="x", measurements=[asked], **NETWORK)).plans
    assert estimate(plan).frames_per_second == pytest.approx(frames)
