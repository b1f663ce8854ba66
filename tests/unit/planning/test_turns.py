"""Turns of guests: whose turn it is, when that changes, and where the engine is beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.machine import cpus
from airloom.planning.machine.turns import TurnsPlan
from airloom.planning.plan import Plan
from airloom.scenario.model import Scenario

MS = 1_000_000


def plan(turns: dict[str, Any], **more: Any) -> Plan:
    said = {"name": "test", "kind": "uml", "nodes": {"a": {}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    return check(Scenario.model_validate({**said, "turns": {"t": turns}, **more})).plans[0]


def turns(guests: str = "abc", quantum: int = 10, phase: int = 0, **more: Any) -> TurnsPlan:
    return TurnsPlan("t", tuple(guests), quantum, phase, more.get("spans", ((0, None),)))


def test_guests_take_turns_in_their_order() -> None:
    assert "".join(turns().whose(at) or "-" for at in range(0, 70, 5)) == "aabbccaabbccaa"
    assert [turns().change(at) for at in (0, 1, 9, 10, 59)] == [10, 10, 10, 20, 60]
    assert turns().wait == 21, "and a tenth of a turn by which one may begin late"


def test_a_phase_delays_the_first_turn_and_the_last_one_comes_before() -> None:
    found = turns(phase=4)
    assert "".join(found.whose(at) or "-" for at in (0, 3, 4, 13, 14, 24, 34)) == "ccaabca"
    assert [found.change(at) for at in (0, 3, 4, 14)] == [4, 4, 14, 24]


def test_turns_begin_and_end_by_events() -> None:
    events = [{"at": at, "turns": "t", "action": do} for at, do in (("3 s", "stop"), ("1 s", "start"))]
    again = [{"at": "2 s", "turns": "t", "action": "start"}, {"at": "5 s", "turns": "t", "action": "start"}]
    made = plan(
        {"nodes": ["a", "b"], "active": False}, events=[*events, *again], duration="9 s"
    ).turns[0]  # fmt: skip
    assert made.spans == ((1000 * MS, 3000 * MS), (5000 * MS, None))
    whose = [made.whose(at * MS) for at in (0, 999, 1000, 1100, 2999, 3000, 5000)]
    assert whose == [None, None, "a", "b", "b", None, "a"]
    assert [made.change(at * MS) for at in (0, 1000, 2950, 3000)] == [
        at * MS for at in (1000, 1100, 3000, 5000)
    ]


def test_turns_without_an_event_that_starts_them_are_never_taken() -> None:
    made = plan({"nodes": ["a", "b"], "active": False}).turns[0]
    assert (made.spans, made.whose(0), made.change(0)) == ((), None, None)


@given(
    quantum=st.integers(1, 50), phase=st.integers(0, 49), begin=st.integers(0, 60),
    length=st.none() | st.integers(1, 200), at=st.integers(0, 300),
)  # fmt: skip
def test_nothing_changes_before_the_next_change(
    quantum: int, phase: int, begin: int, length: int | None, at: int
) -> None:
    end = None if length is None else begin + length
    made = turns("ab", quantum, phase, spans=((begin, end),))
    then = made.change(at)
    last = at + 3 * quantum + 400 if then is None else then
    assert {made.whose(one) for one in range(at, last)} == {made.whose(at)}
    if then is not None:
        assert made.whose(then) != made.whose(at)


@given(
    quantum=st.integers(1, 9),
    phase=st.integers(0, 20),
    begin=st.integers(0, 9),
    length=st.integers(1, 60),
    until=st.integers(0, 90),
)
def test_turns_are_counted_as_they_are_taken(
    quantum: int, phase: int, begin: int, length: int, until: int
) -> None:
    found = turns(quantum=quantum, phase=phase, spans=((begin, begin + length), (100, None)))
    whose = [found.whose(at) for at in range(until)]
    changes = sum(
        one is not None and one != before for before, one in zip([None, *whose], whose, strict=False)
    )
    assert found.count(until) == changes


def test_in_virtual_time_nobody_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (0, 1, 2))
    made = plan({"nodes": ["a", "b"], "quantum": "10 us"}, time="virtual", kind="netns")
    assert made.turns[0].quantum == 10_000
    assert made.engine_processors == (), "the engine has no processor to itself"


def test_the_engine_has_a_processor_that_no_guest_in_turns_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (0, 1, 2))
    made = plan({"nodes": ["a", "b"]})
    assert made.engine_processors == (2,)
    assert {node.cpus.processors for node in made.nodes.values() if node.cpus} == {(0, 1)}
    placed = plan({"nodes": ["a", "b"]}, cpus={"shared": "guests"})
    assert placed.engine_processors == (2,)
    assert {node.cpus.processors for node in placed.nodes.values() if node.cpus} == {(1,)}
    with pytest.raises(ScenarioError, match=r"the engine is on processor 1, and so is node a"):
        plan({"nodes": ["a", "b"]}, engine={"cpus": 1})
    with pytest.raises(ScenarioError, match=r"the engine is on processor 0, and so is node a"):
        plan({"nodes": ["a", "b"]}, engine={"cpus": 0}, cpus=0)


def test_on_one_processor_the_engine_shares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (4,))
    made = plan({"nodes": ["a", "b"]})
    assert (made.engine_processors, [node.cpus for node in made.nodes.values()]) == ((), [None, None])


def test_a_node_waits_as_long_as_the_guest_that_it_is_in() -> None:
    nodes = {"a": {"inside": "box"}, "b": {}, "c": {"kind": "netns"}}
    made = plan(
        {"nodes": ["b", "box"], "quantum": "20 ms"}, guests={"box": {}}, nodes=nodes,
        links=[{"ends": ["a", "b"]}, {"ends": ["b", "c"]}],
    )  # fmt: skip
    assert [made.wait_of(node) for node in "abc"] == [22 * MS, 22 * MS, 0]
